"""Whose translation counts: the call's own table, or what was registered; and those written with onnxscript."""

from __future__ import annotations

import onnxscript
import pytest
import torch
from onnxscript import opset20

from tests.lower.through_onnx import graph_of, run
from trueport.lower import table
from trueport.lower.lower import lower
from trueport.lower.table import is_leaf, op, translation_for

aten = torch.ops.aten


@pytest.fixture
def registered():
    """What a test registers is forgotten after it."""
    is_leaf(aten.add.Tensor)
    before = dict(table._REGISTERED)
    yield
    table._REGISTERED.clear()
    table._REGISTERED.update(before)


@torch.library.custom_op("trueport_tests::twice", mutates_args=())
def twice(x: torch.Tensor) -> torch.Tensor:
    return x * 2


@twice.register_fake
def _(x):
    return torch.empty_like(x)


@torch.library.custom_op("trueport_tests::unknown", mutates_args=())
def unknown(x: torch.Tensor) -> torch.Tensor:
    return x * 3


@unknown.register_fake
def _(x):
    return torch.empty_like(x)


TWICE = torch.ops.trueport_tests.twice.default


def exported(custom=None):
    lowered = lower(graph_of(lambda x: twice(x) + 1, (torch.ones(3),)), custom=custom)
    assert lowered.model is not None, lowered.diagnostics
    return lowered.model


def test_what_nobody_registered_is_no_leaf():
    assert translation_for(aten.linear.default).takes_builder
    assert translation_for(aten.einsum.default) is None
    assert not is_leaf(TWICE)


def test_a_composite_operator_is_a_leaf_only_if_it_is_ours():
    assert is_leaf(aten.linear.default)
    assert not is_leaf(aten.einsum.default)


def test_a_translation_with_the_builder(registered):
    @op("trueport_tests::twice")
    def translate(op, x):
        return op.Add(x, x)

    model = exported()
    assert run(model, (torch.ones(3),))[0].numpy().tolist() == [3.0] * 3
    assert "Mul" not in [node.op_type for node in model.graph]


def test_a_translation_with_onnxscript(registered):
    @op("trueport_tests::twice")
    def translate(x):
        return opset20.Mul(x, 2.0)

    assert run(exported(), (torch.ones(3),))[0].numpy().tolist() == [3.0] * 3


def test_the_table_of_the_call_comes_first(registered):
    @op("trueport_tests::twice")
    def translate(op, x):
        raise AssertionError("not asked")

    model = exported({TWICE: lambda x: opset20.Mul(x, 2.0)})
    assert run(model, (torch.ones(3),))[0].numpy().tolist() == [3.0] * 3


def test_a_function_of_onnxscript_stays_a_function_of_the_model():
    domain = onnxscript.values.Opset("mine", 1)

    @onnxscript.script(domain)
    def Twice(x):
        return opset20.Add(x, x)

    model = exported({TWICE: Twice})
    assert [(node.domain, node.op_type) for node in model.graph][0] == ("mine", "Twice")
    assert model.opset_imports["mine"] == 1
    assert run(model, (torch.ones(3),))[0].numpy().tolist() == [3.0] * 3


def test_a_node_of_a_domain_that_the_users_runtime_knows():
    model = exported({TWICE: lambda op, x: op.custom("com.example", "Twice", x, times=2)})
    node = next(iter(model.graph))
    assert (node.domain, node.op_type, node.attributes["times"].as_int()) == ("com.example", "Twice", 2)
    assert model.opset_imports["com.example"] == 1


def test_every_failure_is_told_at_its_line():
    def forward(x):
        first = twice(x)
        return twice(first) + unknown(x)

    def broken(op, x):
        raise ValueError("not this one")

    lowered = lower(graph_of(forward, (torch.ones(3, 3),)), custom={TWICE: broken})
    assert lowered.model is None
    codes = [found.code for found in lowered.diagnostics]
    assert codes.count("TP402") == 2
    assert codes.count("TP401") == 1
    lines = [found.where.line for found in lowered.diagnostics if found.code == "TP402"]
    assert lines == [forward.__code__.co_firstlineno + 1, forward.__code__.co_firstlineno + 2]
    assert "not this one" in lowered.diagnostics[0].message


def test_a_result_that_is_left_out_may_not_be_used():
    def forward(x):
        return torch.linalg.lstsq(x, x, driver="gelsd").residuals

    lowered = lower(graph_of(forward, (torch.ones(4, 3),)))
    assert [found.code for found in lowered.diagnostics] == ["TP402"]
    assert "result number 1 is used" in lowered.diagnostics[0].message


def package_with_translations(folder, monkeypatch, name, source):
    """A package that is installed in `folder`, and offers its translations by entry point."""
    info = folder / f"{name}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[trueport.ops]\nmine = {name}\n")
    (folder / f"{name}.py").write_text(source)
    monkeypatch.syspath_prepend(folder)


def test_an_installed_package_offers_its_translations(registered, tmp_path, monkeypatch):
    source = 'import trueport\n\n\n@trueport.op("aten::relu")\ndef relu(op, x):\n    return op.Max(x, 0)\n'
    package_with_translations(tmp_path, monkeypatch, "offers_relu", source)
    table._discover.__wrapped__()
    assert translation_for(aten.relu.default).function.__module__ == "offers_relu"


def test_a_package_whose_translations_are_broken_is_told_and_the_others_stay(registered, tmp_path, monkeypatch):
    package_with_translations(tmp_path, monkeypatch, "broken_offer", 'raise RuntimeError("no such backend")\n')
    with pytest.warns(UserWarning, match=r"translations of broken_offer .* no such backend"):
        table._discover.__wrapped__()
    assert is_leaf(aten.relu.default)
