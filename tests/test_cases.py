"""A sample of the shared cases: trueport is faithful, or says which line is in the way.

The whole list, with the peers, is `python -m benchmarks.cases`.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks import case_files
from benchmarks.case_files import Suite
from benchmarks.exporters import trueport_exists
from benchmarks.judge import Verdict, judge

pytestmark = [
    pytest.mark.skipif(not case_files.available(), reason="../shared/cases is not here"),
    pytest.mark.skipif(not trueport_exists(), reason="trueport.export is not written yet"),
]

SAMPLE: list[tuple[Suite, str]] = [
    ("seeds", "nonzero"),
    ("seeds", "masked_gather"),
    ("seeds", "custom_norm"),
    ("seeds", "adaptive_pool_dyn"),
    ("seeds", "adaptive_pool_wrong_fc"),
    ("seeds", "half_input_mismatch"),
    ("reports", "dyn_pos_param_expand"),
    ("reports", "dyn_chunk_half"),
    ("reports", "mask_select"),
    ("reports", "op_var_std_unbiased"),
    ("reports", "op_index_put_accumulate"),
    ("reports", "rnn_gru_bias"),
    ("reports", "io_dataclass_output"),
    ("reports", "mut_slice_assign_input"),
    ("reports", "mut_running_mean_state"),
]

NOT_YET: dict[str, str] = {}
"""Straight-line cases that do not work yet, with the reason; strict, so that a mended one must be taken out."""


def _parameters() -> list[object]:
    parameters: list[object] = []
    for suite, name in SAMPLE:
        marks = [pytest.mark.xfail(reason=NOT_YET[name], strict=True)] if name in NOT_YET else []
        parameters.append(pytest.param(suite, name, id=name, marks=marks))
    return parameters


@pytest.mark.parametrize(("suite", "name"), _parameters())
def test_faithful_or_diagnosed_at_its_line(suite: Suite, name: str, tmp_path: Path) -> None:
    case = case_files.load_case(suite, name)
    found = judge(case.subject, "trueport", tmp_path, phase=lambda phase: None)
    assert found.verdict in (Verdict.FAITHFUL, Verdict.DIAGNOSED), f"{found.verdict}: {found.detail}"
    if case.expect == "diagnose":
        assert found.verdict is Verdict.DIAGNOSED
