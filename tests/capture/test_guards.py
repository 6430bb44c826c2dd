"""What the trace had to assume about a free size: nothing narrows one silently.

A decision of the user's own code is kept alive as a branch where it can be; whatever is left frozen or narrowed is an
error at its line; what eager needs as well is a note; and a relation between two sizes unifies their names.
"""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.export import Dim

import trueport
from tests.capture.helpers import FREE, assert_captured, assert_exported, line_of, refusal

ROWS = ({0: "rows"},)


def x(*sizes: int) -> torch.Tensor:
    return torch.randn(*sizes)


def errors(model, args, **options):
    return [found for found in refusal(model, args, **options).diagnostics if found.is_error]


# --- frozen


def test_a_reshape_to_a_number_freezes_at_its_line_and_says_the_value():
    def model(y):
        return y.reshape(8, 6)

    (found,) = errors(model, (x(8, 6),), dynamic_shapes=ROWS)
    assert found.code == "TP301"
    assert line_of(found) == "return y.reshape(8, 6)"
    assert "rows" in found.message
    assert "8" in found.message


def test_a_view_with_a_literal():
    def model(y):
        return y.view(4, 2, 3).sum(1)

    (found,) = errors(model, (x(8, 3),), dynamic_shapes=ROWS)
    assert (found.code, line_of(found)) == ("TP301", "return y.view(4, 2, 3).sum(1)")


def test_a_literal_beside_another_free_size():
    """The elements are counted: 12·batch·time = 24·time. That ties no sizes to one another, it freezes the batch."""

    def model(y):
        return y.view(2, y.shape[1], 3, 4)

    (found,) = errors(model, (x(2, 5, 12),), dynamic_shapes=({0: "batch", 1: "time"},))
    assert (found.code, found.facts) == ("TP301", {"size": "batch", "value": "2"})


def test_a_constant_of_one_fixed_length():
    class Positions(nn.Module):
        def __init__(self):
            super().__init__()
            self.table = nn.Parameter(x(8, 3))

        def forward(self, y):
            return y + self.table

    (found,) = errors(Positions(), (x(8, 3),), dynamic_shapes=ROWS)
    assert (found.code, line_of(found)) == ("TP301", "return y + self.table")


def test_a_linear_layer_over_the_free_size():
    (found,) = errors(nn.Linear(8, 2), (x(3, 8),), dynamic_shapes=({1: "width"},))
    assert found.code == "TP301"
    assert "width" in found.message


def test_the_size_taken_as_a_plain_number():
    def model(y):
        n = int(y.shape[0])
        return y * n, torch.zeros(n)

    assert_captured(model, (x(4, 3),), [(x(7, 3),), (x(1, 3),)], dynamic_shapes=ROWS)


def test_numpy_computes_with_the_size():
    import numpy as np

    def model(y):
        return y * float(np.sqrt(np.array(y.shape[0])))

    found = errors(model, (x(4, 3),), dynamic_shapes=ROWS)
    assert found
    assert line_of(found[0]).startswith("return y * float(np.sqrt")


def test_every_freezing_line_is_told():
    def model(y, z):
        first = y.reshape(8, 6)
        second = z.reshape(3, 4)
        return first.sum() + second.sum()

    found = errors(model, (x(8, 6), x(6, 2)), dynamic_shapes=({0: "rows"}, {0: "others"}))
    assert [line_of(each) for each in found] == ["first = y.reshape(8, 6)", "second = z.reshape(3, 4)"]


def test_a_reshape_that_eager_allows_for_more_sizes_stays_free():
    """`reshape(8, -1)` of rows × 6 needs 6 × rows to be a multiple of 8: eager says so, too, and 4 rows will do."""

    def model(y):
        return y.reshape(8, -1)

    assert_exported(model, (x(8, 6),), [(x(4, 6),), (x(16, 6),)], dynamic_shapes=ROWS)


def test_a_reshape_that_shares_memory_for_the_example_alone_stays_free():
    """One patch lies as its transpose does, so torch took the number of patches for 1: a decision about memory."""

    def model(y):
        patches = (y.shape[1] + 3) // 4
        y = torch.nn.functional.pad(y, (0, 4 * patches - y.shape[1]))
        return y.view(y.shape[0], patches, 4).transpose(0, 1).reshape(y.shape[0] * patches, 4) + 1

    wide = ({0: "rows", 1: Dim("wide", min=4)},)
    assert_exported(model, (x(3, 4),), [(x(3, 5),), (x(1, 8),), (x(2, 13),), (x(0, 6),)], dynamic_shapes=wide)


def test_what_is_written_to_a_reshape_that_is_a_copy_for_some_sizes_is_refused():
    """Eager changes `y` where there is one row, and leaves it where there are more: one file cannot do both."""

    def model(x):
        y = x * 1
        y.transpose(0, 1).reshape(-1).add_(1)
        return y

    assert errors(model, (x(1, 4),), dynamic_shapes=ROWS)
    assert errors(model, (x(2, 4),), dynamic_shapes=ROWS)


# --- decided by Python


def test_a_branch_on_a_size_keeps_both_arms():
    def model(y):
        if y.shape[0] > 6:
            return y * 2
        return y + 1

    others = [(x(n, 3),) for n in (7, 6, 1, 0, 12)]
    assert_captured(model, (x(4, 3),), others, dynamic_shapes=ROWS)
    assert_exported(model, (x(4, 3),), others, dynamic_shapes=ROWS)


def test_a_loop_over_a_size_runs_as_often_as_the_size_says():
    def model(y):
        total = torch.zeros(3)
        for i in range(y.shape[0]):
            total = total * 0.5 + y[i]
        return total

    others = [(x(n, 3),) for n in (7, 1, 0)]
    assert_captured(model, (x(4, 3),), others, dynamic_shapes=ROWS)
    assert_exported(model, (x(4, 3),), others, dynamic_shapes=ROWS)


def test_a_branch_that_cannot_be_rewritten_is_refused_at_its_line():
    scope: dict = {}
    exec("def model(y):\n    if y.shape[0] > 6:\n        return y * 2\n    return y + 1\n", scope)
    (found,) = errors(scope["model"], (x(4, 3),), dynamic_shapes=ROWS)
    assert found.code in ("TP107", "TP302")
    assert found.where.line == 2


def test_an_assertion_that_eager_makes_too_is_no_error():
    def model(y):
        assert y.shape[0] % 2 == 0
        return y.reshape(-1, 2, 3).sum(1)

    program = assert_exported(model, (x(4, 3),), [(x(6, 3),)], dynamic_shapes=ROWS)
    assert not any(found.is_error for found in program.report.diagnostics)


# --- declared ranges


def test_a_range_makes_a_decision_harmless():
    def model(y):
        if y.shape[0] > 6:
            return y * 2
        return y + 1

    graph = assert_captured(
        model, (x(8, 3),), [(x(7, 3),), (x(20, 3),)], dynamic_shapes=({0: Dim("rows", min=7, max=20)},)
    )
    assert not graph.assumptions
    assert [str(node.op) for node in graph.root.nodes] == ["aten.mul.Tensor"]


def test_a_range_of_one_side_only():
    def model(y):
        return y[:4].reshape(4, 3)

    assert_exported(model, (x(8, 3),), [(x(4, 3),)], dynamic_shapes=({0: Dim("rows", min=4)},))


# --- left to us


def test_an_automatic_size_that_freezes_is_a_warning():
    def model(y):
        return y.reshape(8, 6) * 2

    program = assert_exported(model, (x(8, 6),), dynamic_shapes=({0: Dim.AUTO},))
    frozen = [found for found in program.report.diagnostics if found.code == "TP301"]
    assert [found.weight.value for found in frozen] == ["warning"]
    assert line_of(frozen[0]) == "return y.reshape(8, 6) * 2"
    assert program.model.graph.inputs[0].shape[0] == 8


def test_an_automatic_size_that_stays_free_is_not_told():
    def model(y):
        return y * 2

    program = trueport.export(model, (x(8, 6),), dynamic_shapes=({0: Dim.AUTO, 1: Dim.AUTO},))
    assert not program.report.diagnostics
    assert all(not str(size).isdigit() for size in program.model.graph.inputs[0].shape)


def test_a_static_size_stays_fixed():
    def model(y):
        return y * 2

    program = trueport.export(model, (x(8, 6),), dynamic_shapes=({0: FREE, 1: Dim.STATIC},))
    assert program.model.graph.inputs[0].shape[1] == 6


# --- relations between sizes


def test_two_sizes_that_must_be_equal_are_told_and_get_one_name():
    def model(a, b):
        return a + b

    args = (x(4, 3), x(4, 3))
    program = assert_exported(model, args, [(x(7, 3), x(7, 3))], dynamic_shapes=({0: "left"}, {0: "right"}))
    related = [found for found in program.report.diagnostics if found.code == "TP303"]
    assert [found.weight.value for found in related] == ["note"]
    assert line_of(related[0]) == "return a + b"
    first, second = program.model.graph.inputs
    assert str(first.shape[0]) == str(second.shape[0])
    assert str(program.model.graph.outputs[0].shape[0]) == str(first.shape[0])


def test_three_sizes_in_a_chain_get_one_name():
    def model(a, b, c):
        return a + b, b * c

    args = (x(4), x(4), x(4))
    program = assert_exported(model, args, dynamic_shapes=({0: "p"}, {0: "q"}, {0: "r"}))
    assert len({str(given.shape[0]) for given in program.model.graph.inputs}) == 1


def test_a_size_that_is_the_sum_of_two():
    def model(a, b, c):
        return torch.cat([a, b]) * c

    args = (x(2), x(3), x(5))
    program = assert_exported(model, args, [(x(1), x(4), x(5))], dynamic_shapes=({0: "p"}, {0: "q"}, {0: "r"}))
    assert [found.code for found in program.report.diagnostics if found.code == "TP303"] == ["TP303"]


def test_derived_dimensions_need_no_relation():
    half = Dim("half")

    def model(a, b):
        return a.reshape(-1, 2).sum(1) + b

    program = assert_exported(model, (x(6), x(3)), [(x(10), x(5))], dynamic_shapes=({0: 2 * half}, {0: half}))
    assert not [found for found in program.report.diagnostics if found.is_error]


@pytest.mark.parametrize("size", [1, 2, 3])
def test_a_small_example_freezes_nothing(size):
    def model(y):
        return torch.softmax(y @ y.t(), -1).sum(0, keepdim=True)

    program = assert_exported(model, (x(size, 3),), [(x(5, 3),)], dynamic_shapes=ROWS)
    assert str(program.model.graph.inputs[0].shape[0]) == "rows"


# --- what torch decides for the sake of speed says nothing of what the user asks


class AfterConvolution(nn.Module):
    """A convolution chooses its kernel by `batch < 16`. Nobody may conclude that the batch is never more than 20."""

    def __init__(self, bound):
        super().__init__()
        self.conv, self.bound = nn.Conv2d(3, 4, 3), bound

    def forward(self, y):
        z = self.conv(y)
        if y.shape[0] > self.bound:
            z = z * 2
        return z


@pytest.mark.parametrize("bound", [15, 20])
def test_a_branch_after_a_convolution_is_kept(bound):
    images = [(x(n, 3, 6, 6),) for n in (1, 15, 16, 17, 21, 40)]
    assert_captured(AfterConvolution(bound), (x(2, 3, 6, 6),), images, dynamic_shapes=({0: "batch"},))


def test_the_kernel_of_a_convolution_is_no_assumption_about_the_batch():
    graph = assert_captured(nn.Conv2d(3, 4, 3), (x(2, 3, 6, 6),), dynamic_shapes=({0: "batch"},))
    assert not [assumption for assumption in graph.assumptions if "16" in str(assumption.expr)]


# --- what torch takes for granted


def test_squeeze_of_every_axis_takes_a_free_size_not_to_be_one():
    """Whether the result has that axis depends on it: where it shows, the line and the way out are named."""

    def model(y):
        z = y * 2
        return z.squeeze()

    (found,) = errors(model, (x(4, 1, 3),), dynamic_shapes=ROWS)
    assert found.code == "TP803"
    assert line_of(found) == "return z.squeeze()"
    assert 'Dim("rows", min=2)' in found.fix
    assert_exported(model, (x(4, 1, 3),), [(x(2, 1, 3),)], dynamic_shapes=({0: Dim("rows", min=2)},))
    assert_exported(lambda y: y.squeeze().sum(), (x(4, 1, 3),), [(x(1, 1, 3),)], dynamic_shapes=ROWS)


def test_squeeze_of_a_free_axis_is_noted_also_behind_one_of_a_plain_axis():
    """A definition that serves some arguments only is asked each time."""

    def model(y):
        z = y.squeeze(1)
        return z.squeeze(0)

    (found,) = errors(model, (x(4, 1, 3),), dynamic_shapes=ROWS)
    assert found.code == "TP803"
    assert line_of(found) == "return z.squeeze(0)"
    assert 'Dim("rows", min=2)' in found.fix


def test_a_list_that_is_returned_with_an_open_length_names_the_line_that_makes_it():
    for cut in (
        lambda y: y.chunk(3),
        lambda y: torch.unsafe_split(y, 2),
        lambda y: torch.unbind_copy(y),
    ):
        program = assert_exported(cut, (x(6, 2),), [(x(0, 2),), (x(1, 2),), (x(5, 2),)], dynamic_shapes=ROWS)
        (found,) = (found for found in program.report.diagnostics if found.code == "TP109")
        assert line_of(found).startswith("lambda y: ")


def test_sizes_that_are_tied_by_a_sum_are_tried_together():
    def model(y, places):
        return torch.trapezoid(y, places)

    assert_exported(
        model, (x(2, 3), x(2, 3)), [(x(2, 5), x(2, 5))], dynamic_shapes=({0: "n", 1: "m"}, {0: "k", 1: "l"})
    )


def test_a_share_of_a_size_that_torch_takes_as_a_number():
    """`int(size * 0.5)` inside torch's own code speaks of floats, which the expression's code has to know."""

    def model(y):
        return torch.nn.functional.fractional_max_pool2d(
            y, 2, output_ratio=(0.5, 0.5), _random_samples=torch.full((1, 3, 2), 0.5)
        )

    for found in errors(model, (x(1, 3, 8, 8),), dynamic_shapes=({2: "rows", 3: "columns"},)):
        assert found.code in ("TP301", "TP302", "TP803")
        assert found.where is not None


# --- broadcasting


class FirstOfAMask(nn.Module):
    """Whether the first row is one, or none at all, depends on the batch."""

    def forward(self, y, mask):
        hidden = y.masked_fill(~mask[:1, None, :], -1e9).softmax(-1)
        return hidden * mask[-1:, None, :]


def test_a_slice_of_one_row_is_broadcast_whatever_the_batch():
    def call(batch):
        return x(batch, 4, 5), torch.rand(batch, 5) > 0.3

    free = ({0: "batch"}, {0: "batch"})
    assert_exported(FirstOfAMask(), call(3), [call(size) for size in (0, 1, 2, 7)], dynamic_shapes=free)


def test_a_size_of_one_or_of_three():
    """The example broadcasts it. Of all other sizes eager takes one."""

    def model(y, z):
        return y + z

    (found,) = errors(model, (x(2, 3), x(2, 1)), dynamic_shapes=({0: "batch"}, {0: "batch", 1: "channels"}))
    assert (found.code, line_of(found)) == ("TP302", "return y + z")
