"""What a loop carries from round to round, and what it leaves behind."""

from __future__ import annotations

import functools
from collections import deque
from dataclasses import dataclass

import torch
from torch import nn

from tests.control_flow.kept_alive import FREE, ROWS, assert_kept_alive, refused, rows

X = torch.tensor([[0.5, -1.0, 2.0], [1.0, 2.0, 3.0]])


def by_rows(model, *counts, **options):
    example, *others = rows(*(counts or (4, 1, 7, 0)))
    return assert_kept_alive(model, example, others, dynamic_shapes=ROWS, **options)


def by_count(model, **options):
    return assert_kept_alive(model, (X, torch.tensor(3)), [(X, torch.tensor(n)) for n in (0, 1, 8)], **options)


# --- tensors


def test_a_growing_tensor():
    def model(x, n):
        out = x
        for i in range(n):
            out = torch.cat([out, x[:1] * i])
        return out

    by_count(model, loops=1, verify=True)


def test_a_tensor_that_grows_from_nothing():
    def model(x, n):
        out = x[:0]
        for i in range(n):
            out = torch.cat([out, x + i])
        return out

    by_count(model, loops=1)


def test_a_shrinking_tensor():
    def model(x):
        while x.shape[0] > 1:
            x = x[::2] + x.mean()
        return x

    by_rows(model, loops=1)


def test_greedy_decoding():
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            torch.manual_seed(3)
            self.emb, self.out = nn.Embedding(7, 5), nn.Linear(5, 7)

        def forward(self, ids):
            for _ in range(6):
                logits = self.out(self.emb(ids).mean(1))
                token = logits.argmax(-1, keepdim=True)
                ids = torch.cat([ids, token], 1)
                if (token == 3).all():
                    break
            return ids

    others = [(torch.randint(0, 7, (b, s)),) for b, s in ((1, 4), (2, 1), (3, 5))]
    assert_kept_alive(
        Net().eval(), (torch.zeros(2, 3, dtype=torch.int64),), others, dynamic_shapes=({0: FREE, 1: FREE},)
    )


def test_an_unchanged_tensor_is_not_carried():
    def model(x):
        scale = x.abs().max() + 1 if x.shape[0] > 0 else torch.ones(())
        total = torch.zeros(3)
        for row in x:
            total = total + row * scale
        return total

    program = by_rows(model, loops=1)
    (loop,) = [node for node in program.captured.root.walk() if str(node.op) == "Control.LOOP"]
    assert len(loop.outputs) == 1


def test_names_that_change_places():
    def model(x, n):
        a, b = x[0], x[1]
        for _ in range(n):
            a, b = b, a + b
        return a, b

    by_count(model, loops=1)


# --- numbers and structures


def test_numbers():
    def model(x, n):
        count, scale, flipped = 0, 1.0, False
        for i in range(n):
            count += i
            scale = scale * 0.5
            flipped = not flipped
        return x * scale + count, count, scale, flipped

    by_count(model, loops=1)


def test_a_number_that_becomes_a_tensor():
    def model(x):
        total = 0
        for row in x:
            total = total + row.sum()
        return x * total

    by_rows(model, loops=1)


def test_an_int_that_becomes_a_float():
    def model(x, n):
        scale = 1
        for _ in range(n):
            scale = scale / 2 + 1
        return x * scale

    by_count(model, loops=1)


def test_a_tuple_a_list_and_a_dict():
    def model(x, n):
        pair = (x[0], 0)
        items = [x[0], x[1]]
        named = {"sum": x.sum(), "rounds": 0}
        for i in range(n):
            pair = (pair[1] + x[1], i)
            items = [items[1], items[0] + 1]
            named = {"sum": named["sum"] * 0.5, "rounds": named["rounds"] + 1}
        return pair[1], items, named

    by_count(model, loops=1)


def test_a_dataclass():
    @dataclass
    class Seen:
        total: torch.Tensor
        rounds: int

    def model(x, n):
        seen = Seen(x.sum(), 0)
        for _ in range(n):
            seen.total = seen.total * 0.5 + 1
            seen.rounds += 1
        return x * seen.total + seen.rounds

    by_count(model, loops=1)


def test_dict_and_list_changed_in_place():
    def model(x, n):
        state = {"h": x[0], "rounds": 0}
        pair = [x[0], x[1]]
        for i in range(n):
            state["h"] = torch.tanh(state["h"] + x[1])
            state["rounds"] += 1
            pair[0], pair[1] = pair[1], pair[0] * i
            pair[1] += 1
        return state["h"], state["rounds"], pair[0], pair[1]

    by_count(model, loops=1)


def test_a_nested_container_changed_in_place():
    def model(x, n):
        state = {"layers": [x[0], x[1]]}
        for i in range(n):
            for k in range(2):
                state["layers"][k] = state["layers"][k] * 0.5 + i
        return state["layers"][0] + state["layers"][1]

    by_count(model, loops=1)


def test_a_window_that_slides():
    def model(x):
        window = deque([torch.zeros(3), torch.zeros(3)], maxlen=2)
        for row in x:
            window.append(row)
        return window[0] + 2 * window[1]

    by_rows(model, loops=1)


# --- lists that grow


def test_a_list_that_is_stacked():
    def model(x):
        outs = []
        for row in x:
            outs.append(row * 2)
        return torch.stack(outs), torch.stack(outs, dim=1)

    by_rows(model, 4, 1, 7, loops=1)


def test_a_list_that_is_concatenated():
    def model(x):
        outs = []
        for row in x:
            outs.append(row.reshape(1, 3) * 2)
        return torch.cat(outs), torch.cat(outs, dim=1), torch.cat(outs, -1)

    by_rows(model, 4, 1, 7, loops=1)


def test_a_list_with_something_before_and_after():
    def model(x):
        outs = [x.sum(0)]
        for row in x:
            outs.append(row * 2)
        outs.append(outs[0] + 1)
        return torch.stack(outs), len(outs)

    by_rows(model, loops=1)


def test_a_list_that_is_indexed():
    def model(x):
        outs = []
        for row in x:
            outs.append(row * 2)
        return outs[0], outs[-1], outs[len(outs) // 2]

    by_rows(model, 4, 1, 7, loops=1)


def test_the_last_item_read_inside_the_loop():
    def model(x):
        outs = [torch.zeros(3)]
        for row in x:
            outs.append(torch.tanh(outs[-1] + row))
        return torch.stack(outs)

    by_rows(model, loops=1)


def test_the_last_two_items_read_inside_the_loop():
    def model(x, n):
        seen = [x[0], x[1]]
        for _ in range(n):
            seen.append(seen[-1] + seen[-2] * 0.5)
        return torch.stack(seen), seen[-1]

    by_count(model, loops=1)


def test_any_item_read_inside_the_loop():
    def model(x):
        outs = []
        for i in range(x.shape[0]):
            outs.append(x[i] if i == 0 else outs[i - 1] + outs[i // 2] + x[i])
        return torch.stack(outs)

    by_rows(model, 4, 1, 7, loops=1)


def test_the_length_read_inside_the_loop():
    def model(x):
        outs = []
        for row in x:
            outs.append(row * len(outs))
        return torch.stack(outs)

    by_rows(model, 4, 1, 7, loops=1)


def test_two_items_each_round():
    def model(x):
        outs = []
        for row in x:
            outs.append(row)
            outs.append(row * 2)
        return torch.stack(outs), len(outs)

    by_rows(model, 4, 1, 7, loops=1)


def test_extend_and_plus():
    def model(x):
        outs, more = [], []
        for row in x:
            outs.extend([row, -row])
            more += [row + 1]
        return torch.stack(outs), torch.stack(more)

    by_rows(model, 4, 1, 7, loops=1)


def test_items_appended_in_one_arm_only():
    def model(x):
        outs = []
        for row in x:
            if row.sum() > 0:
                outs.append(row)
        if len(outs) > 0:
            return torch.stack(outs)
        return torch.zeros(0, 3)

    by_rows(model, loops=1)


def test_items_of_changing_size():
    def model(x):
        outs = []
        for i in range(x.shape[0]):
            outs.append(x[: i + 1])
        return torch.cat(outs), outs[-1]

    by_rows(model, 4, 1, 7, loops=1)


def test_items_of_one_size_per_mask():
    """The list of kept rows of each class, as detectors do."""

    def model(x, n):
        kept = []
        for i in range(n):
            kept.append(x[x[:, 0] > i])
        return torch.cat(kept)

    assert_kept_alive(model, (X * 2, torch.tensor(3)), [(X * 2, torch.tensor(n)) for n in (1, 2, 5)], loops=1)


def test_numbers_in_a_list():
    def model(x):
        sizes = []
        for i in range(x.shape[0]):
            sizes.append(i * 2)
        return x * sum(sizes), max(sizes), torch.tensor(sizes)

    by_rows(model, 4, 1, 7, loops=1)


def test_tuples_in_a_list():
    def model(x):
        pairs = []
        for i, row in enumerate(x):
            pairs.append((row, row.sum() * i))
        total = torch.zeros(3)
        for row, weight in pairs:
            total = total + row * weight
        return total, torch.stack([weight for _, weight in pairs])

    by_rows(model, 4, 1, 7)


def test_a_list_gone_through_by_a_second_loop():
    def model(x):
        outs = []
        for row in x:
            outs.append(row * 2)
        total = torch.zeros(3)
        for i, out in enumerate(reversed(outs)):
            total = total * 0.5 + out * i
        return total

    by_rows(model, loops=2)


def test_lists_of_two_loops_one_after_the_other():
    def model(x):
        outs = []
        for row in x:
            outs.append(row * 2)
        for row in x:
            outs.append(row * 3)
        return torch.stack(outs)

    by_rows(model, 4, 1, 7, loops=2)


def test_a_list_filled_by_nested_loops():
    def model(x):
        outs = []
        for i in range(x.shape[0]):
            for j in range(i + 1):
                outs.append(x[i] * x[j])
        return torch.stack(outs)

    by_rows(model, 4, 1, 7, loops=2)


def test_a_list_as_a_stack():
    def model(x):
        waiting = [x.sum()]
        total = torch.zeros(())
        while len(waiting) > 0:
            item = waiting.pop()
            total = total + item
            if item.abs() > 1:
                waiting.append(item / 2)
                waiting.append(item / 3)
        return total

    by_rows(model, loops=1)


def test_lists_that_change_places():
    def model(x):
        a, b = [x[:1]], []
        for row in x:
            a.append(row[None] * len(b))
            a, b = b, a
        a.append(x[:1])
        return torch.cat(a), torch.cat([x[:1], *b])

    by_rows(model, 4, 1, 2, 7)


def test_a_frontier_that_is_replaced_by_the_next():
    def model(x):
        current, following = [x.sum(0)], []
        for row in x:
            for item in current:
                following.append(item + row)
                if item.sum() > 0:
                    following.append(item - row)
            current, following = following, []
        return torch.stack(current), len(current)

    by_rows(model, 3, 0, 1, 5)


def test_a_list_in_a_partial_function():
    def note(outs, row):
        outs.append(row * 2)

    def model(x):
        outs = []
        each = functools.partial(note, outs)
        for row in x:
            each(row)
        return torch.stack(outs)

    by_rows(model, 4, 1, 7, loops=1)


def test_a_list_attribute_of_the_model():
    class Net(nn.Module):
        def forward(self, x):
            self.seen = []
            for row in x:
                self.seen.append(row * 2)
            return torch.stack(self.seen)

    by_rows(Net().eval(), 4, 1, 7, loops=1)


def test_a_list_filled_by_a_helper():
    def note(outs, row):
        outs.append(row * 2)

    def model(x):
        outs = []
        for row in x:
            note(outs, row)
        return torch.stack(outs)

    by_rows(model, 4, 1, 7, loops=1)


# --- names


def test_a_name_first_assigned_in_the_body():
    def model(x):
        last = x.new_zeros(3)
        for row in x:
            part = row * 2
            last = part + 1
        if x.shape[0] > 0:
            last = last + part
        return last

    by_rows(model, loops=1)


def test_none_before_the_loop():
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            torch.manual_seed(0)
            self.cell = nn.GRUCell(3, 3)

        def forward(self, x):
            h = None
            for row in x:
                h = self.cell(row.unsqueeze(0), h)
            return h

    at_least_one = ({0: torch.export.Dim("n", min=1)},)
    example, *others = rows(4, 1, 7)
    assert_kept_alive(Net().eval(), example, others, dynamic_shapes=at_least_one, loops=1, ifs=0)

    found = refused(Net().eval(), example, dynamic_shapes=ROWS)
    assert found.code == "TP302", "eager gives None for no rows, which the exported model cannot"
    assert "only the side where x_dim0 > 0 would be exported" in found.message
    assert "narrow the declared range" in found.fix


def test_none_before_the_loop_and_asked_for_in_it():
    def model(x):
        best, where = None, -1
        for i, row in enumerate(x):
            if best is None or row.sum() > best.sum():
                best, where = row, i
        if best is None:
            return torch.zeros(3), where
        return best, where

    by_rows(model)


def test_none_before_and_after_when_nothing_is_found():
    def model(x):
        found = None
        for row in x:
            if row.sum() > 0 and found is None:
                found = row
        return found if found is not None else torch.zeros(3)

    by_rows(model)


def test_a_start_that_is_none_between_two_segments():
    """The start of a segment is something wherever a tensor is made of it."""

    def model(x):
        segments, start = [], None
        for i in range(x.shape[0]):
            loud = x[i].sum() > 0
            if loud and start is None:
                start = i
            elif not loud and start is not None:
                segments.append(torch.tensor([start, i]))
                start = None
        if start is not None:
            segments.append(torch.tensor([start, x.shape[0]]))
        return torch.stack(segments) if segments else torch.zeros(0, 2, dtype=torch.long)

    by_rows(model)


def test_names_that_are_none_at_the_same_times():
    """Asking for one of them says what the other is: a Python number, and a tensor that is returned."""

    def model(x):
        best, where = None, None
        for i, row in enumerate(x):
            total = row.sum()
            if best is None or total > best:
                best, where = total, i
        if where is None:
            return torch.tensor(-1.0), torch.tensor(-1)
        return best, torch.tensor(where)

    by_rows(model, 4, 0, 1, 7, loops=1)


def test_an_infinity_that_is_asked_for():
    def model(x):
        most, where = float("-inf"), 0
        for i, row in enumerate(x):
            value = row.max().item()
            if value > most:
                most, where = value, i
        if most == float("-inf"):
            return torch.tensor(0.0), 0
        return torch.tensor(most), where

    by_rows(model, 4, 0, 1, 7, loops=1)


def test_a_value_read_from_outside():
    def model(x):
        bias = x.sum(0)
        total = torch.zeros(3)
        for row in x:
            total = torch.maximum(total, row + bias)
        return total, bias

    by_rows(model, loops=1)


# --- writes in place


def test_rows_written():
    def model(x):
        z = torch.zeros_like(x)
        for i in range(x.shape[0]):
            z[i] = x[i] * i
        return z

    by_rows(model, loops=1)


def test_rows_read_and_written():
    def model(x):
        z = x.clone()
        for i in range(1, x.shape[0]):
            z[i] = z[i - 1] * 0.5 + x[i]
            z[i, 0] += 1
        return z

    by_rows(model, loops=1)


def test_slices_written():
    def model(x):
        z = torch.zeros_like(x)
        for i in range(x.shape[0]):
            z[: i + 1, 1:] += x[i, 1:]
        return z

    by_rows(model, loops=1)


def test_an_outer_tensor_added_to():
    def model(x, n):
        h = torch.zeros(3)
        for i in range(n):
            h.add_(x[0] * i)
            h.mul_(0.5)
        return h

    by_count(model, loops=1)


def test_a_test_that_reads_what_the_arm_writes():
    """`a and b` gives a truth, and not the tensor that is written afterwards."""

    def model(x):
        seen = x > 1
        for i in range(x.shape[0]):
            for j in range(3):
                if i > 0 and seen[i - 1, j]:
                    seen[i, j] = True
        return seen

    by_rows(model, 4, 0, 1, 7)


def test_an_alias_sees_the_write():
    def model(x, n):
        y = x.clone()
        view = y[0]
        other = y
        for i in range(n):
            view += i
        return y, other, view

    by_count(model, loops=1)


def test_the_argument_itself_written():
    def model(x, n):
        for i in range(n):
            x[0] += i
        return x * 2

    by_count(model, loops=1)


def test_an_attribute():
    class Net(nn.Module):
        def forward(self, x, n):
            self.h = x[0]
            self.rounds = 0
            for _ in range(n):
                self.h = torch.tanh(self.h + x[1])
                self.rounds += 1
            return self.h, self.rounds

    by_count(Net().eval(), loops=1)


def test_a_buffer():
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("seen", torch.zeros(3))

        def forward(self, x, n):
            for i in range(n):
                self.seen.add_(x[0] * i)
                if self.seen[0] > 1:
                    self.seen.mul_(0.5)
            return self.seen + x

    by_count(Net().eval(), loops=1, state="inputs-outputs")


def test_a_buffer_that_only_an_arm_touches():
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("seen", torch.zeros(3))

        def forward(self, x, n):
            if n > 2:
                self.seen.add_(x[0])
            return x + n

    program = by_count(Net().eval(), ifs=1, state="inputs-outputs")
    assert program.output_names[-1] == "seen_out"


def test_a_write_in_an_arm_in_a_loop():
    def model(x):
        z = torch.zeros_like(x)
        last = z[-1:]
        for i in range(x.shape[0]):
            if x[i].sum() > 0:
                z[i] = x[i]
            else:
                last += 1
        return z, last

    by_rows(model, 4, 1, 7, loops=1)


# --- where a loop once had rules of its own about what a name can be


def test_a_tensor_that_a_round_replaces_by_a_number():
    def model(x):
        t, total = x.sum(), x.new_zeros(())
        for _ in x:
            total = total + t
            t = 2
        return total + t

    by_rows(model, loops=1)


def test_a_float_before_the_loop_cannot_be_an_integer_tensor_in_it():
    def model(x):
        t = 0.5
        for row in x:
            t = (row.sum() + t).long()
        return t

    example, *_ = rows(4)
    found = refused(model, example, dynamic_shapes=ROWS)
    assert found.code == "TP103"
    assert "`t` is 0.5 before a round of this loop, a tensor of int64 with 0 axes after it" in found.message


def test_a_tensor_that_a_round_replaces_by_a_tuple_is_refused_by_what_both_are():
    def model(x):
        state = x[0]
        for row in x:
            state = (row, row)
        return state[0] if isinstance(state, tuple) else state

    example, *_ = rows(4)
    found = refused(model, example, dynamic_shapes=ROWS)
    assert found.code == "TP103" and "round to round" in found.label
    assert "`state` is a tensor of float32 with 1 axes before a round of this loop, a tuple after it" in found.message


def test_a_layer_and_a_tensor_that_rounds_bind():
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.relu = nn.ReLU()

        def forward(self, x):
            total = x.new_zeros(3)
            for row in x:
                pair = (self.relu, row * 2)
                total = total + pair[0](pair[1])
            return total + pair[0](pair[1])

    by_rows(Net().eval(), 4, 1, 7, loops=1)


def test_a_number_that_some_rounds_make_a_tensor_with_axes_is_told_with_a_way_out():
    def summed(x, total):
        for row in x:
            if row.sum() > 0:
                total = total + row
        return total

    example, *others = rows(4)
    found = refused(lambda x: summed(x, 0), example, dynamic_shapes=ROWS)
    assert found.code == "TP103"
    assert "is 0 before" in found.message and "a tensor of float32 with 1 axes" in found.message
    assert "zeros_like" in found.fix
    assert_kept_alive(lambda x: summed(x, torch.zeros_like(x.sum(0))), example, others, dynamic_shapes=ROWS)
