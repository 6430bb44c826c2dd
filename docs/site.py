"""`make docs`: puts the pages of the site together in a folder that mkdocs reads.

Most pages are the files beside this one. The others are made when the site is built, from what is true then: a page for
each code from the docstring that `trueport explain` prints, the comparison from benchmarks/results, the notebooks with
what their cells print.

    python docs/site.py FOLDER [--execute]      # --execute runs the notebooks in a kernel
"""

from __future__ import annotations

import json
import re
import shutil
import sys
from pathlib import Path
from typing import Any

from trueport.cli.explain import FAMILIES
from trueport.diagnostics.registry import all_rules, page

HERE = Path(__file__).parent
PROJECT = HERE.parent
RESULTS = PROJECT / "benchmarks" / "results"


def stage(folder: Path, execute: bool = False) -> None:
    """Write all pages of the site."""
    shutil.rmtree(folder, ignore_errors=True)
    for name in ("codes", "results", "notebooks"):
        (folder / name).mkdir(parents=True)
    for file in HERE.glob("*.md"):
        _write(folder / file.name, file.read_text())
    for file in HERE.glob("*.schema.json"):
        shutil.copy(file, folder)
    shutil.copytree(HERE / "images", folder / "images")
    for file in ("CHANGELOG.md", "CONTRIBUTING.md"):
        _write(folder / file.lower(), (PROJECT / file).read_text())
    for file in RESULTS.glob("*.md"):
        _write(folder / "results" / file.name, file.read_text())
    _write(folder / "comparison.md", comparison((HERE / "comparison.md.in").read_text()))
    _write(folder / "codes" / "index.md", _list_of_codes())
    for code, rule in all_rules().items():
        _write(folder / "codes" / f"{code}.md", page(rule))
    for file in (HERE / "notebooks").glob("*.ipynb"):
        cells = json.loads(file.read_text())["cells"]
        _write(folder / "notebooks" / f"{file.stem}.md", _notebook(_executed(file) if execute else cells))


def _write(path: Path, text: str) -> None:
    """Links to other files of the repository become links to their pages."""
    text = re.sub(r"\]\((?:\.\./)?(?:docs/)([\w./-]+\.md)", r"](\1", text)
    text = re.sub(r"\]\((?:\.\./)?benchmarks/results/", "](results/", text)
    text = re.sub(r"\]\((?:\.\./)?(CHANGELOG|CONTRIBUTING)\.md", lambda found: f"]({found[1].lower()}.md", text)
    path.write_text(re.sub(r"(\]\([\w./-]+)\.ipynb\)", r"\1.md)", text))


def comparison(template: str) -> str:
    """The page with its tables: `{{ bench.md: table }}` is the first table of that page, and other words what ends it
    or stands alone: the first table with the line that begins so, or the line that has these words."""

    def part(found: re.Match[str]) -> str:
        text = (RESULTS / found[1]).read_text()
        table = re.search(r"(?:^\|.*\n)+", text, re.MULTILINE)
        if table is None:
            raise ValueError(f"{found[1]} has no table")
        if found[2] == "table":
            return f"{table[0]}\nFrom [{found[1]}](results/{found[1]})."
        line = next(line for line in text.splitlines() if found[2] in line)
        return f"{table[0]}\n{line}\n\nFrom [{found[1]}](results/{found[1]})."

    return re.sub(r"\{\{ ([\w.]+): ([^}]+?) \}\}", part, template)


def _list_of_codes() -> str:
    lines = ["# All codes", "", "What each finding means. `trueport explain TP301` prints the same page.", ""]
    for digit, family in FAMILIES.items():
        rules = {code: rule for code, rule in all_rules().items() if code[2] == digit}
        if rules:
            lines += [f"## TP{digit}xx: {family}", ""]
            lines += [f"- [{code}]({code}.md): {rule.title}" for code, rule in rules.items()] + [""]
    return "\n".join(lines)


def _executed(file: Path) -> list[Any]:
    import nbformat
    from nbclient import NotebookClient

    notebook = nbformat.read(file, as_version=4)
    NotebookClient(notebook, timeout=300, kernel_name="python3").execute(cwd=str(file.parent))
    cells: list[Any] = notebook["cells"]
    return cells


def _notebook(cells: list[Any]) -> str:
    parts = []
    for cell in cells:
        source = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            parts.append(source)
            continue
        parts.append(f"```python\n{source}\n```")
        for output in cell["outputs"]:
            shown = output.get("text") or output.get("data", {})
            if isinstance(shown, dict):
                html, text = shown.get("text/html"), shown.get("text/plain", "")
                parts.append("".join(html) if html else f"```text\n{''.join(text)}\n```")
            else:
                parts.append(f"```text\n{''.join(shown).rstrip()}\n```")
    return "\n\n".join(parts) + "\n"


if __name__ == "__main__":
    stage(Path(sys.argv[1]), execute="--execute" in sys.argv[2:])
