"""The page in a real browser, with the network off: it loads, and everything on it does what it says."""

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.lab.report.folders import LEARNERS, write_study
from tests.lab.report.test_page import HOSTILE
from tightrope.lab.report import content, page, served

playwright = pytest.importorskip("playwright.sync_api")
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no chromium on this machine")


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with playwright.sync_playwright() as drivers:
        found = drivers.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        yield found
        found.close()


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("study")
    write_study(folder)
    (folder / "report.html").write_text(page(content(folder)), "utf-8")
    return folder / "report.html"


class Opened:
    """A page, and all that it complained about or asked for."""

    def __init__(self, browser: Any, url: str, *, offline: bool = True, **how: Any) -> None:
        self.url = url
        self.context = browser.new_context(offline=offline, **how)
        self.page = self.context.new_page()
        self.complaints: list[str] = []
        self.asked: list[str] = []
        self.page.on("console", self._note)
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("request", lambda request: self.asked.append(request.url))
        self.page.goto(url)

    def wait_until(self, holds: Callable[[], bool]) -> None:
        """Charts are drawn a moment after they were asked to."""
        for _ in range(200):
            if holds():
                return
            self.page.wait_for_timeout(50)
        raise AssertionError("that never came")

    def _note(self, message: Any) -> None:
        if message.type == "error":
            self.complaints.append(message.text)


@pytest.fixture
def opened(browser: Any, written: Path) -> Iterator[Opened]:
    found = Opened(browser, written.as_uri(), viewport={"width": 1300, "height": 900})
    yield found
    assert found.complaints == []
    assert [url for url in found.asked if not url.startswith("data:")] == [found.url]
    found.context.close()


#: Which colour most of the drawn points of a chart have that are neither grey nor faint.
COLOURS = """(canvas) => {
  const {data} = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height), found = {};
  for (let i = 0; i < data.length; i += 4) {
    if (data[i + 3] < 255) continue;
    const key = [data[i], data[i + 1], data[i + 2]].join();
    found[key] = (found[key] ?? 0) + 1;
  }
  return found;
}"""
BLUE = "0,114,178"


def test_the_page_has_all_parts(opened: Opened) -> None:
    assert opened.page.locator("figure canvas").count() == 6
    assert opened.page.locator("figure h3").all_inner_texts() == [
        "Regret", "Violation", "Strong violation", "Use of delay", "Multipliers", "Epochs",
    ]  # fmt: skip
    assert opened.page.locator(".legend button").all_inner_texts() == list(LEARNERS)


def test_a_study_of_one_episode_is_shown(browser: Any, tmp_path: Path) -> None:
    write_study(tmp_path, learners=LEARNERS[:1], n_seeds=1, episodes=1)
    (tmp_path / "report.html").write_text(page(content(tmp_path)), "utf-8")
    found = Opened(browser, (tmp_path / "report.html").as_uri())
    text = found.page.inner_text("main")
    assert "1 run finished" in text and "· 1 episode\n" in text and "After 1 episode:" in text
    ticks = "[...charts].map((one) => one.chart.axes[0]._values)"
    assert found.page.evaluate(ticks) == [["1", "2"]] * 6
    found.page.get_by_role("button", name="linear").click()
    assert found.page.evaluate(ticks) == [["0", "1", "2"]] * 6
    found.page.get_by_role("button", name="Zoom in").click()
    found.page.get_by_role("button", name="Show all episodes").click()
    assert shown_range(found) == [0, 2] * 6 and not found.page.evaluate("inUse()")
    assert "1 curve." in found.page.locator(".chart").first.get_attribute("aria-label")
    assert found.complaints == []
    found.context.close()


def test_legend_switches_a_curve_off_and_on(opened: Opened) -> None:
    button, canvas = opened.page.locator(".legend button").first, opened.page.locator("figure canvas").first
    opened.wait_until(lambda: canvas.evaluate(COLOURS).get(BLUE, 0) > 100)
    button.click()
    assert button.get_attribute("aria-pressed") == "false"
    opened.wait_until(lambda: canvas.evaluate(COLOURS).get(BLUE, 0) == 0)
    button.press("Enter")  # by keyboard too
    assert button.get_attribute("aria-pressed") == "true"
    opened.wait_until(lambda: canvas.evaluate(COLOURS).get(BLUE, 0) > 100)


def test_hovering_shows_the_values_of_that_episode(opened: Opened) -> None:
    opened.page.locator("figure .u-over").first.hover()
    hover = opened.page.locator("figure .hover").first
    hover.wait_for()
    text = hover.inner_text()
    assert text.startswith("episode ") and all(learner in text for learner in LEARNERS)
    assert not opened.page.locator("figure .hover").nth(1).is_visible()


def test_a_tap_shows_the_values_too(browser: Any, written: Path) -> None:
    found = Opened(browser, written.as_uri(), viewport={"width": 390, "height": 800}, has_touch=True, is_mobile=True)
    found.page.locator("figure .u-over").nth(3).tap()
    found.page.locator("figure .hover").nth(3).get_by_text("episode").wait_for()
    assert found.complaints == []
    found.context.close()


def test_arrow_keys_read_the_values_aloud(opened: Opened) -> None:
    chart = opened.page.locator(".chart").first
    chart.focus()
    chart.press("End")
    assert opened.page.locator("#said").inner_text().startswith("episode 10000: ")
    chart.press("ArrowLeft")
    assert not opened.page.locator("#said").inner_text().startswith("episode 10000: ")


def shown_range(opened: Opened) -> list[float]:
    found: list[float] = opened.page.evaluate(
        "[...charts].map((one) => one.chart.scales.x).flatMap(({min, max}) => [min, max])"
    )
    return found


def test_dragging_zooms_all_figures_and_a_double_click_shows_all(opened: Opened) -> None:
    over = opened.page.locator("figure .u-over").first
    assert shown_range(opened) == [1, 10_000] * 6
    box = over.bounding_box()
    opened.page.mouse.move(box["x"] + 0.25 * box["width"], box["y"] + 50)
    opened.page.mouse.down()
    opened.page.mouse.move(box["x"] + 0.75 * box["width"], box["y"] + 60, steps=5)
    opened.page.mouse.up()
    opened.wait_until(lambda: shown_range(opened)[-2:] != [1, 10_000])
    low, high = shown_range(opened)[:2]
    assert 9 < low < 11 and 900 < high < 1100  # a quarter and three quarters of four decades
    assert shown_range(opened) == pytest.approx([low, high] * 6, rel=0.02)
    over.dblclick()
    opened.wait_until(lambda: shown_range(opened)[:2] == [1, 10_000])


def test_buttons_zoom_in_and_out(opened: Opened) -> None:
    opened.page.get_by_role("button", name="Zoom in").click()
    opened.wait_until(lambda: shown_range(opened) == pytest.approx([10, 1000] * 6))
    opened.page.get_by_role("button", name="Show all episodes").click()
    opened.wait_until(lambda: shown_range(opened) == [1, 10_000] * 6)
    assert opened.page.evaluate("charts.size") == 6  # each with a range of its own


def test_axes_can_be_linear(opened: Opened) -> None:
    assert opened.page.evaluate("[...charts].map((one) => one.chart.scales.y.distr)") == [4, 4, 3, 1, 1, 1]
    opened.page.get_by_role("button", name="linear").click()
    assert opened.page.evaluate("[...charts].map((one) => one.chart.scales.y.distr)") == [1] * 6
    assert opened.page.evaluate("[...charts].map((one) => one.chart.scales.x.distr)") == [1] * 6


def test_the_summary_can_be_sorted(opened: Opened) -> None:
    table = opened.page.locator("section table").first
    names = table.locator("tbody th")
    by_regret = table.get_by_role("button", name="regret, euros")
    by_regret.click()
    assert names.all_inner_texts() == ["uniform", "ucpd-practical", "ucpd"]  # −… , 3 √t, 6 t^0.6
    by_regret.click()
    assert names.all_inner_texts() == ["ucpd", "ucpd-practical", "uniform"]
    assert table.locator('th[aria-sort="descending"]').count() == 1
    table.get_by_role("button", name="learner").press("Enter")
    assert names.all_inner_texts() == ["ucpd", "ucpd-practical", "uniform"]


def test_each_figure_has_a_table_that_opens(opened: Opened) -> None:
    opened.page.locator("figure summary").first.click()
    rows = opened.page.locator("figure").first.locator("tbody tr")
    rows.first.wait_for()  # a table is made when it is opened
    assert rows.count() == len(content(Path(written_of(opened)))["sections"][0]["episodes"])
    for title in ("Every run", "Parameters"):
        opened.page.get_by_text(title, exact=True).click()
    opened.page.get_by_text("radius_scale", exact=True).wait_for()
    runs = opened.page.get_by_role("group", name="The last record").locator("tbody tr")
    runs.first.wait_for()
    assert runs.count() == 12


def written_of(opened: Opened) -> str:
    return opened.url.removeprefix("file://").removesuffix("/report.html")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_phone_scrolls_only_down(browser: Any, written: Path, scheme: str) -> None:
    found = Opened(browser, written.as_uri(), viewport={"width": 360, "height": 740}, color_scheme=scheme)
    assert found.page.evaluate("document.documentElement.scrollWidth") <= 360
    found.page.locator(".scroll.more").first.wait_for()  # and says what can be scrolled to the right
    assert found.complaints == []
    found.context.close()


def test_hostile_names_are_shown_as_text(browser: Any, tmp_path: Path) -> None:
    write_study(tmp_path, learners=(HOSTILE,), problem=HOSTILE, budget=HOSTILE)
    (tmp_path / "report.html").write_text(page(content(tmp_path)), "utf-8")
    found = Opened(browser, (tmp_path / "report.html").as_uri())
    found.page.locator("figure .u-over").first.hover()
    assert found.complaints == [] and found.page.locator("b, img").count() == 0
    assert found.page.locator(".legend button").inner_text().startswith('</script><script>alert("1")')
    found.context.close()


def test_a_served_page_follows_the_study_until_the_command_ends(browser: Any, tmp_path: Path) -> None:
    with served(tmp_path) as address:
        found = Opened(browser, address, offline=False)
        found.page.get_by_text("Nothing has been recorded yet").wait_for()
        write_study(tmp_path, table=False)
        found.page.locator("figure canvas").nth(5).wait_for()
        found.page.get_by_text("12 runs finished").wait_for()
        assert found.complaints == []
        assert {url for url in found.asked if not url.startswith("data:")} == {address, f"{address}content.json"}
    found.page.get_by_text("has ended").wait_for()
    assert found.page.locator("figure canvas").count() == 6
    found.context.close()
