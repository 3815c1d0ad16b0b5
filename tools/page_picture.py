"""Takes ``docs/report-html.png``, the picture of the HTML report in the README: ``python tools/page_picture.py``.

Needs Chromium on the path and Playwright (a dependency for development).
"""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

from playwright.sync_api import sync_playwright
from readme_reports import report

from logtriage.report import html

ROOT = Path(__file__).resolve().parent.parent
WIDTH = 1000


def main() -> None:
    """Save what a browser shows of the page on the launch whose other reports stand in the README."""
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder) / "report.html"
        page.write_text(html.render([report()]), encoding="utf-8")
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(
                executable_path=shutil.which("chromium") or shutil.which("google-chrome"),
                args=["--headless", "--no-sandbox", "--disable-gpu"],
            )
            shown = browser.new_page(viewport={"width": WIDTH, "height": 800}, color_scheme="light")
            shown.goto(page.as_uri())
            shown.screenshot(path=ROOT / "docs" / "report-html.png", full_page=True)
            browser.close()


if __name__ == "__main__":
    main()
