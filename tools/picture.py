"""Draws ``docs/report.svg``, the picture of a report that the README shows: ``python tools/picture.py``."""

from __future__ import annotations

import io
from pathlib import Path

from rich.console import Console
from rich.text import Text

from logtriage import analyze
from logtriage.report import json_v1, layout
from logtriage.report.text import STYLES

ROOT = Path(__file__).resolve().parent.parent
LOG = Path("corpus/written/story-1-sm100-only-then-killed/run.log")
WIDTH = 132


def main() -> None:
    """Analyze a log of the corpus and write the coloured report as SVG."""
    data = json_v1.to_dict(analyze(ROOT / LOG))
    text = str(ROOT / LOG)
    console = Console(record=True, width=WIDTH, file=io.StringIO(), force_terminal=True, highlight=False, markup=False)
    console.print(Text.assemble(("$ ", "dim"), ("logtriage analyze run.log", "bold")))
    for row in layout.rows(data):
        pieces = [(piece.replace(text, "run.log"), STYLES[style]) for style, piece in row]
        line = Text.assemble(*pieces)
        line.truncate(WIDTH, overflow="ellipsis")
        console.print(line)
    svg = console.export_svg(title="logtriage", unique_id="report")
    (ROOT / "docs" / "report.svg").write_text(svg, encoding="utf-8")


if __name__ == "__main__":
    main()
