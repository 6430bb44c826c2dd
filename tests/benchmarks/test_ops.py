"""A small part of the sweep over torch's own samples of every operator: some of each family, judged as there."""

from __future__ import annotations

import pytest

from benchmarks.judge import Subject, Verdict, judge
from benchmarks.ops.kept import Line
from benchmarks.ops.samples import Unmeasurable, chosen, subjects
from benchmarks.ops.worker import Outcome

FIXED = """
abs add addcmul all amax any argmax atan2 baddbmm cumprod cat cdist clamp conj_physical count_nonzero
cumsum diag einsum expand flip floor_divide gather index_add index_put kron lerp logsumexp masked_fill matmul
max/reduction_with_dim median nn.functional.avg_pool2d nn.functional.conv2d nn.functional.cross_entropy
nn.functional.embedding nn.functional.gelu nn.functional.group_norm nn.functional.interpolate/bilinear
nn.functional.layer_norm nn.functional.max_pool2d nn.functional.pad/reflect nn.functional.pixel_shuffle nonzero norm
prod roll scatter_add searchsorted sort split std tril unique var where
""".split()
FREE = "add cat cumsum index_select mean mm nn.functional.layer_norm reshape sort tril".split()
OTHER_DTYPES = [
    ("add", "int64"), ("cumsum", "bfloat16"), ("floor_divide", "int64"), ("logical_not", "bool"), ("matmul", "int64"),
    ("mean", "float16"), ("softmax", "bfloat16"), ("sin", "float64"), ("sum", "bool"), ("where", "bool"),
]  # fmt: skip


def judged(operator, variant, free, folder):
    found = []
    for index, subject in enumerate(subjects(operator, variant, free, limit=2)):
        if isinstance(subject, Subject):
            own = folder / str(index)
            own.mkdir()
            judgement = judge(subject, "trueport", own, lambda _: None)
            found.append((judgement.verdict, judgement.detail))
    return found


@pytest.mark.parametrize("operator", FIXED)
def test_samples_in_float32(operator, tmp_path):
    found = judged(operator, "float32", False, tmp_path)
    assert found and all(verdict is Verdict.FAITHFUL for verdict, _ in found), found


@pytest.mark.parametrize("operator", FREE)
def test_samples_with_every_axis_free(operator, tmp_path):
    found = judged(operator, "float32", True, tmp_path)
    assert found and all(verdict is Verdict.FAITHFUL for verdict, _ in found), found


@pytest.mark.parametrize(("operator", "variant"), OTHER_DTYPES)
def test_samples_in_other_dtypes(operator, variant, tmp_path):
    found = judged(operator, variant, False, tmp_path)
    assert found and all(verdict is Verdict.FAITHFUL for verdict, _ in found), found


def test_what_is_random_or_uninitialised_is_not_measured():
    for operator in ("rand_like", "uniform", "empty_like"):
        assert all(isinstance(subject, Unmeasurable) for subject in subjects(operator, "float32", False, 2))


def test_samples_are_taken_from_everywhere():
    assert chosen(4, 12) == [0, 1, 2, 3]
    assert chosen(100, 5) == [0, 1, 2, 27, 75]
    assert chosen(100, 2) == [0, 1]


def test_only_faithful_samples_count_as_such():
    outcomes = [Outcome(0, "faithful"), Outcome(1, "diagnosed", "TP401", "none"), Outcome(2, "unmeasurable")]
    line = Line.of("add", outcomes)
    assert (line.faithful, line.measured, line.all_faithful) == (1, 2, False)
    assert line.summary == "1/2 1 diagnosed TP401"
