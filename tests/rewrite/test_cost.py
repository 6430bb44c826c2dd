"""What rewriting costs, in counts and never in seconds: how often a tree is gone over, a file parsed."""

from __future__ import annotations

import importlib.util
import sys
from types import CodeType, ModuleType

import pytest
import torch

import trueport
from trueport.rewrite import functions, walking

_BRANCH = """
        if y.sum() > {i} and x.shape[0] > 2:
            y = y * 2
            for row in x:
                if row.sum() > 3:
                    break
                y = y + row
"""


@pytest.fixture
def load(tmp_path, monkeypatch):
    def imported(text: str) -> ModuleType:
        file = tmp_path / "counted_model.py"
        file.write_text(f"import torch\n{text}", "utf-8")
        spec = importlib.util.spec_from_file_location("counted_model", file)
        module = importlib.util.module_from_spec(spec)
        monkeypatch.setitem(sys.modules, "counted_model", module)
        spec.loader.exec_module(module)
        return module

    return imported


def with_branches(count: int) -> str:
    body = "".join(_BRANCH.format(i=i) for i in range(count))
    return f"class Net(torch.nn.Module):\n    def forward(self, x):\n        y = x.sum(0)\n{body}\n        return y\n"


def looks(monkeypatch, code: CodeType) -> int:
    """How often a rewriting looks at what a node holds."""
    count = 0
    children = walking.children

    def counting(node):
        nonlocal count
        count += 1
        return children(node)

    with monkeypatch.context() as patched:
        for module in ("walking", "build", "exits", "functions"):
            patched.setattr(f"trueport.rewrite.{module}.children", counting)
        functions._rewritten_code.cache_clear()
        functions.rewritten_code(code)
    return count


def test_a_function_of_four_times_the_length_costs_four_times_as_much(load, monkeypatch):
    short = looks(monkeypatch, load(with_branches(3)).Net.forward.__code__)
    long = looks(monkeypatch, load(with_branches(12)).Net.forward.__code__)
    assert short < long < 4.5 * short


def test_the_rest_of_a_file_costs_nothing(load, monkeypatch):
    """A function of a library stands in a file of thousands of lines, which is not gone through for it."""
    other = with_branches(40).replace("Net", "Other")
    alone = looks(monkeypatch, load(with_branches(3)).Net.forward.__code__)
    among_others = looks(monkeypatch, load(other + with_branches(3)).Net.forward.__code__)
    assert among_others == alone


def test_no_node_is_looked_at_more_than_a_few_times(load, monkeypatch):
    code = load(with_branches(12)).Net.forward.__code__
    made = functions.rewritten_definition(code)
    assert looks(monkeypatch, code) < 3 * sum(1 for _ in walking.walk(made))


def test_a_second_export_rewrites_nothing_and_reads_no_file(load, monkeypatch):
    model = load(with_branches(2)).Net()
    trueport.export(model, (torch.ones(3, 3),), verify=False)
    monkeypatch.setattr(functions, "rewrite", _never)
    monkeypatch.setattr(functions, "find_definition", _never)
    program = trueport.export(model, (torch.ones(3, 3),), verify=False)
    assert len(program.captured.rewritten) == 1


def test_a_file_is_parsed_once_for_all_its_functions(load, monkeypatch):
    module = load(with_branches(1) + with_branches(1).replace("Net", "Other"))
    model = torch.nn.Sequential(module.Net(), Unsqueezed(), module.Other())
    before = functions._parsed.cache_info().misses
    program = trueport.export(model, (torch.ones(3, 3),), verify=False)
    assert len(program.captured.rewritten) == 2
    assert functions._parsed.cache_info().misses == before + 1


class Unsqueezed(torch.nn.Module):
    def forward(self, x):
        return x.expand(3, 3)


def _never(*_args):
    raise AssertionError("this was done before")
