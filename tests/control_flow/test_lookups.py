"""Things looked up by a traced number: every entry is a candidate, and branches decide."""

from __future__ import annotations

import collections
import warnings

import pytest
import torch
from torch import nn

from tests.control_flow.kept_alive import assert_kept_alive, refused

X = torch.tensor([0.5, -1.0, 2.0])
THREE = [(torch.tensor(k), X) for k in (0, 1, 2)]


class Experts(nn.Module):
    def __init__(self):
        super().__init__()
        self.listed = nn.ModuleList([nn.Linear(3, 3) for _ in range(3)])
        self.named = nn.ModuleDict({str(i): nn.Linear(3, 3) for i in range(3)})
        self.head0, self.head1, self.head2 = (nn.Linear(3, 2) for _ in range(3))


class ByNumber(Experts):
    def forward(self, t, x):
        return self.listed[int(t)](x)


class ByNumberFromTheEnd(Experts):
    def forward(self, t, x):
        return self.listed[t.item() - 3].weight.sum() + x


class ByText(Experts):
    def forward(self, t, x):
        return self.named[str(t.item())](x)


class ByAttribute(Experts):
    def forward(self, t, x):
        return getattr(self, f"head{t.item()}")(x)


@pytest.mark.parametrize("kind", [ByNumber, ByNumberFromTheEnd, ByText, ByAttribute])
def test_a_layer(kind):
    assert_kept_alive(kind().eval(), THREE[1], THREE)


@pytest.mark.parametrize(
    "compute",
    [
        lambda t, x: x * {0: 1.5, 1: -2.0, 2: 0.25}[int(t)],
        lambda t, x: x * {0: 1.5, 1: -2.0}.get(int(t), 7.0),
        lambda t, x: [torch.relu, torch.tanh, torch.sigmoid][t](x),
        lambda t, x: (x, x[:2], x[:1])[t.item()].sum(),
        lambda t, x: [x, x + 1, x + 2][int(t)],
        lambda t, x: x + 1 if int(t) in {0: "zero", 2: "two"} else x,
        lambda t, x: x * 2 if {0: "up", 1: "down", 2: "up"}[int(t)] == "up" else x,
        lambda t, x: x * 2 if str(t.item()) == "1" else x,
        lambda t, x: [{"scale": 2.0}, {"scale": 3.0}, {"scale": 4.0}][int(t)]["scale"] * x,
        lambda t, x: {True: x * 2, False: -x}[bool(t > 1)],
        lambda t, x: [x, -x][bool(t > 1)] * {1: 3.0, 0: 2.0, 2: 9.0}[bool(t > 1)],
        lambda t, x: x * [1.0, 2.0, 3.0][t > 1],
    ],
    ids="dict get functions sizes stacked in text compared nested truth truths truth-of-a-tensor".split(),
)
def test_a_table(compute):
    assert_kept_alive(lambda t, x: compute(t, x), THREE[1], THREE)


def test_tensors_of_one_shape_are_selected_without_branches():
    assert_kept_alive(lambda t, x: [x, x + 1, x + 2][int(t)], THREE[1], THREE, ifs=0)


def test_texts_of_two_numbers_are_compared_by_the_numbers():
    """`!=` of two such texts was taken to hold always."""

    def model(t, x):
        one, other = str(t.item()), str((x > 0).sum().item() % 3)
        return x * (2 if one != other else 3) + (5 if one == other else 0)

    assert_kept_alive(model, THREE[1], [(t, x * sign) for t, x in THREE for sign in (1, -1)])


def test_text_in_a_message():
    def model(t, x):
        if t > 5:
            raise ValueError(f"{t.item():03d} is too large, {x.mean().item():.3f}")
        print(f"{t.item():03d}", "%.2f" % x.sum(), str(t.item()))  # noqa: UP031
        if t < 0:
            warnings.warn(f"{t.item()} of {x.shape}, {x.mean().item():.3f}", stacklevel=1)
        return x * t

    assert_kept_alive(model, THREE[1], THREE)


@pytest.mark.parametrize(
    "compute",
    [
        lambda t, x: x * len(f"{t.item():03d}"),
        lambda t, x: x * len(f"{t.item()}: {t.item():.2f}") if t > 1 else x,
        lambda t, x: x * sum(int(digit) for digit in str(t.item())),
    ],
    ids="formatted joined digits".split(),
)
def test_text_that_matters_is_refused(compute):
    """The name of a traced number stands in it, whose length is another."""
    assert refused(lambda t, x: compute(t, x), THREE[1]).code == "TP204"


Size = collections.namedtuple("Size", "high wide")
FORM = "%dx%d"


def _of_a_table(key):
    return {"3x4": 2.0}.get(key, 1.0)


def _by_texts(x):
    """Python itself makes plain text of these. It had the name of the symbol in it, which equals no other text."""
    n, m = x.shape
    print(x, f"{n:>5}", x.shape)
    return (
        x * (2 if f"{n}x{m}" == "3x4" else 1),
        x * (2 if FORM % (n, m) in ("3x4", "5x2") else 1),
        x * (2 if "{}x{}".format(n, m) == "3x4" else 1),  # noqa: UP032
        x * (2 if str(n) + "x" + str(m) != "3x4" else 1),
        x * _of_a_table("x".join(map(str, x.shape))),
        x * (2 if repr(n) == "3" else 1),
        x * (2 if str((n, m)) == "(3, 4)" else 1),
        x * (2 if str(x.shape) == "torch.Size([3, 4])" else 1),
        x * (2 if str(Size(n, m)) == "Size(high=3, wide=4)" else 1),
    )


def test_texts_of_sizes_are_compared_by_the_sizes():
    others = [(torch.ones(n, m),) for n, m in ((3, 4), (5, 2), (3, 3), (1, 4))]
    assert_kept_alive(_by_texts, (torch.ones(4, 3),), others, dynamic_shapes={"x": {0: "N", 1: "M"}})


@pytest.mark.parametrize(
    "factor",
    [
        lambda x, n, m: 2 if f"{n:02}x{m}" == "03x4" else 1,
        lambda x, n, m: 2 if "%02dx%d" % (n, m) == "03x4" else 1,  # noqa: UP031
        lambda x, n, m: 2 if f"{n}{m}" == "34" else 1,
        lambda x, n, m: 2 if str(n).zfill(2) == "03" else 1,
        lambda x, n, m: 2 if str(n) in "3,4" else 1,
        lambda x, n, m: 2 if str(x.sum().item()).startswith("-") else 1,
        lambda x, n, m: 2 if "nan" in str(x) else 1,
        lambda x, n, m: float("%.2f" % (n / m)),
    ],
)
def test_other_questions_to_a_text_with_a_size_in_it_are_refused(factor):
    found = refused(lambda x: x * factor(x, *x.shape), (torch.ones(4, 3),), dynamic_shapes={"x": {0: "N", 1: "M"}})
    assert found.code == "TP204"
    assert found.where.file == __file__
    assert "x01" not in "".join(found.seen)


def test_text_of_one_number_however_it_is_written():
    def model(t, x):
        name = "head%d" % t if x.sum() > 0 else "head{}".format(t.item())  # noqa: UP031, UP032
        return x * {"head0": 1.0, "head2": 3.0}.get(name, 2.0) + {"1": 5.0}.get(f"{t}", 0.0)

    assert_kept_alive(model, THREE[1], [*THREE, *((t, -x) for t, x in THREE)])


@pytest.mark.parametrize("kind", [list, dict], ids=str)
def test_counting_under_a_traced_key(kind):
    def model(ids):
        counts = [0] * 5 if kind is list else {k: 0 for k in range(5)}
        for i in ids.tolist():
            counts[i] += 1
        return torch.tensor([counts[k] for k in range(5)])

    many = [(torch.randint(0, 5, (count,)),) for count in (0, 1, 9)]
    free = ({0: torch.export.Dim.DYNAMIC},)
    assert_kept_alive(model, (torch.tensor([1, 4, 1]),), many, dynamic_shapes=free, loops=1)


def test_an_item_replaced_at_a_traced_place():
    def model(t, x):
        same, mixed = [x, x + 1, x + 2], [x, x[:1], x[1:]]
        same[t] = x * 10
        same[int(t) - 1] = same[int(t) - 1] + 1
        mixed[t] = x * 5
        return torch.stack(same), torch.cat(mixed)

    assert_kept_alive(model, THREE[1], THREE)


def test_an_item_that_is_written_in_place_is_never_a_copy():
    """`same[i] += 1` writes to `x` itself where that is the item."""

    def model(t, x):
        same = [x * 1, x + 1, x + 2]
        first, named = same[0], {"a": same[1], "b": x - 1}
        same[int(t)] += 1
        named["a" if t > 1 else "b"] *= 2
        return torch.stack(same), first * 2, named["a"], named["b"]

    assert_kept_alive(model, THREE[1], THREE)


def test_sums_by_label():
    def model(labels, rows):
        listed, named = [torch.zeros(3), torch.zeros(3)], {"odd": torch.zeros(3), "even": torch.zeros(3), "seen": 0}
        for label, row in zip(labels, rows, strict=True):
            listed[int(label) // 2] += row
            named["odd" if label % 2 == 1 else "even"] -= row
            named["seen"] += 1
        return torch.stack(listed), named["odd"], named["even"] * named["seen"]

    many = [(torch.randint(0, 4, (count,)), torch.randn(count, 3)) for count in (0, 1, 7)]
    free = ({0: torch.export.Dim("count", min=0)}, {0: torch.export.Dim("count", min=0)})
    assert_kept_alive(model, (torch.tensor([1, 2, 3]), torch.randn(3, 3)), many, dynamic_shapes=free, loops=1)


def test_an_item_that_a_method_writes_may_be_any_of_them():
    """Which of them is written is known only when the model runs, and all are read: told."""

    def model(t, x):
        same = [x * 1, x + 1, x + 2]
        same[int(t)].add_(1)
        return torch.stack(same)

    assert refused(model, THREE[1]).code == "TP103"


class Otherwise(dict):
    def __missing__(self, key):
        return torch.zeros(3)


@pytest.mark.parametrize("made", [lambda: collections.defaultdict(lambda: torch.zeros(3)), Otherwise])
def test_a_dict_that_answers_for_keys_which_it_has_not(made):
    """It was taken to have every key that it is asked for. Where it has, it is a dict like any other."""

    def asked(t, x):
        table = made()
        table[0] = x * 1
        return table[int(t)]

    def filled(t, x):
        table = made()
        for row in x.unbind():
            table[int(t)] += row
        return sum(table.values())

    def has_it(t, x):
        table = made()
        table[True], table[False] = x * 2, -x
        return table[bool(t > 1)]

    assert refused(asked, THREE[1]).code == "TP204"
    assert refused(filled, THREE[1]).code == "TP204"
    assert_kept_alive(has_it, THREE[1], THREE)


class Routed(nn.Module):
    """As the experts of a mixture are gone through: each row of `nonzero` is a tensor of one number."""

    def __init__(self):
        super().__init__()
        self.experts = nn.ModuleList(nn.Linear(3, 3) for _ in range(3))

    def forward(self, x, chosen):
        out = torch.zeros_like(x)
        for expert in torch.nonzero(torch.bincount(chosen, minlength=3)):
            rows = torch.where(chosen == expert)[0]
            out.index_add_(0, rows, self.experts[expert](x[rows]))
        return out


def test_a_layer_by_a_tensor_of_one_number_on_an_axis():
    given = [(torch.randn(len(c), 3), torch.tensor(c)) for c in ([1, 0, 1, 2], [2, 2, 2], [0, 1, 1, 0, 0])]
    free = {0: torch.export.Dim.DYNAMIC}
    assert_kept_alive(Routed(), given[0], given[1:], dynamic_shapes=(free, free))
