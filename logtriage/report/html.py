"""The report as one HTML file that needs no network: what may run and load in it is fixed by their digests."""

from __future__ import annotations

import base64
import hashlib
from typing import TYPE_CHECKING, Any

from markupsafe import Markup, escape

from logtriage.report import page, plain
from logtriage.report.templating import environment, source

if TYPE_CHECKING:
    from collections.abc import Sequence


def render(reports: Sequence[dict[str, Any]]) -> str:
    """Return the page for one or several reports, given as detailed report data (`json_v1.to_dict`)."""
    style, script = source("report.css"), source("report.js")
    engine = environment(autoescape=True)
    engine.filters["prose"] = _prose
    page_text = engine.get_template("report.html").render(
        reports=[page.of(plain.data(report), number) for number, report in enumerate(reports)],
        tones={**page.TONES, None: "warn"},
        style=Markup(style),  # noqa: S704 - our own file
        script=Markup(script),  # noqa: S704 - our own file
        policy=f"default-src 'none'; style-src '{_digest(style)}'; style-src-attr 'unsafe-inline'; "
        f"script-src '{_digest(script)}'; base-uri 'none'; form-action 'none'",
    )  # fmt: skip
    return plain.in_markup(page_text)


def _prose(text: str) -> Markup:
    """A sentence in which `words` between back quotes are code."""
    parts = [escape(part) for part in text.split("`")]
    if len(parts) % 2 == 0:
        return escape(text)
    words = [Markup("<code>{}</code>").format(part) if at % 2 else part for at, part in enumerate(parts)]
    return Markup("").join(words)


def _digest(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
