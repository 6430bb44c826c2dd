"""A sample of `python -m benchmarks.verify_others`: files of the older exporter, some wrong and some right."""

from __future__ import annotations

import pytest

from benchmarks import case_files
from benchmarks.judge import Verdict
from benchmarks.verify_others import Done, listing, summary
from benchmarks.verify_others_run import Found, verify_case

WRONG = ["if_sum_exactly_zero", "loop_while_two_scalars", "op_index_put_accumulate", "shp_longrope_factor_switch"]
RIGHT = ["cf_user_torch_cond", "dyn_linspace_over_size"]


def found(name: str, tmp_path) -> Found:
    suite = next(suite for suite in case_files.SUITES if name in case_files.names(suite))
    return verify_case(suite, name, "legacy", None, folder=tmp_path, phase=lambda name: None)


@pytest.mark.skipif(not case_files.available(), reason="the shared cases are not here")
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", WRONG)
def test_a_file_that_is_wrong_by_the_cases_inputs_is_found_to_be_without_them(name, tmp_path):
    row = found(name, tmp_path)
    assert row.is_wrong
    assert row.codes, row


@pytest.mark.skipif(not case_files.available(), reason="the shared cases are not here")
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", RIGHT)
def test_a_faithful_file_is_not_accused(name, tmp_path):
    row = found(name, tmp_path)
    assert row.verdict in (Verdict.FAITHFUL, None)
    assert row.codes == ()


def test_what_was_done_is_not_done_again(tmp_path):
    row = Found("seeds", "a_case", "legacy", Verdict.SILENT, "wrong", ("TP805",), "told", "7", 1.5)
    Done(tmp_path).keep(row)
    assert Done(tmp_path).row("seeds", "a_case", "legacy") == row
    assert Done(tmp_path).row("seeds", "another", "legacy") is None


def test_the_table_counts_what_was_found_and_who_was_accused():
    rows = [
        Found("seeds", "wrong and found", "legacy", Verdict.SILENT, codes=("TP805",)),
        Found("seeds", "wrong and missed", "legacy", Verdict.INVALID),
        Found("seeds", "right", "dynamo", Verdict.FAITHFUL),
        Found("seeds", "no file", "dynamo", None),
    ]
    both = summary(rows).splitlines()[-1]
    assert "1 of 2" in both
    assert "0 of 1" in both
    assert "not found" in listing(rows)
