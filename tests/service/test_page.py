"""The live page in a browser: it follows the service, loads nothing else, and needs the token."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.lab.report.test_browser import CHROMIUM, Opened, browser  # noqa: F401
from tests.service.running import Running
from tests.service.test_service import WEEK, served
from tightrope import DurableLearner, load_problem, make_learner
from tightrope.ops.openapi import live_page
from tightrope.ops.server import Address

TOKEN = "a token of more than 16 characters"


def test_the_live_page_lists_learners_by_name() -> None:
    assert '"learners":["a","b"]' in live_page(["b", "a"])


def test_names_are_escaped_in_the_live_page() -> None:
    hostile = "</script><script>alert(1)</script>"
    assert hostile not in live_page([hostile])
    assert live_page(["one"]).count("</script>") == 2


@pytest.fixture
def guarded(tmp_path: Path, machine: Path) -> Iterator[Running]:
    running = Running(tmp_path / "machine", machine, address=Address(token=TOKEN))
    running.authorization = f"Bearer {TOKEN}"
    with running:
        yield running


@pytest.mark.skipif(CHROMIUM is None, reason="no chromium on this machine")
def test_the_live_page_follows_the_service(browser: Any, guarded: Running) -> None:  # noqa: F811
    url = guarded.server.address
    guarded.tell(guarded.ask(), WEEK)
    password = {"username": "anybody", "password": TOKEN}
    opened = Opened(browser, url, offline=False, http_credentials=password, viewport={"width": 390, "height": 800})
    look = opened.page
    opened.wait_until(lambda: look.locator("canvas").count() == 2)
    text = look.inner_text("main")
    assert "ucpd-practical: 1 episode learned" in text
    assert "Loss so far −360 euros" in text
    assert "400 %" in text  # eight hours of two
    assert "euros per hour" in look.inner_text("table >> nth=0")
    assert "what a unit of it is worth to the learner; euros per hour" in text
    assert look.locator(".layer h4").all_inner_texts() == [f"step {k}" for k in range(7)]
    names = look.locator(".called .states div")
    assert names.all_inner_texts() == ["good", "worn", "broken"]
    for k, name in enumerate(("good", "worn", "broken")):
        box = look.locator(f'[aria-label^="{name}, step 6"]').bounding_box()
        assert box["y"] == names.nth(k).bounding_box()["y"]
    assert "Charts begin when the service was started, before the first episode." in text
    assert "challenger" not in text
    guarded.send("PUT", "/learners/machine/challengers/doubtful", {"learner": "uniform", "episodes": 9})
    guarded.send("PUT", "/learners/machine/budgets", {"budgets": {"technician": 3.25}})  # no episode, and yet news
    opened.wait_until(lambda: "3.25" in look.inner_text("table >> nth=0"))
    rows = look.locator("section table >> nth=1").locator("tbody tr").all_inner_texts()
    assert rows == ["ucpd-practical\tchampion\t1\t−360\t8", "doubtful\tchallenger\t0\t–\t–"]
    guarded.tell(guarded.ask(), WEEK)
    opened.wait_until(lambda: "2 episodes learned" in look.inner_text("main"))
    look.click("text=Numbers >> nth=0")
    told = look.locator("figure table >> nth=0").locator("tbody tr")
    told.first.wait_for()  # a table is made when it is opened
    assert told.all_inner_texts() == ["1\t8\t2", "2\t8\t2.625"]  # 2 hours and 3.25 were allowed
    look.click("text=Numbers >> nth=2")
    opened.wait_until(lambda: "good, step 0" in look.inner_text("table >> nth=-1"))
    assert look.evaluate("document.documentElement.scrollWidth") <= 390
    for cut in (".scroll", ".layers"):  # they fade as long as there is more to the right
        look.locator(f"{cut}.more").first.wait_for()
        assert look.locator(f"{cut}.more").first.evaluate("(one) => getComputedStyle(one).maskImage") != "none"
        look.evaluate("(cut) => document.querySelectorAll(cut).forEach((one) => one.scrollTo(9999, 0))", cut)
        look.locator(f"{cut}.more").first.wait_for(state="detached")
    look.goto(f"{url}docs")
    assert "POST /learners/{name}/ask" in look.inner_text("main")
    assert opened.complaints == []
    assert all(asked.startswith((url, "data:")) for asked in opened.asked)
    opened.context.close()


@pytest.mark.skipif(CHROMIUM is None, reason="no chromium on this machine")
def test_later_challengers_are_compared_by_averages(browser: Any, tmp_path: Path, machine: Path) -> None:  # noqa: F811
    idle = {**WEEK, "states": ["good"] * 7, "actions": ["run"] * 7}  # no hour of the technician, after a week of eight
    with Running(tmp_path / "machine", machine, "uniform") as running:
        for name, week in (("late", WEEK), ("later", idle)):
            running.tell(running.ask(), week)
            running.send("PUT", f"/learners/machine/challengers/{name}", {"learner": "uniform", "episodes": 9})
        opened = Opened(browser, running.server.address, offline=False)
        table = opened.page.locator("section table >> nth=1")
        table.wait_for()
        assert "use of technician, hours" in table.inner_text()
        rows = [row.split("\t") for row in table.locator("tbody tr").all_inner_texts()]
        opened.context.close()
        first, second = (standing["would_have_lost"] for standing in running.of("/challengers")[:2])
    assert [row[:3] + row[4:] for row in rows] == [
        ["uniform", "champion", "2", "4\n± 4"], ["late", "challenger", "1", "0"], ["later", "challenger", "0", "–"],
    ]  # fmt: skip
    assert [row[3].replace("−", "-") for row in rows] == [f"{first / 2:g}", f"{second:g}", "–"]


@pytest.mark.skipif(CHROMIUM is None, reason="no chromium on this machine")
def test_a_figure_that_begins_late_shows_whole_episodes(browser: Any, running: Running) -> None:  # noqa: F811
    series = {"told": [12_344], "use": [[2.0]], "allowed": [[2.0]], "price": [[0.0]]}
    running.tell(running.ask(), WEEK)
    opened = Opened(browser, "about:blank", offline=False)
    opened.page.route("**/series", lambda route: route.fulfill(json=series))
    opened.page.goto(running.server.address)
    opened.wait_until(lambda: opened.page.locator("canvas").count() == 2)
    assert "started, after 12\u2009344 episodes." in opened.page.inner_text("main")
    ticks = opened.page.evaluate("[...charts].map((one) => one.chart.axes[0]._values)")
    assert ticks == [["12\u2009343", "12\u2009344", "12\u2009345"]] * 2
    opened.context.close()


@pytest.mark.skipif(CHROMIUM is None, reason="no chromium on this machine")
def test_an_unready_learner_does_not_hide_the_others(browser: Any, tmp_path: Path, machine: Path) -> None:  # noqa: F811
    for name in ("first", "second"):
        DurableLearner(tmp_path / name, make_learner("uniform", load_problem(machine), episodes=9)).close()
    with Running(tmp_path) as running:
        served(running, "first").ready = False
        opened = Opened(browser, running.server.address, offline=False)
        first, second = (opened.page.locator(f"#learner-{k}") for k in range(2))
        opened.wait_until(lambda: "uniform: 0 episodes learned" in second.inner_text())
        opened.wait_until(lambda: "No answer: first is being opened" in first.inner_text())
        assert "No answer" not in second.inner_text() + opened.page.inner_text("header")
        served(running, "first").ready = True
        opened.wait_until(lambda: "uniform: 0 episodes learned" in first.inner_text())
        assert "No answer" not in first.inner_text()
        opened.context.close()
