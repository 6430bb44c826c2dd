"""Models as users write them: algorithms in plain Python around tensors, found by trying many such models."""

from __future__ import annotations

from dataclasses import dataclass, field

import torch
import torch.nn.functional as F
from torch import nn

from tests.control_flow.kept_alive import ROWS, assert_kept_alive, rows

FEW = [*rows(1, 2, 8), (-torch.ones(3, 3),)]


def drawn(*shape, count=4):
    torch.manual_seed(0)
    return [(torch.randn(*shape),) for _ in range(count)]


def test_gradient_descent_until_nothing_changes():
    """An infinity before the loop, a rate that shrinks, two ways out."""

    def model(b):
        x, rate, before, count = torch.zeros(6), 0.1, float("inf"), 0
        while count < 40:
            x = x - rate * 2 * (x - b)
            loss = ((x - b) ** 2).sum().item()
            count += 1
            if abs(before - loss) < 1e-3:
                break
            if loss > before:
                rate *= 0.5
            before = loss
        return x, count

    example, *others = drawn(6)
    assert_kept_alive(model, example, others)


def test_elimination_with_pivots():
    """Rows are swapped by a list of numbers of which one is traced."""

    def model(a):
        a = a.clone()
        for k in range(3):
            pivot = int(a[k:, k].abs().argmax()) + k
            if pivot != k:
                a[[k, pivot]] = a[[pivot, k]]
            for i in range(k + 1, 4):
                a[i] = a[i] - a[i, k] / a[k, k] * a[k]
        return a.diagonal()

    example, *others = drawn(4, 4)
    assert_kept_alive(model, example, others)


def test_one_list_or_the_other():
    """The list that a ternary chooses is the very list, and not a copy of it."""

    def model(x):
        up, down = [], []
        for row in x:
            (up if row.sum() > 0 else down).append(row)
        return torch.stack([*up, x[0]]), torch.stack([*down, x[0]])

    assert_kept_alive(model, *rows(5), FEW, dynamic_shapes=ROWS)


def test_a_list_of_a_function_that_decides_nothing():
    """Only `note` decides; the list is made by the function around it, which is rewritten for its sake."""

    def model(x):
        noted = []

        def note(value):
            if value.sum() > 0:
                noted.append(value)

        note(x)
        note(-x)
        note(x * 2)
        return torch.stack([*noted, x])

    assert_kept_alive(model, (torch.ones(3),), [(-torch.ones(3),), (torch.zeros(3),)])


def test_an_object_that_can_be_called_and_changes_itself():
    class Mean:
        def __init__(self):
            self.total, self.count = torch.zeros(3), 0

        def add(self, x):
            if x.sum() > 0:
                self.total = self.total + x
                self.count += 1
            return self

        def __call__(self, x):
            return self.total / max(self.count, 1) * x

    def model(x):
        return Mean().add(x).add(-x).add(x * 2)(x)

    assert_kept_alive(model, (torch.ones(3),), [(-torch.ones(3),), (torch.zeros(3),)])


def test_a_cell_of_torch_in_a_loop_over_single_steps():
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.cell = nn.LSTMCell(3, 4)

        def forward(self, x):
            state, outputs = None, []
            for step in x.split(1):
                state = self.cell(step, state)
                outputs.append(state[0])
            return torch.cat(outputs)

    assert_kept_alive(Net().eval(), *rows(5), FEW, dynamic_shapes=ROWS)


def test_a_number_that_one_arm_knows_to_be_positive():
    def model(n):
        if n < 0:
            return torch.zeros(2) - n
        return torch.arange(n).sum() + torch.ones(2) * (n if n % 2 else -n)

    assert_kept_alive(model, (3,), [(0,), (7,), (-2,)])


def test_padding_with_a_number_that_is_an_input():
    assert_kept_alive(lambda x, v: F.pad(x, (1, 2), value=v), (torch.ones(3), 1.5), [(torch.zeros(3), -2.0)])


def test_a_mixture_of_experts_with_any():
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.gate, self.experts = nn.Linear(3, 3), nn.ModuleList([nn.Linear(3, 3) for _ in range(3)])

        def forward(self, x):
            chosen, out = self.gate(x).argmax(-1), torch.zeros_like(x)
            for i, expert in enumerate(self.experts):
                mask = chosen == i
                if mask.any():
                    out[mask] = expert(x[mask])
            return out

    torch.manual_seed(0)
    assert_kept_alive(Net().eval(), *rows(5), FEW, dynamic_shapes=ROWS)


def test_suppression_of_overlapping_boxes():
    def model(boxes, scores):
        boxes = torch.cat([boxes[:, :2], boxes[:, :2] + boxes[:, 2:].abs() + 0.1], 1)
        order, kept = scores.argsort(descending=True), []
        while order.numel() > 0:
            first, rest = order[0], order[1:]
            kept.append(first)
            if order.numel() == 1:
                break
            low, high = (
                torch.maximum(boxes[first, :2], boxes[rest, :2]),
                torch.minimum(boxes[first, 2:], boxes[rest, 2:]),
            )
            shared = (high - low).clamp(min=0).prod(1)
            areas = (boxes[:, 2:] - boxes[:, :2]).prod(1)
            order = rest[shared / (areas[first] + areas[rest] - shared) <= 0.3]
        return torch.stack(kept)

    torch.manual_seed(0)
    example, *others = [(torch.randn(6, 4), torch.rand(6)) for _ in range(3)]
    assert_kept_alive(model, example, others)


def test_the_best_path_backwards_through_a_list():
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.moves = nn.Parameter(torch.randn(3, 3))

        def forward(self, x):
            score, back = x[0], []
            for i in range(1, x.shape[0]):
                best, where = (score.unsqueeze(1) + self.moves).max(0)
                score = best + x[i]
                back.append(where)
            last = score.argmax()
            path = [last]
            for where in reversed(back):
                last = where[last]
                path.append(last)
            path.reverse()
            return torch.stack(path)

    torch.manual_seed(0)
    assert_kept_alive(Net().eval(), *rows(5), FEW[:-1], dynamic_shapes=ROWS)


@dataclass
class _Kept:
    rows: list = field(default_factory=list)
    hits: int = 0


def test_an_object_that_keeps_a_list_of_open_length_beside_a_write_in_place():
    def model(x):
        kept, total = _Kept(), torch.zeros(3)
        for row in x:
            kept.rows.append(row * 2)
            kept.hits += 1
            if row.sum() > 0:
                total.add_(row)
                kept.hits += 1
        return torch.stack(kept.rows), total, kept.hits

    assert_kept_alive(model, *rows(4), FEW, dynamic_shapes=ROWS)
