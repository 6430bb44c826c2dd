"""A sample of the shared cases: trueport is faithful, or, where a diagnosis is the right answer, names the line.

The whole list, with the peers, is `python -m benchmarks.cases`.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks import case_files
from benchmarks.case_files import Suite
from benchmarks.judge import Verdict, judge

pytestmark = pytest.mark.skipif(not case_files.available(), reason="../shared/cases is not here")

SAMPLE: list[tuple[Suite, str]] = [
    ("seeds", "nonzero"),
    ("seeds", "masked_gather"),
    ("seeds", "custom_norm"),
    ("seeds", "adaptive_pool_dyn"),
    ("seeds", "adaptive_pool_wrong_fc"),
    ("seeds", "half_input_mismatch"),
    ("seeds", "dtype_mix"),
    ("reports", "dyn_pos_param_expand"),
    ("reports", "dyn_chunk_half"),
    ("reports", "mask_select"),
    ("reports", "op_var_std_unbiased"),
    ("reports", "op_index_put_accumulate"),
    ("reports", "rnn_gru_bias"),
    ("reports", "io_dataclass_output"),
    ("reports", "mut_slice_assign_input"),
    ("reports", "mut_running_mean_state"),
    ("reports", "cplx_complex_output"),
    ("reports", "train_functional_dropout_always_on"),
]

REAL_VIEW = {"cplx_complex_output"}
"""To be diagnosed or, as their note says, exported with the real and the imaginary part as an axis, which is done."""

NOT_YET: dict[str, str] = {}
"""Straight-line cases that do not work yet, with the reason; strict, so that a mended one must be taken out."""


def _parameters() -> list[object]:
    parameters: list[object] = []
    for suite, name in SAMPLE:
        marks = [pytest.mark.xfail(reason=NOT_YET[name], strict=True)] if name in NOT_YET else []
        parameters.append(pytest.param(suite, name, id=name, marks=marks))
    return parameters


@pytest.mark.parametrize(("suite", "name"), _parameters())
def test_faithful_or_where_nothing_else_is_right_diagnosed_at_its_line(suite: Suite, name: str, tmp_path: Path) -> None:
    case = case_files.load_case(suite, name)
    found = judge(case.subject, "trueport", tmp_path, phase=lambda phase: None)
    wanted = Verdict.FAITHFUL if case.expect == "export" or name in REAL_VIEW else Verdict.DIAGNOSED
    assert found.verdict is wanted, f"{found.verdict} {found.code} {found.at}: {found.detail}"


def test_all_that_are_to_be_diagnosed_are_in_the_sample() -> None:
    """So that a new one cannot be forgotten; each is then held to a line of its own file."""
    wanted = {case.name for suite in case_files.SUITES for case in case_files.read(suite) if case.expect == "diagnose"}
    assert wanted <= {name for _, name in SAMPLE}
