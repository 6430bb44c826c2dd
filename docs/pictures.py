"""The pictures of the README, made anew from real runs: `python docs/pictures.py` (needs chromium and its driver)."""

from __future__ import annotations

import io
import os
import re
import shutil
import sys
import tempfile
from pathlib import Path

import torch
from rich.console import Console
from rich.terminal_theme import MONOKAI

import trueport
from trueport.report.text import print_to, report_lines

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))
SIZE = (1180, 830)


def finding() -> str:
    """What a terminal shows of a model with a number where a size is meant."""
    os.chdir(HERE.parent / "examples" / "tour")
    sys.path.insert(0, os.getcwd())
    from model import Fixed

    report = trueport.check(Fixed(), (torch.randn(2, 4),), dynamic_shapes={"x": {0: "N"}})
    console = Console(record=True, width=100, file=io.StringIO(), force_terminal=True)
    console.print("$ trueport check model.py:Fixed -i x:Nx4\n", style="bold", highlight=False)
    print_to(console, report_lines(report, 96))
    drawn = console.export_svg(title="trueport", theme=MONOKAI, unique_id="finding")
    return re.sub(r"@font-face \{.*?\}\s*", "", drawn, flags=re.DOTALL).replace("Fira Code", "ui-monospace")


def report_page(folder: Path) -> Path:
    from examples.models import reader

    os.chdir(HERE.parent)
    program = trueport.export(reader(), (torch.randn(4, 3),), dynamic_shapes={"words": {0: "N"}})
    program.report.save(folder / "report.html")
    return folder / "report.html"


def photograph(page: Path, picture: Path) -> None:
    """The graph with its `while` unfolded and selected, and the top of the page above it."""
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium") or ""
    for switch in ("headless=new", "no-sandbox", "disable-gpu", "hide-scrollbars", f"window-size={SIZE[0]},{SIZE[1]}"):
        options.add_argument(f"--{switch}")
    driver = webdriver.Chrome(options=options, service=Service(shutil.which("chromedriver")))
    driver.get(page.as_uri())
    search = driver.find_element("id", "search")
    search.send_keys("gemm\n")
    driver.execute_script("document.activeElement.blur(); document.getElementById('search').value = ''")
    driver.execute_script("document.getElementById('graph').scrollIntoView()")
    driver.save_screenshot(str(picture))
    driver.quit()


if __name__ == "__main__":
    (HERE / "images" / "finding.svg").write_text(finding())
    with tempfile.TemporaryDirectory() as made:
        photograph(report_page(Path(made)), HERE / "images" / "report.png")
