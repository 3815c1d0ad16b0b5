"""All forms of a report at once, for tests that hold for every form."""

from __future__ import annotations

from html.parser import HTMLParser
from typing import Any

from logtriage.report import github, html, json_v1, junit, markdown, plain, text

FORMS = ("text", "json", "github", "summary", "junit", "markdown", "html")


def forms(data: dict[str, Any]) -> dict[str, str]:
    """A report, given as detailed data, in every form as it stands in a job's log or in a file."""
    return {
        "text": plain.in_job(text.render(data, verbose=True)),
        "json": json_v1.dumps(data),
        "github": github.annotation(data),
        "summary": github.summary([data]),
        "junit": junit.render([data]),
        "markdown": markdown.render([data]),
        "html": html.render([data]),
    }


class Page(HTMLParser):
    """A page as a reader gets it: its elements with the names of their attributes, in order, and its text."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, ...]] = []
        self.text = ""
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.elements.append((tag, *(name for name, _ in attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data

    def handle_comment(self, data: str) -> None:
        self.elements.append(("comment",))
