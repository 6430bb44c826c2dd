"""Arms that leave a name with different things: merged where one value can be both, otherwise refused."""

from __future__ import annotations

import torch
from torch import nn

import trueport
from tests.control_flow.kept_alive import DOWN, ROWS, UP, assert_kept_alive, refused


def both(model, **options):
    return assert_kept_alive(model, (UP,), [(DOWN,), (torch.zeros(4, 3),)], **options)


def test_in_shape():
    def model(x):
        if x.sum() > 0:
            y = x[:2]
        else:
            y = torch.cat([x, x])
        return y * 2, y.shape[0]

    both(model, ifs=1, verify=True)


def test_in_the_number_of_columns_and_rows():
    def model(x):
        y = x.reshape(2, 6) if x.sum() > 0 else x[:1, :1]
        return y.sum(0), y.shape

    both(model, ifs=1)


def test_in_a_python_number():
    def model(x):
        if x.sum() > 0:
            n, scale, flag = 1, 0.5, True
        else:
            n, scale, flag = 2, 3, False
        return x[:n] * scale, n + 1, flag

    both(model, ifs=1)


def test_the_number_of_one_tensor_read_in_both_arms():
    """It is read where it is needed: what an arm read is not in sight after the branch."""

    def model(x):
        total = x.sum()
        if x[0, 0] > 0:
            y, n = x * 2, total.item()
        else:
            y, n = x, total.item()
        return y * n, n, max(-8.0, min(8.0, total.item()))

    both(model, ifs=1)


def test_a_number_and_a_tensor():
    def model(x):
        y = x.sum() if x.sum() > 0 else 0.0
        z = 1
        if x.sum() > 0:
            z = x.argmax()
        return x * y + z

    both(model)


def test_in_none_where_nobody_reads_it():
    def model(x):
        mask = None
        if x.sum() > 0:
            mask = x > 0
            x = x * mask
        return x + 1

    both(model, ifs=1)


def test_in_none_that_is_asked_for():
    def model(x):
        mask = None
        if x.sum() > 0:
            mask = x > 0
        if mask is None:
            return x - 1
        return x * mask

    both(model)


def test_in_none_given_to_a_module():
    class Masked(nn.Module):
        def forward(self, x, mask=None):
            if mask is not None:
                x = x * mask
            return x + 1

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = Masked()

        def forward(self, x):
            mask = None
            if x.sum() > 0:
                mask = x * 3
            return self.inner(x, mask)

    both(Net().eval())


def test_in_none_given_to_a_function_of_torch():
    def model(x):
        bias = None
        if x.sum() > 0:
            bias = x.sum(0)
        return torch.nn.functional.linear(x, torch.eye(3), bias)

    both(model)


def test_in_structure_where_nobody_reads_it():
    def model(x):
        if x.sum() > 0:
            seen = (x, x)
            y = seen[0] + seen[1]
        else:
            seen = {"a": x}
            y = seen["a"] * 3
        return y

    both(model, ifs=1)


def test_in_structure_that_is_read():
    """What follows is traced in each arm."""

    def model(x):
        if x.sum() > 0:
            pair = (x, x * 2)
        else:
            pair = (x,)
        return sum(pair)

    both(model)


def test_in_a_string_that_picks_a_layer():
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            torch.manual_seed(0)
            self.heads = nn.ModuleDict({"a": nn.Linear(3, 2), "b": nn.Linear(3, 2)})

        def forward(self, x):
            key = "a" if x.sum() > 0 else "b"
            return self.heads[key](x)

    both(Net().eval())


def test_in_the_length_of_a_list():
    def model(x):
        parts = [x]
        if x.sum() > 0:
            parts.append(x * 2)
            parts.append(x * 3)
        return torch.cat(parts), len(parts), parts[-1]

    both(model, ifs=1)


def test_in_a_dict_key():
    def model(x):
        seen = {"x": x}
        if x.sum() > 0:
            seen["y"] = x * 2
        else:
            seen["y"] = x - 1
        seen["x"] = seen["x"] + seen["y"]
        return seen

    both(model, ifs=1)


def test_the_same_tensor_in_both():
    def model(x):
        y = x * 2
        z = y if x.sum() > 0 else x
        return z + y

    both(model, ifs=1)


def test_disagreement_in_dtype_shows_both_arms():
    def model(x):
        if x.sum() > 0:
            y = x.long()
        else:
            y = x
        return y

    found = refused(model, (UP,))
    first = model.__code__.co_firstlineno
    assert found.code == "TP103"
    assert found.where.line == first + 1
    assert "int64" in found.message
    assert "float32" in found.message
    lines = {label.place.where.line if hasattr(label, "place") else label.where.line for label in found.also}
    assert lines == {first + 2, first + 4}


def test_disagreement_in_rank():
    def model(x):
        y = x if x.sum() > 0 else x.sum(0)
        return y

    found = refused(model, (UP,))
    assert found.code == "TP103"
    assert "2 axes" in found.message
    assert "1 axes" in found.message


def test_disagreement_in_what_is_returned():
    def model(x):
        if x.sum() > 0:
            return x
        return None

    found = refused(model, (UP,))
    assert found.code == "TP103"
    assert "None" in found.message


def test_a_text_that_is_returned_says_both_texts():
    def model(x):
        kind = "many" if x.sum() > 0 else "few"
        return x * 2, kind

    found = refused(model, (UP,))
    assert found.code == "TP103"
    assert "the text 'many'" in found.message
    assert "a number that stands for the text" in found.fix


class StateFromNone(nn.Module):
    """A state that is None before the first step, and a result; without any step, eager refuses, or gives None."""

    def __init__(self, refuses):
        super().__init__()
        self.gru, self.refuses = nn.GRU(3, 2), refuses

    def forward(self, x):
        state, outs = None, []
        for t in range(x.size(0)):
            out, state = self.gru(x[t : t + 1], state)
            outs.append(out)
        return (torch.cat(outs) if self.refuses else x.sum()), state


def test_none_for_no_rounds_only_is_for_eager_to_judge():
    given = [torch.randn(n, 3) for n in (1, 2, 6)]
    program = assert_kept_alive(
        StateFromNone(refuses=True), (given[1],), [(x,) for x in given], dynamic_shapes=ROWS, verify=True
    )
    [needed] = [found for found in program.report.diagnostics if found.code == "TP305"]
    assert "> 0" in needed.message
    assert refused(StateFromNone(refuses=False), (given[1],), dynamic_shapes=ROWS).code == "TP302"


def test_an_argument_that_decides_what_is_returned_is_kept_and_told():
    class ReturnDict(nn.Module):
        def forward(self, x, return_dict=None):
            return {"logits": x * 2, "loss": None} if return_dict else (x * 2,)

    report = trueport.check(ReturnDict(), (UP, True))
    (found,) = [each for each in report.diagnostics if each.code == "TP205"]
    assert "return_dict = True: kept as in the example" in found.message
    assert "a dict where the test holds, a tuple where not" in found.seen[0]
    assert 'constants=["return_dict"]' in found.fix
    assert report.verified
    assert_kept_alive(ReturnDict(), (UP, True), [(DOWN, True)], constants=["return_dict"])


def test_tuples_of_different_lengths_are_told_apart():
    def model(x):
        return (x, 1) if x.sum() > 0 else (x, 1, x * 2)

    assert "is a tuple of 2 where the test holds, a tuple of 3 where not" in refused(model, (UP,)).message


def test_none_a_tensor_and_a_text_on_three_ways():
    def model(x):
        if x.sum() > 0:
            y = None if x[0, 0] > 0 else x
        else:
            y = "text"
        if isinstance(y, str):
            return x + 1
        return x + 2 if y is None else y + 3

    mixed = UP.clone()
    mixed[0, 0] = -1.0
    assert_kept_alive(model, (UP,), [(DOWN,), (mixed,)])


def test_a_pair_that_may_be_none_and_is_not_bound_in_the_other_arm():
    def model(x):
        if x.sum() > 0:
            pair = None if x[0, 0] > 0 else (x, x + 1)
        if x.sum() > 0 and pair is not None:
            return pair[0] + pair[1]
        return x

    mixed = UP.clone()
    mixed[0, 0] = -1.0
    assert_kept_alive(model, (UP,), [(DOWN,), (mixed,)])


def test_a_list_that_one_arm_binds_stays_one_that_may_grow():
    def model(x):
        if x.sum() > 0:
            kept = [x, x + 1]
        if x.sum() > 0:
            if x[0, 0] > 0:
                kept.append(x * 3)
            return torch.stack(kept).sum(0)
        return x

    mixed = UP.clone()
    mixed[0, 0] = -1.0
    assert_kept_alive(model, (UP,), [(DOWN,), (mixed,)])


def test_zeros_of_both_signs_are_two_numbers():
    def model(x):
        zero = 0.0 if x.sum() > 0 else -0.0
        return torch.copysign(x, x.abs() * zero)

    program = trueport.export(model, (UP,))  # a replay of the graph counts with sympy, which has one zero
    for x in (UP, DOWN):
        assert torch.equal(program(x), model(x))
