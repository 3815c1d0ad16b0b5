"""Draws ``docs/report.svg``, the picture of a report that the README shows: ``python tools/picture.py``."""

from __future__ import annotations

import io
import json
from pathlib import Path

from rich.console import Console
from rich.text import Text

from logtriage import pipeline
from logtriage.report import json_v1
from logtriage.report.text import STYLES, on_screen

ROOT = Path(__file__).resolve().parent.parent
LOG = Path("corpus/written/story-1-sm100-only-then-killed/run.log")
SM = 120
WIDTH, HEIGHT = 116, 40


def main() -> None:
    """Analyze a log of the corpus and write the coloured report as SVG."""
    data = json_v1.to_dict(pipeline.analyze(ROOT / LOG, options=pipeline.Options(facts={"sm": SM})))
    text = str(ROOT / LOG)
    console = Console(record=True, width=WIDTH, file=io.StringIO(), force_terminal=True, highlight=False, markup=False)
    console.print(Text.assemble(("$ ", "dim"), (f"logtriage analyze run.log --sm {SM}", "bold")))
    data = json.loads(json.dumps(data).replace(text, "run.log"))
    for row in on_screen(data, WIDTH, HEIGHT):
        console.print(Text.assemble(*((piece, STYLES[style]) for style, piece in row)))
    svg = console.export_svg(title="logtriage", unique_id="report")
    (ROOT / "docs" / "report.svg").write_text(svg, encoding="utf-8")


if __name__ == "__main__":
    main()
