"""Where reports go: each form to standard output or to a file of its own, and what GitHub reads to its summary."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any

import click

from logtriage.cli import exit_codes, output
from logtriage.errors import TriageError
from logtriage.records import Record
from logtriage.report import json_v1

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from logtriage.records import Attempt, Report

FORMATS = ("text", "json", "github", "junit", "markdown", "html")
"""The forms of a report."""

SUFFIXES = {
    ".json": "json",
    ".xml": "junit",
    ".md": "markdown",
    ".markdown": "markdown",
    ".html": "html",
    ".htm": "html",
}
"""What the name of a file says about its form."""

_OF_TEXT = ("", ".txt", ".text", ".log", ".out")
_DETAIL = ("excerpt", "timeline", "attempts")
_SUMMARY = "GITHUB_STEP_SUMMARY"


class Target(Record):
    """A form of the report and the file it goes to; None is standard output."""

    form: str
    path: str | None


def targets(formats: Sequence[str], path: str | None) -> list[Target]:
    """Return where each form goes, from the values of `--format` (FORMAT or FORMAT=FILE) and that of `--output`.

    Raises click.UsageError for what cannot be meant.
    """
    found = [_target(text) for text in formats]
    open_ones = [target for target in found if target.path is None]
    if path is not None:
        if len(open_ones) > 1:
            raise click.UsageError("--output takes one report; give each form its file: --format html=report.html")
        if not open_ones and _suffix(path) not in (*SUFFIXES, *_OF_TEXT):
            output.complain(
                f"logtriage: {path} is written as text: its suffix tells no form. "
                f"Known are {', '.join(SUFFIXES)}; or give --format"
            )
        form = open_ones[0].form if open_ones else SUFFIXES.get(_suffix(path), "text")
        named = SUFFIXES.get(_suffix(path), form)
        if named != form != "text":
            raise click.UsageError(
                f"--output {path} would hold a report in the form {form!r}; "
                f"for both write --format {form} --format {named}={path}"
            )
        found = [*(target for target in found if target.path is not None), Target(form, path)]
    elif len(open_ones) > 1 and {target.form for target in open_ones} != {"github", "text"}:
        names = " and ".join(target.form for target in open_ones)
        raise click.UsageError(f"{names} cannot share standard output; give one a file: --format html=report.html")
    found = found or [Target("text", None)]
    paths = [os.path.abspath(target.path) for target in found if target.path is not None]
    if len(set(paths)) < len(paths):
        raise click.UsageError("two forms of the report would go to one file; name another one")
    return found


class Reports:
    """Takes the reports of one call, prints what can be printed at once, and writes the rest at the end."""

    def __init__(self, chosen: Sequence[Target], given: dict[str, Any], earlier: Sequence[Attempt] = ()) -> None:
        self._targets = chosen
        self._given = given
        self._earlier = earlier
        self._all: list[dict[str, Any]] = []
        self._counts: list[bool] = []
        self._baseline = _baseline(given["baseline"])
        self._forms = {target.form for target in chosen}

    def add(self, report: Report) -> int:
        """Take a report; returns the exit code that it asks for."""
        given = self._given
        rich_forms = self._forms & {"github", "markdown", "html"}
        data = json_v1.to_dict(
            report,
            redact=not given["no_redact"],
            detailed=bool(rich_forms) or ("json" in self._forms and given["verbose"]),
            earlier=self._earlier,
        )
        if self._baseline is not None:
            from logtriage.report import baseline

            data["baseline"] = baseline.compare(data, self._baseline, given["baseline"])
        counts = _counts(data, given["fail_on"])
        for target in self._targets:
            if target.path is None and target.form in ("text", "json", "github"):
                self._print(target.form, data, counts=counts)
        self._all.append(data)
        self._counts.append(counts)
        if given["exit_zero"]:
            return exit_codes.HEALTHY
        if given["fail_on"] is None:
            return exit_codes.of_label(data["verdict"]["label"])
        return exit_codes.FAILED if counts else exit_codes.HEALTHY

    def finish(self) -> None:
        """Write the files, and what needs all reports. Raises TriageError where a file cannot be written."""
        if not self._all:
            return
        for target in self._targets:
            if target.path is not None:
                output.to_file(target.path, self._rendered(target.form))
            elif target.form in ("junit", "markdown", "html"):
                output.write(self._rendered(target.form))
        if "github" in self._forms and not self._to_summary() and Target("text", None) not in self._targets:
            output.write("".join(self._streamed("text")))

    def _print(self, form: str, data: dict[str, Any], *, counts: bool = True) -> None:
        given = self._given
        if form == "github":
            from logtriage.report import github

            output.job_command(github.annotation(data, counts=counts))
            return
        if form == "json":
            output.write(self._json(data))
            return
        from logtriage.report import text

        if self._all:
            output.write("\n")
        if sys.stdout is not None and sys.stdout.isatty() and "NO_COLOR" not in os.environ:
            output.guarded(lambda: text.print_coloured(data, sys.stdout, verbose=given["verbose"]))
            return
        output.write(text.render(data, verbose=given["verbose"]))

    def _rendered(self, form: str) -> str:
        if form == "html":
            from logtriage.report import html

            return html.render(self._all)
        if form == "markdown":
            from logtriage.report import markdown

            return markdown.render(self._all)
        if form == "junit":
            from logtriage.report import junit

            return junit.render(self._all, self._counts)
        return "".join(self._streamed(form))

    def _streamed(self, form: str) -> Iterator[str]:
        """The reports of a form that has one after the other."""
        from logtriage.report import text

        for number, data in enumerate(self._all):
            if form == "json":
                yield self._json(data)
            elif form == "github":
                from logtriage.report import github

                yield github.annotation(data, counts=self._counts[number])
            else:
                yield ("\n" if number else "") + text.render(data, verbose=self._given["verbose"])

    def _json(self, data: dict[str, Any]) -> str:
        if not self._given["verbose"]:
            data = {name: value for name, value in data.items() if name not in _DETAIL}
        return json_v1.dumps(data, one_line=self._given["separate"])

    def _to_summary(self) -> bool:
        """Append to the summary of the step; False where there is none."""
        path = os.environ.get(_SUMMARY)
        if not path:
            return False
        from logtriage.report import github

        used = os.path.getsize(path) if os.path.exists(path) else 0
        try:
            output.to_file(path, github.summary(self._all, used), append=True)
        except TriageError as error:
            output.complain(f"logtriage: {_SUMMARY}: {error}")
            return False
        return True


def _target(text: str) -> Target:
    form, equals, path = text.partition("=")
    if form not in FORMATS or (equals and not path):
        raise click.BadParameter(
            f"{text!r} is none of {', '.join(FORMATS)}; a file of its own is given as html=report.html",
            param_hint="--format",
        )
    return Target(form, path or None)


def _suffix(path: str) -> str:
    return os.path.splitext(path)[1].lower()


def _baseline(path: str | None) -> list[dict[str, Any]] | None:
    if path is None:
        return None
    from logtriage import whole_file
    from logtriage.report import baseline

    return baseline.read(whole_file.read(path), path)


def _counts(data: dict[str, Any], fail_on: Sequence[str] | None) -> bool:
    """Whether a verdict counts as a failure: by its label, its outcome, or its being new."""
    verdict = data["verdict"]
    if fail_on is None:
        return exit_codes.of_label(verdict["label"]) != exit_codes.HEALTHY
    is_new = data.get("baseline", {}).get("status") == "new"
    return not {verdict["label"], verdict["outcome"], *(["new"] if is_new else [])}.isdisjoint(fail_on)
