"""The page in chromium: what is shown, clicks, search, folding, keys, and not one complaint of the browser's.

Needs Debian's `chromium` and `chromium-driver`; without them these tests are skipped, and say so.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.report.test_page import MODEL, small_report
from tests.test_hostile_names import hostile_report
from trueport.diagnostics.rules.tp203_state_written import StateWritten
from trueport.report import GraphSummary, NodeSummary, Report
from trueport.source import Place, Where

CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")
DRIVER = shutil.which("chromedriver")
pytestmark = [
    pytest.mark.skipif(
        CHROMIUM is None or DRIVER is None, reason="no chromium: apt-get install chromium chromium-driver"
    ),
    pytest.mark.xdist_group("browser"),
]
webdriver: Any = pytest.importorskip("selenium.webdriver", reason="selenium is not installed")

Open = Callable[[Report], Any]


@pytest.fixture(scope="module")
def driver() -> Iterator[Any]:
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    switches = (
        "headless=new no-sandbox disable-gpu disable-dev-shm-usage window-size=1280,900 force-prefers-reduced-motion"
    )
    for switch in [*switches.split(), "force-prefers-reduced-motion"]:  # so that a click finds what it aims at
        options.add_argument(f"--{switch}")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    started = webdriver.Chrome(options=options, service=Service(DRIVER))
    yield started
    started.quit()


@pytest.fixture
def shown(driver: Any, tmp_path: Path) -> Iterator[Open]:
    """Opens a report; in the end the browser must not have complained, about its policy either."""

    def at(report: Report) -> Any:
        report.save(tmp_path / "report.html")
        driver.get((tmp_path / "report.html").as_uri())
        assert driver.execute_script("return document.documentElement.dataset.ready")
        return driver

    driver.get_log("browser")
    yield at
    assert driver.get_log("browser") == []


@pytest.fixture
def page(shown: Open, tmp_path: Path) -> Any:
    file = tmp_path / "model.py"
    file.write_text(MODEL)
    return shown(small_report(file))


def labels(page: Any) -> list[str]:
    """Of all boxes that are drawn, as a screen reader hears them."""
    found: list[str] = page.execute_script(
        "return [...document.querySelectorAll('[data-box]')].map((box) => box.getAttribute('aria-label'))"
    )
    return found


def side(page: Any) -> str:
    return str(page.find_element("id", "side").text)


def keys(page: Any, *pressed: str) -> None:
    from selenium.webdriver.common.action_chains import ActionChains
    from selenium.webdriver.common.keys import Keys

    for key in pressed:
        ActionChains(page).send_keys(getattr(Keys, key, key)).perform()


def click(page: Any, label: str) -> None:
    from selenium.webdriver.common.action_chains import ActionChains

    box = page.find_element("css selector", f'[data-box][aria-label^="{label}"] text')
    ActionChains(page).move_to_element(box).click().perform()


def test_a_small_graph_is_drawn_whole_with_the_arms_inside_their_node(page: Any) -> None:
    assert page.title == "faithful Net · trueport"
    drawn = labels(page)
    assert "module layers.0, 1 nodes, unfolded" in drawn
    assert "control If, 3 nodes, unfolded" in drawn
    assert {"body then branch, 1 nodes, unfolded", "node Add", "node Identity", "node MatMul"} <= set(drawn)
    assert not any("Constant" in label for label in drawn)
    inside = page.execute_script(
        "const at = (name) => document.querySelector(`[aria-label^='${name}'] rect`).getBoundingClientRect();"
        "const arm = at('node Add'), whole = at('control If');"
        "return whole.left < arm.left && arm.right < whole.right && whole.top < arm.top && arm.bottom < whole.bottom"
    )
    assert inside


def test_a_click_tells_of_a_node_and_leads_to_its_line_and_back(page: Any) -> None:
    click(page, "node MatMul")
    told = side(page)
    for said in ("MatMul", "matmul", "layers.0", "aten.mm.default"):
        assert said in told
    line = page.find_element("xpath", "//*[@id='side']//button[contains(., 'model.py:7')]")
    line.click()
    assert page.find_elements("css selector", "#L0-7.lit")
    assert page.execute_script("return document.querySelector('.box.lit').getAttribute('aria-label')") == "node MatMul"
    page.find_element("css selector", "#L0-5 button").click()  # four nodes come from the `if`
    assert "4 nodes of this line" in side(page)
    assert "Greater" in side(page)


def test_a_reader_is_led_along_the_wires(page: Any) -> None:
    click(page, "node Greater")
    assert "one = 1" in side(page)  # a constant is told where it is read
    page.find_element("xpath", "//*[@id='side']//button[starts-with(., 's')]").click()
    assert side(page).startswith("ReduceSum")


def test_modules_and_bodies_fold(page: Any) -> None:
    page.find_element("id", "fold").click()
    assert "control If, 3 nodes, folded" in labels(page)
    assert "node Add" not in labels(page)
    click(page, "control If")
    click(page, "control If")
    assert "node Add" in labels(page)


def test_search_unfolds_what_it_finds(page: Any) -> None:
    page.find_element("id", "fold").click()
    keys(page, "/")
    keys(page, *"aten.mm")
    assert "1 found" in side(page)
    keys(page, "ENTER")
    assert "node MatMul" in labels(page)
    assert side(page).startswith("MatMul")
    keys(page, "ESCAPE", "/")
    keys(page, *"if", "ENTER")  # `sum_before_if` has these letters too, and comes earlier
    assert side(page).startswith("If")
    keys(page, "ESCAPE", "/")
    keys(page, *"nowhere")
    assert "Nothing found" in side(page)


def test_everything_can_be_done_with_keys(page: Any) -> None:
    page.execute_script("document.getElementById('canvas').focus()")
    keys(page, "ARROW_DOWN")
    assert side(page).startswith("x")
    keys(page, "ARROW_DOWN")
    assert side(page).startswith("ReduceSum")
    keys(page, "ARROW_DOWN", "ARROW_DOWN")
    assert side(page).startswith("If")
    keys(page, "ENTER")
    assert "control If, 3 nodes, folded" in labels(page)
    before = page.execute_script("return document.querySelector('#canvas > g').getAttribute('transform')")
    keys(page, "+")
    page.execute_async_script("requestAnimationFrame(() => requestAnimationFrame(arguments[0]))")
    assert page.execute_script("return document.querySelector('#canvas > g').getAttribute('transform')") != before
    active = page.execute_script("return document.getElementById('canvas').getAttribute('aria-activedescendant')")
    assert page.find_element("id", active).get_attribute("aria-label").startswith("control If")


def test_the_source_begins_where_the_finding_is(shown: Open, tmp_path: Path) -> None:
    file = tmp_path / "model.py"
    file.write_text("x = 1\n" * 300)
    found = StateWritten(message="written", place=Place((Where(str(file), 200),)))
    page = shown(Report(model="Net", diagnostics=(found,)))
    page.find_element("partial link text", "model.py:200").click()
    inside = page.execute_script(
        "const list = document.querySelector('.source').getBoundingClientRect();"
        "const line = document.querySelector('li.found').getBoundingClientRect();"
        "return list.top <= line.top && line.bottom <= list.bottom"
    )
    assert inside


def test_the_picture_fills_the_window_and_goes_back(page: Any) -> None:
    def height() -> int:
        return int(page.execute_script("return document.getElementById('canvas').getBoundingClientRect().height"))

    before, button = height(), page.find_element("id", "wide")
    button.click()
    assert button.text == "Small"
    assert page.execute_script("return document.getElementById('picture').getBoundingClientRect().top") == 0
    button.click()
    assert (height(), button.text) == (before, "Large")


@pytest.mark.parametrize("system", ["light", "dark"])
def test_light_and_dark_as_the_system_says_until_the_reader_chooses(shown: Open, driver: Any, system: str) -> None:
    def paper() -> int:
        return int(driver.execute_script("return getComputedStyle(document.body).backgroundColor.match(/\\d+/)[0]"))

    driver.execute_cdp_cmd(
        "Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": system}]}
    )
    try:
        page = shown(Report(model="Net"))
        assert (paper() < 100) == (system == "dark")
        page.find_element("id", "theme").click()
        assert (paper() < 100) != (system == "dark")
    finally:
        driver.execute_script("try { localStorage.clear() } catch {}")
        driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})


def test_on_a_phone_nothing_is_cut_off(shown: Open, driver: Any, tmp_path: Path) -> None:
    metrics = {"width": 380, "height": 800, "deviceScaleFactor": 1, "mobile": True}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    try:
        file = tmp_path / "model.py"
        file.write_text(MODEL)
        page = shown(small_report(file))
        assert page.execute_script("return document.documentElement.scrollWidth") <= 380
        small = page.execute_script(
            "return [...document.querySelectorAll('svg.plot text')]"
            ".filter((text) => text.getBoundingClientRect().height < 9).length"
        )
        assert small == 0
    finally:
        driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def test_nothing_moves_while_the_page_is_made(page: Any) -> None:
    moved = page.execute_async_script(
        "const done = arguments[0]; let sum = 0;"
        "new PerformanceObserver((list) => { for (const one of list.getEntries()) sum += one.value; })"
        ".observe({ type: 'layout-shift', buffered: true }); setTimeout(() => done(sum), 150)"
    )
    assert moved == 0


def test_names_of_a_stranger_are_texts(shown: Open) -> None:
    page = shown(hostile_report(ok=True))
    assert page.execute_script("return document.scripts.length") == 3
    assert any("<script>alert(1)</script>" in label for label in labels(page))
    page.find_element("id", "search").send_keys("alert")
    assert "found" in side(page)


@pytest.mark.parametrize("modules", [True, False], ids=["in modules", "flat"])
def test_five_thousand_nodes_are_ready_and_can_be_searched(shown: Open, tmp_path: Path, modules: bool) -> None:
    """Few boxes at first, few in any box, and only what lies in the window is drawn."""
    nodes = tuple(
        NodeSummary(
            "MatMul" if n % 3 else "Add", f"node_{n}", (f"v{n - 1}", f"v{max(n - 12, 0)}"), (f"v{n}",),
            f"layers.{n // 50}.{('attn', 'mlp')[n % 50 // 25]}" if modules else "",
            Where(str(tmp_path / "m.py"), n % 40 + 1),
        )
        for n in range(1, 5001)
    )  # fmt: skip
    (tmp_path / "m.py").write_text("x = 1\n" * 50)
    page = shown(Report(model="Net", graph=GraphSummary("main", ("v0",), ("v5000",), nodes)))
    assert 2 <= len(labels(page)) <= 50
    assert "5000 nodes" in side(page)
    page.find_element("id", "search").send_keys("node_4321")
    keys(page, "ENTER")
    assert "node_4321" in side(page)
    assert len(labels(page)) < 300
    page.find_element("id", "unfold").click()
    assert len(labels(page)) < 300
