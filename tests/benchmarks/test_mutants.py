"""A sample of `python -m benchmarks.mutants`, and what its judge holds to."""

from __future__ import annotations

import ast
import inspect

import onnx
import pytest
import torch

from benchmarks.children import HarnessError
from benchmarks.mutants import cases, derived, edit, judge, kinds, mutations, run, variations
from benchmarks.mutants.__main__ import Done, report
from benchmarks.mutants.cases import Case, Mutant
from benchmarks.mutants.models import all_models
from benchmarks.mutants.run import Row

FOUND = [
    "attention.masked/hidden row is zero",
    "attention.cross/lengths of row 0",
    "indexing.options/never flipped",
    "loops.repeat/four rounds",
    "maths.gelu/by tanh",
    "norms.over_batch/outside the root",
    "thresholds.clamped/up to 15",
    "vision.ceiled/the rest is left out",
]
"""Mutants that are found. Those that are not are in `benchmarks/results/mutants.md`."""
CONTROLS = [
    "attention.masked/operands swapped",
    "loops.repeat/as exported",
    "maths.gelu/optimised by the runtime",
    "vision.pooled/as exported",
]
BY_ID = {case.id: case for case in run.cases()}


def judged(name: str, tmp_path) -> Row:
    named = BY_ID.get(name) or Case(name.split("/")[0], kinds.CONTROL, name.split("/")[1])
    return run.judged(named, folder=tmp_path, phase=lambda name: None)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", FOUND)
def test_a_mutant_is_proven_by_its_witness_and_found_without_it(name, tmp_path):
    row = judged(name, tmp_path)
    assert row.proof
    assert row.found, row


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", CONTROLS)
def test_a_control_is_not_accused(name, tmp_path):
    row = judged(name, tmp_path)
    assert row.counts
    assert not row.found, row


def test_there_is_enough_of_every_kind():
    wrong = [case for case in run.cases() if not case.control]
    assert len(wrong) >= 150
    assert len({case.model for case in wrong}) >= 40
    known = {value for name, value in vars(kinds).items() if name.isupper()}
    assert {case.kind for case in wrong} | {kinds.CONTROL} == known


@pytest.mark.parametrize("module", [cases, derived, edit, judge, kinds, mutations, variations])
def test_what_makes_and_judges_a_mutant_has_no_code_of_trueport(module):
    for node in ast.walk(ast.parse(inspect.getsource(module))):
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
        assert not any(name.split(".")[0] == "trueport" for name in names)


def test_a_witness_is_within_what_was_declared():
    model = all_models()["thresholds.filter"]  # boxes [n, 4] and scores [n]
    judge.refuse_witness(model, (torch.rand(7, 4), torch.rand(7)))
    outside = {
        "is not free": (torch.rand(7, 5), torch.rand(7)),
        "has two values": (torch.rand(7, 4), torch.rand(6)),
        "size 1001": (torch.rand(1001, 4), torch.rand(1001)),
        "float64": (torch.rand(7, 4).double(), torch.rand(7)),
    }
    for reason, call in outside.items():
        with pytest.raises(judge.NotAWitness, match=reason):
            judge.refuse_witness(model, call)
    with pytest.raises(judge.NotAWitness, match="eager refuses"):
        judge.refuse_witness(all_models()["tables.segments"], (torch.tensor([[30]]), torch.tensor([[0]])))


def test_a_change_that_changes_nothing_is_no_mutant(tmp_path):
    model = all_models()["maths.signs"]
    case = Case(model.name, kinds.BOUND, "nothing")
    torch.onnx.export(model.built(), model.call(model.example), tmp_path / "base.onnx", dynamo=False)
    onnx.save(onnx.load(tmp_path / "base.onnx"), tmp_path / "model.onnx")
    with pytest.raises(HarnessError, match="shows nothing"):
        run.mutant_proof(model, case, tmp_path, tmp_path / "model.onnx", model.call(model.example))


def test_witnesses_and_weights_do_not_depend_on_what_ran_before():
    model = all_models()["attention.masked"]
    mutant: Mutant = model.mutants[0]
    first = [model.call(mutant.witness)[0], model.built().q.weight]
    torch.manual_seed(12345)
    second = [model.call(mutant.witness)[0], model.built().q.weight]
    assert all(torch.equal(one, other) for one, other in zip(first, second))


def test_what_was_done_is_not_done_again(tmp_path):
    case = run.cases()[0]
    row = Row(case.model, case.kind, case.name, case.control, proof="differs", codes=("TP805",))
    Done(tmp_path).keep(case, row)
    assert Done(tmp_path).row(case) == row
    assert Done(tmp_path).row(run.cases()[1]) is None


def test_excused_and_warned_count_as_missed_and_a_mutant_that_is_none_does_not_count():
    text = report(
        [
            Row("a.b", kinds.TIES, "found", False, "differs", takes=judge.OTHER_VALUES, codes=("TP805",)),
            Row("a.b", kinds.TIES, "warned", False, "differs", takes=judge.OTHER_VALUES, warnings=("TP805",)),
            Row("a.b", kinds.DERIVED, "derived", False, absent="no place"),
            Row("a.b", kinds.CONTROL, "as exported", True),
            Row("a.b", kinds.CONTROL, "renamed", True, codes=("TP805",)),
        ]
    )
    assert text.startswith("1 of 2 (50 %) mutants of 1 models found; 1 of 2 controls accused.")
    assert "a.b/warned" in text
    assert "- a.b/renamed: TP805" in text
