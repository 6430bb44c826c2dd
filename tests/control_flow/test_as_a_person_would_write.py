"""The ONNX model is what a person would write: nothing computed for nobody, nothing carried that does not change."""

from __future__ import annotations

import collections

import onnx_ir as ir
import torch
from torch import nn

from tests.control_flow.kept_alive import DOWN, FREE, ROWS, UP, assert_kept_alive, rows
from trueport.program import Program


def nodes(program: Program, graph: ir.Graph | None = None) -> list[ir.Node]:
    """All nodes of the model, those of subgraphs too."""
    found = []
    for node in program.model.graph if graph is None else graph:
        found.append(node)
        for attribute in node.attributes.values():
            if attribute.type == ir.AttributeType.GRAPH:
                found += nodes(program, attribute.as_graph())
    return found


def counts(program: Program) -> collections.Counter[str]:
    return collections.Counter(node.op_type for node in nodes(program))


def the(program: Program, kind: str) -> ir.Node:
    (found,) = [node for node in nodes(program) if node.op_type == kind]
    return found


# --- branches


def test_what_an_arm_computes_for_nobody_is_left_out():
    def model(x):
        y = x * 2
        if x.sum() > 0:
            unused = y.exp()
            y = y + unused.new_ones(3)
            dead = y.exp()  # noqa: F841
        return y

    program = assert_kept_alive(model, (UP,), [(DOWN,)], dynamic_shapes=ROWS, ifs=1)
    assert len(the(program, "If").outputs) == 1
    assert counts(program)["Exp"] == 0


def test_a_name_of_one_arm_that_is_not_read_is_no_output():
    def model(x):
        if x.sum() > 2:
            return x + 1
        y = x * 2
        if y.sum() < -2:
            return y
        return y - 1

    program = assert_kept_alive(model, (UP,), [(DOWN,), (DOWN * 0,)], dynamic_shapes=ROWS, ifs=2)
    branches = [node for node in nodes(program) if node.op_type == "If"]
    assert [len(node.outputs) for node in branches] == [1, 1]
    assert counts(program)["ConstantOfShape"] == 0  # no blank stands in for `y` where it is not set


def test_one_if_for_each_if_and_elif():
    def model(x):
        total = x.sum()
        if total > 2:
            y = x + 1
        elif total > 1:
            y = x + 2
        else:
            y = x + 3
        return y

    program = assert_kept_alive(model, (UP,), [(DOWN,), (UP / 8,)], dynamic_shapes=ROWS, ifs=2)
    assert counts(program)["Add"] == 3


def test_a_test_that_is_negated_changes_the_places_of_the_arms():
    def model(x):
        if not (x.sum() > 0):
            return x * 2
        return x

    program = assert_kept_alive(model, (UP,), [(DOWN,), (UP * 0,)], dynamic_shapes=ROWS, ifs=1)
    assert counts(program)["Not"] == 0


def test_the_second_test_of_two_may_always_be_asked_where_its_sizes_are_plain():
    def model(x):
        if x.sum() > 0 and x.max() < 3 and x[0].norm() > 1:
            return x * 2
        return x

    program = assert_kept_alive(model, (UP,), [(DOWN,), (UP * 5,), (UP / 9,)], ifs=1)
    assert counts(program)["And"] == 2


def test_the_second_test_of_two_is_left_alone_where_the_first_makes_it_possible():
    """An empty x has no largest number and no first row: eager does not ask for them."""

    def model(x):
        if x.shape[0] > 0 and x.max() < 3:
            x = x * 2
        if x.sum() > 0 and x[0].sum() < 99:
            x = x + 1
        return x

    inputs = [(UP,), (DOWN,), (UP * 5,), (torch.zeros(0, 3),)]
    assert_kept_alive(model, *_first_of(inputs), dynamic_shapes=ROWS, ifs=4)


def test_true_or_false_is_the_test_itself():
    def model(x):
        large = False
        if x.sum() > 0:
            large = True
        return large, not large

    program = assert_kept_alive(model, (UP,), [(DOWN,), (UP * 0,)], dynamic_shapes=ROWS, ifs=0)
    assert counts(program)["If"] == 0


def test_every_node_is_read():
    def model(x):
        z = torch.zeros_like(x)
        for i in range(x.shape[0]):
            if x[i].sum() > 0:
                z[i] = x[i] * 2
        return z

    program = assert_kept_alive(model, *_first_of(rows(4, 0, 1)), dynamic_shapes=ROWS, ifs=1, loops=1)
    unread = [n for n in nodes(program) if not any(out.is_graph_output() or out.uses() for out in n.outputs)]
    assert unread == []


# --- loops


def test_a_trip_count_that_is_known_at_entry_is_the_loops_own():
    """Neither a condition nor a counter is carried."""

    def model(x):
        total = torch.zeros(3)
        unchanged = x + 1
        for i in range(x.shape[0]):
            total = total + unchanged[i]
        return total, unchanged

    program = assert_kept_alive(model, *_first_of(rows(4, 0, 1)), dynamic_shapes=ROWS, ifs=0, loops=1)
    loop = the(program, "Loop")
    trips, condition, *carried = loop.inputs
    assert trips is not None and condition is None
    assert len(carried) == len(loop.outputs) == 1
    body = loop.attributes["body"].as_graph()
    (go_on,) = [out.producer() for out in body.outputs[:1]]
    assert go_on is not None and go_on.op_type == "Constant"


def test_a_long_plain_range_that_a_value_ends_is_one_loop():
    def root(a):
        low, high = 0.0, max(float(a), 1.0)
        for _ in range(60):
            middle = (low + high) / 2
            if middle * middle > a:
                high = middle
            else:
                low = middle
            if high - low < 1e-4:
                break
        else:
            return torch.tensor(-1.0) * low
        return torch.tensor(middle)

    assert_kept_alive(root, (torch.tensor(2.0),), [(torch.tensor(v),) for v in (0.0, 9.0, 1e4)], loops=1)


def test_layers_that_each_round_looks_up_are_written_out():
    """A layer is no value: a Loop would ask in each round which of them it is."""

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = nn.ModuleList([nn.Linear(3, 3) for _ in range(16)])

        def forward(self, x):
            for i in range(16):
                x = self.layers[i](x).tanh() * 2
                if x.norm() < 1:
                    return x, i
            return x, -1

    torch.manual_seed(0)
    assert_kept_alive(Net().eval(), (torch.randn(3),), [(torch.randn(3) * 9,)], loops=0)


def test_a_tensor_that_no_round_changes_is_not_carried():
    def model(x):
        weights = x.abs()
        bias = torch.ones(3)
        h = x[0]
        while h.sum() < 10:
            h = (h + bias).abs() + weights[0]
        return h

    program = assert_kept_alive(model, (UP,), [(DOWN,), (UP * 5,)], dynamic_shapes=ROWS, loops=1)
    _, condition, *carried = the(program, "Loop").inputs
    assert condition is not None
    assert len(carried) == 1


def test_a_counter_that_nobody_reads_is_not_carried():
    def model(x):
        h = x.sum()
        steps = 0
        while h > 1:
            h = h / 2
            steps += 1
        return h

    program = assert_kept_alive(model, (UP,), [(DOWN,), (UP * 9,)], loops=1)
    assert len(the(program, "Loop").outputs) == 1


def test_what_rounds_append_is_one_scanned_output():
    def model(x):
        out = []
        for row in x:
            out.append(row * 2)
        return torch.stack(out)

    program = assert_kept_alive(model, *_first_of(rows(4, 2, 1)), dynamic_shapes=ROWS, loops=1)
    loop = the(program, "Loop")
    assert len(loop.inputs) == 2 and len(loop.outputs) == 1


def test_a_break_is_the_condition_of_the_loop():
    """The flag that stands for it is the test of the `if`, and no round asks what it was before."""

    def model(x):
        total = torch.zeros(3)
        for i in range(x.shape[0]):
            if x[i].sum() > 2:
                break
            total = total + x[i]
        return total

    inputs = [(torch.zeros(4, 3),), (UP,), (torch.zeros(0, 3),), (torch.tensor([[0.0, 0, 1], [2, 2, 2], [1, 1, 1]]),)]
    program = assert_kept_alive(model, *_first_of(inputs), dynamic_shapes=ROWS, ifs=1, loops=1)
    assert len(the(program, "Loop").outputs) == len(the(program, "If").outputs) == 1
    assert counts(program)["Not"] == 1


def test_a_break_at_the_end_of_a_round_needs_no_branch():
    def model(x):
        steps = 0
        while True:
            x = x * 1.5 + 1
            steps += 1
            if x.sum() > 100:
                break
        return x, steps

    program = assert_kept_alive(model, (UP,), [(DOWN,), (UP * 50,)], ifs=0, loops=1)
    body = the(program, "Loop").attributes["body"].as_graph()
    assert [node.op_type for node in body if node.op_type != "Constant"] == [
        *("Mul", "Add", "ReduceSum", "Greater", "Not", "Add")
    ]


def test_a_size_that_grows_until_it_is_known_to_be_enough_is_one_loop():
    """The first nine rounds are certain for any `x` that has a row; written out, they would be nine copies."""

    def model(x):
        h = x[:1]
        while h.shape[0] < 10:
            h = torch.cat([h, h[-1:] * 2])
        return h

    program = assert_kept_alive(model, (UP,), [(DOWN,), (UP[:1],)], dynamic_shapes=ROWS, loops=1)
    assert counts(program)["Concat"] == 1


def test_a_flag_of_the_users_that_ends_the_loop_is_its_condition():
    def model(x):
        done = False
        while not done:
            x = x * 0.5
            if x.norm() < 1:
                done = True
        return x

    program = assert_kept_alive(model, (UP,), [(DOWN * 9,), (DOWN * 0,)], ifs=0, loops=1)
    assert len(the(program, "Loop").outputs) == 1


def test_a_flag_that_ends_the_loop_later_is_carried():
    """Here a round may begin with a flag that is set: the loop does not end at once."""

    def model(x):
        seen = False
        steps = 0
        while x.norm() > 1 or not seen:
            x = x * 0.5
            steps += 10 if seen else 1
            if x.sum() < 3:
                seen = True
        return x, steps

    assert_kept_alive(model, (UP,), [(DOWN * 9,), (DOWN * 0,), (UP * 40,)], loops=1)


def test_a_return_in_a_loop_carries_what_it_returns_and_whether():
    def model(x):
        for i in range(x.shape[0]):
            if x[i].sum() > 1:
                return x[i] * 2
        return x.sum(0)

    inputs = [(UP,), (DOWN,), (torch.zeros(0, 3),), (torch.tensor([[0.0, 0, 0], [2, 2, 2]]),)]
    program = assert_kept_alive(model, *_first_of(inputs), dynamic_shapes=ROWS, ifs=2, loops=1)
    assert len(the(program, "Loop").outputs) == 2
    assert [len(node.outputs) for node in nodes(program) if node.op_type == "If"] == [1, 1]


def test_a_test_of_a_tensor_and_a_number_is_one_test():
    def model(x):
        steps = 0
        while x.norm() > 1 and steps < 10:
            x = x / 2
            steps += 1
        return x, steps

    program = assert_kept_alive(model, (UP,), [(UP * 1e6,), (UP / 99,)], ifs=0, loops=1)
    assert counts(program)["And"] == 1


def test_the_arithmetic_of_counters_takes_no_axes():
    def model(x, start: int):
        for i in range(start, x.shape[0]):
            x = x + x[(2 * i + 1) % 3]
        return x

    program = assert_kept_alive(
        model, (UP, 1), [(DOWN, 0), (UP, 9)], dynamic_shapes={"x": {0: FREE}, "start": FREE}, loops=1
    )
    body = the(program, "Loop").attributes["body"].as_graph()
    assert not {"Reshape", "Squeeze", "Unsqueeze", "Shape"} & {node.op_type for node in body}


def test_a_size_is_asked_for_before_the_loop():
    def model(x, y):
        total = torch.zeros(())
        for row in x:
            total = total + row.sum() * y.shape[0]
        return total

    inputs = [(UP, torch.ones(5)), (DOWN, torch.ones(2)), (torch.zeros(0, 3), torch.ones(1))]
    program = assert_kept_alive(model, *_first_of(inputs), dynamic_shapes=({0: FREE}, {0: FREE}), loops=1)
    assert "Shape" not in {node.op_type for node in the(program, "Loop").attributes["body"].as_graph()}


def test_what_a_round_appends_is_given_no_axis_to_lose_it_again():
    def model(x):
        out = []
        for row in x:
            out.append(row.exp())
        return torch.stack(out)

    program = assert_kept_alive(model, *_first_of(rows(4, 2, 1)), dynamic_shapes=ROWS, loops=1)
    assert counts(program)["Unsqueeze"] == 0


def _first_of(inputs):
    return inputs[0], inputs[1:]
