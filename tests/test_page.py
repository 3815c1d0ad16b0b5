"""The HTML report in a real browser: it loads nothing, says nothing on the console, and works from the keyboard."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from logtriage import pipeline
from logtriage.report import html, json_v1
from tests.browser import chromium
from tests.conftest import ROOT
from tests.test_injection import HOSTILE, SHORT, STORY, hostile

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from playwright.sync_api import Browser, Page

    from logtriage.engine.ruleset import RuleSet

CONTRAST = """() => {
  // The least contrast of any text with what is painted behind it, after WCAG 2; and how many texts were measured.
  const canvas = document.createElement("canvas").getContext("2d", {willReadFrequently: true});
  const rgba = (colour) => {
    canvas.clearRect(0, 0, 1, 1); canvas.fillStyle = colour; canvas.fillRect(0, 0, 1, 1);
    const [r, g, b, a] = canvas.getImageData(0, 0, 1, 1).data;
    return [r, g, b, a / 255];
  };
  const over = ([r, g, b, a], [x, y, z]) => [r * a + x * (1 - a), g * a + y * (1 - a), b * a + z * (1 - a)];
  const behind = (node) => {
    if (!node) return [255, 255, 255];
    const colour = rgba(getComputedStyle(node).backgroundColor);
    return colour[3] === 1 ? colour : over(colour, behind(node.parentElement));
  };
  const linear = (c) => c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4;
  const light = (colour) => {
    const [r, g, b] = colour.map((part) => linear(part / 255));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  let least = 99, worst = "", count = 0;
  while (walker.nextNode()) {
    const node = walker.currentNode.parentElement;
    if (!walker.currentNode.data.trim() || !node.checkVisibility() || node.closest("script, style")) continue;
    const back = behind(node);
    const [one, other] = [light(over(rgba(getComputedStyle(node).color), back)), light(back)].sort((a, b) => b - a);
    const ratio = (one + 0.05) / (other + 0.05);
    count += 1;
    if (ratio < least) [least, worst] = [ratio, `${node.className || node.tagName}: ${walker.currentNode.data.trim()}`];
  }
  return [least, worst, count];
}"""


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as started:
        yield started


@pytest.fixture(scope="module")
def pages(rules: RuleSet, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Pages on a failure with history, a healthy launch, one of unknown end, and several launches in one."""
    earlier = [pipeline.attempt(SHORT, rules), pipeline.attempt(ROOT / "corpus/recorded/parrot-moe/run.log", rules)]
    options = pipeline.Options(facts={"sm": 120}, after=earlier)
    failed = json_v1.to_dict(pipeline.analyze(STORY, rules=rules, options=options), detailed=True, earlier=earlier)
    healthy, unknown = (
        json_v1.to_dict(pipeline.analyze(ROOT / "corpus" / name / "run.log", rules=rules), detailed=True)
        for name in ("recorded/parrot-moe", "blind/gb200-truncated-record")
    )
    folder = tmp_path_factory.mktemp("pages")
    far = folder / ("a_folder_of_a_long_name" * 8) / "run.log"
    far.parent.mkdir()
    far.symlink_to(SHORT)
    many = [failed, healthy, unknown, json_v1.to_dict(pipeline.analyze(far, rules=rules), detailed=True)]
    made = {}
    for name, reports in {"failed": [failed], "healthy": [healthy], "unknown": [unknown], "many": many}.items():
        made[name] = folder / f"{name}.html"
        made[name].write_text(html.render(reports), encoding="utf-8")
    for kind, text in HOSTILE.items():
        made[kind] = folder / f"hostile-{len(made)}.html"
        made[kind].write_text(html.render([hostile(failed, text)]), encoding="utf-8")
    return made


def opened(browser: Browser, path: Path, **options: Any) -> tuple[Page, list[str]]:
    """A page in a window of its own, and all it asks for or complains about."""
    context = browser.new_context(**options)
    page = context.new_page()
    page.set_default_timeout(60_000)
    heard: list[str] = []
    page.on("console", lambda message: heard.append(f"console: {message.text}"))
    page.on("pageerror", lambda error: heard.append(f"error: {error}"))
    page.on("dialog", lambda dialog: heard.append(f"dialog: {dialog.message}"))
    page.on(
        "request", lambda request: heard.append(f"request: {request.url}") if request.url != path.as_uri() else None
    )
    page.goto(path.as_uri())
    return page, heard


@pytest.mark.parametrize("name", ["failed", "healthy", "unknown", "many", *HOSTILE])
def test_the_page_loads_nothing_and_complains_of_nothing(browser: Browser, pages: dict[str, Path], name: str) -> None:
    """No request, nothing on the console, no script of a log: also with hostile text in every field."""
    page, heard = opened(browser, pages[name])
    assert page.evaluate("window.pwned") is None
    assert page.locator("script").count() == 1
    assert page.locator("h1").count() == (4 if name == "many" else 1)
    assert heard == []
    page.context.close()


@pytest.mark.parametrize("width", [1180, 360])
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", ["failed", "healthy", "unknown", "many"])
def test_text_can_be_read(browser: Browser, pages: dict[str, Path], name: str, scheme: str, width: int) -> None:
    """Every text has a contrast of 4.5:1 at least, folded parts open; the page is never wider than the window."""
    page, _ = opened(browser, pages[name], color_scheme=scheme, viewport={"width": width, "height": 800})
    page.evaluate("document.querySelectorAll('details').forEach((part) => { part.open = true; })")
    least, worst, count = page.evaluate(CONTRAST)
    assert count > 40
    assert least >= 4.5, worst
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    background = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (background == "rgb(18, 19, 22)") == (scheme == "dark")
    page.context.close()


def test_the_contrast_test_finds_a_faint_text(browser: Browser, pages: dict[str, Path]) -> None:
    """The measure itself tells grey on white from black on white."""
    page, _ = opened(browser, pages["healthy"])
    page.evaluate("document.querySelector('h1').style.color = '#aaa'")
    least, worst, _ = page.evaluate(CONTRAST)
    assert least < 2.5
    assert "healthy" in worst
    page.context.close()


def test_every_control_is_reached_and_used_by_keyboard(browser: Browser, pages: dict[str, Path]) -> None:
    """Tab reaches every control and shows where it is; Enter copies the command, folds, jumps, changes colours."""
    page, heard = opened(
        browser, pages["failed"], color_scheme="dark", permissions=["clipboard-read", "clipboard-write"]
    )
    controls = page.evaluate(
        "[...document.querySelectorAll('a[href], button, summary, [tabindex=\"0\"]')]"
        ".filter((node) => node.checkVisibility()).map((node) => node.outerHTML)"
    )
    assert len(controls) >= 8
    reached = []
    for _ in controls:
        page.keyboard.press("Tab")
        reached.append(page.evaluate("document.activeElement.outerHTML"))
        assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") != "none"
        focused = page.evaluate("document.activeElement.tagName + ' ' + document.activeElement.textContent")
        if focused == "BUTTON Copy":
            page.keyboard.press("Enter")
            page.get_by_role("button", name="Copied").first.wait_for()
        elif focused.startswith("SUMMARY Ruled out"):
            page.keyboard.press("Enter")
            assert page.locator("details[open] summary", has_text="Ruled out").count() == 1
        elif focused == "A line 125":
            page.keyboard.press("Enter")
            page.wait_for_url("**/failed.html#r0-0-125")
            assert page.locator(":target.root-line").count() == 1
            page.locator("a", has_text="line 125").focus()
        elif focused == "BUTTON Light":
            page.keyboard.press("Enter")
            assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(246, 245, 242)"
    assert len(set(reached)) == len(controls)
    command = page.locator("#r0-command").text_content()
    assert page.evaluate("navigator.clipboard.readText()") == command
    assert "--moe-runner-backend flashinfer_cutlass" in command
    assert heard == []
    page.context.close()


def test_the_page_says_all_without_scripts(browser: Browser, pages: dict[str, Path]) -> None:
    """Where scripts are off, as in many CI systems, only the buttons are missing."""
    page, _ = opened(browser, pages["failed"], java_script_enabled=False)
    shown = page.locator("main").inner_text()
    for said in ("sm100-only-kernel", "--moe-runner-backend flashinfer_cutlass", "1 · the cause", "weight-load"):
        assert said in shown
    assert page.locator("button:visible").count() == 0
    page.context.close()


def test_what_has_been_tried(browser: Browser, pages: dict[str, Path]) -> None:
    """The matrix has each blamed flag with its values, and which launches had them and how they ended."""
    page, _ = opened(browser, pages["failed"])
    rows = page.locator("table").first.locator("tbody tr").all_inner_texts()
    cells = [" ".join(row.split()) for row in rows]
    assert "--kv-cache-dtype fp4_e2m1 1 · unsupported-config" in cells
    assert any(row.endswith("flashinfer_trtllm 3 · sm100-only-kernel") for row in cells)
    assert any("2 · healthy" in row for row in cells)
    page.context.close()
