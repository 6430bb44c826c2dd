"""Every link of the documentation leads somewhere: to a page of the site, to a heading, to a file of the repository.

Offline: addresses on the net are not asked.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from docs.site import PROJECT, comparison, stage
from trueport.diagnostics.registry import all_rules

OF_THE_REPOSITORY = ["README.md", "CONTRIBUTING.md", "CHANGELOG.md", "examples/ci/README.md", "examples/tour/tour.md"]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site") / "docs"
    stage(folder)
    return folder


def prose(text: str) -> str:
    """Without code, where brackets mean something else."""
    return re.sub(r"`[^`\n]*`", "", re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL))


def links(text: str) -> Iterator[str]:
    for target in re.findall(r"\]\(([^)\s]+)\)", prose(text)) + re.findall(r'<img [^>]*src="([^"]+)"', prose(text)):
        if not re.match(r"[a-z]+:", target):
            yield target


def headings(text: str) -> set[str]:
    """As mkdocs and GitHub name them."""
    without = re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)
    found = re.findall(r"^#+ (.+)$", without, re.MULTILINE)
    return {re.sub(r"[\s-]+", "-", re.sub(r"[^\w\s-]", "", title).strip().lower()) for title in found}


def broken(file: Path) -> list[str]:
    found = []
    for link in links(file.read_text()):
        target, _, heading = link.partition("#")
        at = (file.parent / target).resolve() if target else file
        if not at.exists() or (heading and at.suffix == ".md" and heading not in headings(at.read_text())):
            found.append(link)
    return found


def test_every_link_of_the_site_leads_somewhere(site: Path) -> None:
    pages = sorted(site.rglob("*.md"))
    assert len(pages) > 70
    assert {str(page.relative_to(site)): bad for page in pages if (bad := broken(page))} == {}


@pytest.mark.parametrize("name", OF_THE_REPOSITORY)
def test_every_link_of_the_repository_leads_somewhere(name: str) -> None:
    assert broken(PROJECT / name) == []


def test_what_a_broken_link_is(tmp_path: Path) -> None:
    (tmp_path / "b.md").write_text("# A `b` title!\n")
    page = tmp_path / "a.md"
    page.write_text("[x](b.md#a-b-title) [y](b.md#other) [z](c.md) `[w](d.md)` [n](https://e.org/f.md)\n")
    page.write_text(page.read_text() + "```\n[v](g.md)\n```\n")
    assert broken(page) == ["b.md#other", "c.md"]


def test_every_code_has_its_page_and_is_listed(site: Path) -> None:
    listed = (site / "codes" / "index.md").read_text()
    for code, rule in all_rules().items():
        assert (site / "codes" / f"{code}.md").read_text().startswith(f"# {code}: {rule.title}\n")
        assert f"[{code}]({code}.md)" in listed


def test_the_numbers_of_the_comparison_are_those_of_the_benchmarks(site: Path) -> None:
    page = (site / "comparison.md").read_text()
    assert "{{" not in page
    for name in ("cases", "bench", "mutants", "verify_others", "zoo"):
        rows = [
            row for row in (PROJECT / f"benchmarks/results/{name}.md").read_text().splitlines() if row.startswith("|")
        ]
        assert rows[0] in page
        assert rows[2] in page
    with pytest.raises(StopIteration):
        comparison("{{ bench.md: words that are nowhere }}")


def test_every_page_is_in_the_navigation(site: Path) -> None:
    described = (PROJECT / "mkdocs.yml").read_text()
    for page in site.glob("*.md"):
        assert page.name in described, f"{page.name} is in no menu: add it to mkdocs.yml"
