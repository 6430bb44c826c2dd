"""Flags among the arguments: an input where both sides fit into one model, part of it where only Python can look."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import trueport
from trueport.diagnostics import Severity


class Answers(nn.Module):
    """Returns another structure for another value of the flag, as `use_cache` and `return_dict` do."""

    def forward(self, x, both=False):
        if both:
            return {"sum": x.sum(), "rows": x}
        return {"sum": x.sum()}


class Scales(nn.Module):
    def forward(self, x, double=False):
        return x * 2 if double else x + 1


@pytest.mark.parametrize("both", [False, True])
def test_a_flag_that_decides_what_is_returned_is_kept_and_told(both):
    program = trueport.export(Answers(), (torch.randn(3, 2),), kwargs={"both": both}, dynamic_shapes={"x": {0: "n"}})
    (told,) = [found for found in program.report.diagnostics if found.code == "TP205"]
    assert told.severity is Severity.WARNING
    assert f"both = {both}: kept as in the example" in told.message
    assert program.report.constants == {"both": str(both)}
    assert program.report.verified
    assert [each.name for each in program.report.inputs] == ["x"]
    assert list(program(torch.ones(4, 2), both=both)) == (["sum", "rows"] if both else ["sum"])


def test_a_flag_that_is_named_is_kept_without_a_word():
    program = trueport.export(Answers(), (torch.randn(3, 2),), kwargs={"both": True}, constants=["both"])
    assert not program.report.diagnostics


def test_a_flag_both_of_whose_sides_fit_is_an_input():
    report = trueport.check(Scales(), (torch.randn(3, 2),), kwargs={"double": False})
    assert report.verified
    assert [each.name for each in report.inputs] == ["x", "double"]


def test_a_fault_that_has_nothing_to_do_with_the_flag_is_told_as_it_was():
    class Faulty(Scales):
        def forward(self, x, double=False):
            return super().forward(x, double).numpy().tolist()

    with pytest.raises(trueport.ExportError) as refused:
        trueport.export(Faulty(), (torch.randn(3, 2),), kwargs={"double": False})
    assert not any("kept as in the example" in found.message for found in refused.value.diagnostics)


class Cache:
    """As transformers' own: tensors, and a switch that says whether they are there."""

    def __init__(self):
        self.rows, self.is_initialized = None, False

    def update(self, rows):
        self.rows = rows if self.rows is None else torch.cat([self.rows, rows])
        self.is_initialized = True
        return self.rows


class Remembers(nn.Module):
    def forward(self, x):
        cache = Cache()
        return cache.update(x * 2).sum(), cache


def test_a_switch_of_an_object_that_is_returned_is_part_of_the_object():
    program = trueport.export(Remembers(), (torch.randn(3, 2),), dynamic_shapes=({0: "n"},))
    assert [each.name for each in program.report.outputs] == ["output_0", "output_1_rows"]
    assert program.report.left_out == {"output_1_is_initialized": "True"}
    _, cache = program(torch.ones(5, 2))
    assert cache.is_initialized is True
    assert cache.rows.shape == (5, 2)


def test_a_switch_that_is_another_one_in_eager_is_found():
    """Nothing that forward returns goes unchecked for being no output; so the trace is made once more, as eager."""

    class Sometimes(nn.Module):
        def forward(self, x):
            cache = Cache()
            cache.update(x)
            cache.is_initialized = not torch.compiler.is_exporting()
            return cache

    report = trueport.check(Sometimes(), (torch.randn(5, 2),), dynamic_shapes=({0: "n"},))
    assert report.verified
    assert [found.code for found in report.diagnostics] == ["TP009"]
    assert report.left_out == {"is_initialized": "True"}


def test_a_switch_that_follows_a_free_size_is_an_output():
    class Long(nn.Module):
        def forward(self, x):
            cache = Cache()
            cache.update(x)
            cache.is_initialized = x.shape[0] > 3
            return cache

    program = trueport.export(Long(), (torch.randn(5, 2),), dynamic_shapes=({0: "n"},))
    assert [each.name for each in program.report.outputs] == ["rows", "is_initialized"]
    assert program(torch.ones(2, 2)).is_initialized is False


class Filled:
    """As transformers' StaticCache: rows that are there from the beginning, and how many of them are used."""

    def __init__(self, used, counted):
        self.rows, self.longest, self.used = torch.zeros(6, 2), 6, used
        self.counted = counted


class Fills(nn.Module):
    def forward(self, x, cache):
        cache.rows = cache.rows.index_copy(0, cache.used + torch.arange(x.shape[0]), x)
        cache.used = cache.used + x.shape[0]
        if cache.counted:
            cache.counted += 1
        return cache.rows.cumsum(0), cache


def test_plain_numbers_of_an_object_are_part_of_the_object():
    program = trueport.export(Fills(), (torch.randn(1, 2), Filled(torch.tensor(2), 0)))
    assert [each.name for each in program.report.inputs] == ["x", "cache_rows", "cache_used"]
    assert [each.name for each in program.report.outputs] == ["output_0", "output_1_rows", "output_1_used"]
    x = torch.randn(1, 2)
    (rows, cache), (wanted, after) = program(x, Filled(torch.tensor(4), 0)), Fills()(x, Filled(torch.tensor(4), 0))
    torch.testing.assert_close(torch.as_tensor(rows), wanted)
    assert int(cache.used) == int(after.used) == 5
    assert cache.longest == 6


def test_a_number_that_the_call_counts_up_is_refused_where_it_does_not_come_back():
    class Drops(Fills):
        def forward(self, x, cache):
            return super().forward(x, cache)[0]

    report = trueport.check(Drops(), (torch.randn(1, 2), Filled(torch.tensor(2), 3)))
    assert [found.code for found in report.errors] == ["TP205"]
    assert report.errors[0].message.startswith("cache.counted is 3 before the call and 4 after it")


def test_a_number_that_the_call_counts_up_and_gives_back_is_an_input_and_an_output():
    program = trueport.export(Fills(), (torch.randn(1, 2), Filled(torch.tensor(2), 3)))
    assert [each.name for each in program.report.inputs] == ["x", "cache_rows", "cache_used", "cache_counted"]
    for counted in (0, 1, 3, 8):
        _, cache = program(torch.randn(1, 2), Filled(torch.tensor(4), counted))
        assert cache.counted == (counted + 1 if counted else 0)
