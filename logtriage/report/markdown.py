"""The report as Markdown for summaries and tickets; nothing that a log says becomes markup, a link or a mention."""

from __future__ import annotations

import html
import re
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from logtriage.report import page, plain
from logtriage.report.layout import cut
from logtriage.report.templating import environment

if TYPE_CHECKING:
    from collections.abc import Sequence

_ACTIVE = re.compile(r"[\\`*_{}\[\]<>#|~&$@^]|:(?=//)|(?<=www)\.")
_MARKS = {"bad": "❌", "warn": "⚠️", "good": "✅"}
_MAX_TEXT = 400


def render(reports: Sequence[dict[str, Any]], *, brief: bool = False) -> str:
    """Return one or several reports as Markdown (CommonMark, with `details` elements); `brief` leaves evidence out."""
    engine = environment(autoescape=False, finalize=_escaped)
    engine.filters |= {"code": _code, "block": _block, "excerpt": _excerpt}
    pages = [page.of(plain.data(report), number) for number, report in enumerate(reports)]
    return engine.get_template("report.md").render(reports=pages, brief=brief, marks=_MARKS)


def _escaped(value: object) -> object:
    """Text as itself: every mark of Markdown and HTML gets a backslash, a mention and a reference lose their effect."""
    if isinstance(value, Markup):
        return value
    shown = _ACTIVE.sub(r"\\\g<0>", str(value))
    return Markup(re.sub(r"(?<=\\[@#])(?=\w)", "&#8203;", shown))  # noqa: S704 - escaped just now


def _code(value: object) -> Markup:
    return Markup(f"<code>{_escaped(cut(str(value), limit=_MAX_TEXT)[0])}</code>")  # noqa: S704 - escaped just now


def _block(value: object) -> Markup:
    """Lines as they are, in an element that ends where we end it and holds nothing but text."""
    text = html.escape(str(value), quote=False)
    return Markup(f"<pre><code>{plain.in_markup(text)}</code></pre>")  # noqa: S704 - escaped just now


def _excerpt(rows: Sequence[dict[str, Any]]) -> Markup:
    """The lines of the log with their numbers; an arrow stands beside the cause, a letter beside what else matters."""
    digits = max((len(str(row["line"])) for row in rows if "line" in row), default=1)
    shown = []
    for row in rows:
        if "gap" in row:
            shown.append(f"  {'':{digits}} … {row['gap']} lines left out")
            continue
        mark = ">" if row["role"] == "root" else "*" if row["role"] not in ("context", "frame") else " "
        shown.append(f"{mark} {row['line']:>{digits}} | {''.join(row['pieces'])}".rstrip())
    return _block("\n".join(shown))
