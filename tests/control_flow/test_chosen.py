"""A text, a layer, a function or None that a tensor chooses: asked about later, also in another function."""

from __future__ import annotations

import enum
import functools
from dataclasses import dataclass, replace

import pytest
import torch
from torch import nn

from tests.control_flow import helpers_elsewhere
from tests.control_flow.kept_alive import DOWN, ROWS, UP, assert_kept_alive

ARMS = [(DOWN,), (torch.zeros(4, 3),)]
ROUNDS = [(torch.ones(3) * sign, torch.tensor(n)) for n in (0, 1, 2, 9) for sign in (1, -1)]


def kind(x):
    if x.sum() > 0:
        return "up"
    elif x.sum() < -5:
        return None
    return "level"


def test_a_text_or_none_of_a_helper_compared_in_its_caller():
    def model(x):
        found = kind(x)
        if found is None:
            return x
        return x * 2 if found == "up" else x - 3

    assert_kept_alive(model, (UP,), ARMS)


def test_none_of_a_helper_that_is_only_asked_for():
    """The caller does nothing else with it, so nothing but `is None` could tell that it has to be rewritten."""

    def found(x):
        if x.sum() > 0:
            return x
        return None

    class Net(nn.Module):
        def forward(self, x):
            hit = found(x)
            if hit is None:
                return x - 1
            return x * 2

    assert_kept_alive(Net(), (UP,), ARMS)


def test_none_in_an_attribute_that_a_method_sets():
    class Net(nn.Module):
        def find(self, x):
            self.hit = None
            if x.sum() > 0:
                self.hit = x

        def forward(self, x):
            self.find(x)
            if self.hit is None:
                return x - 1
            return x * 2

    assert_kept_alive(Net(), (UP,), ARMS)


def test_a_text_beside_a_tensor():
    def pick(x):
        if x.sum() > 0:
            return "relu", x * 2
        if x.sum() < 0:
            return "tanh", x - 1
        return "none", x

    def model(x):
        name, y = pick(x)
        if name == "relu":
            return y.relu()
        return y.tanh() if name in ("tanh", "sinh") else y

    assert_kept_alive(model, (UP,), ARMS)


def test_a_function_of_a_helper():
    def pick(x):
        return torch.relu if x.sum() > 0 else (torch.tanh if x.sum() < 0 else None)

    def model(x):
        function = pick(x)
        y = x * 2
        if function is not None:
            y = function(y)
        return y

    assert_kept_alive(model, (UP,), ARMS)


def test_a_layer_of_a_helper():
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.one, self.other = nn.Linear(3, 3), nn.Linear(3, 3)

        def layer(self, x):
            return self.one if x.sum() > 0 else self.other

        def forward(self, x):
            layer = self.layer(x)
            return layer(x) + layer.weight.sum()

    assert_kept_alive(Net().eval(), (UP,), ARMS)


class Mode(enum.Enum):
    DOUBLE = 1
    LESS = 2


def test_a_member_of_an_enum():
    def model(x):
        mode = chosen(x)
        match mode:
            case Mode.DOUBLE:
                return x * 2
            case Mode.LESS:
                return x - 1

    def chosen(x):
        return Mode.DOUBLE if x.sum() > 0 else Mode.LESS

    assert_kept_alive(model, (UP,), ARMS)


def test_a_text_that_picks_a_layer_by_name():
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.heads = nn.ModuleDict({name: nn.Linear(3, 2) for name in ("cat", "dog", "bird")})
            self.names = list(self.heads)
            self.extra_cat, self.extra_dog, self.extra_bird = (nn.Linear(3, 2) for _ in range(3))

        def forward(self, x, k):
            name = self.names[k]
            key = "dog" if x.sum() > 0 else name
            return self.heads[key](x), self.heads[name](-x), getattr(self, f"extra_{name}")(x)

    others = [(x, torch.tensor(k)) for x in (UP, DOWN) for k in range(3)]
    assert_kept_alive(Net().eval(), (UP, torch.tensor(1)), others)


def test_a_state_that_a_loop_changes():
    def model(x, n):
        state, turns = "up", 0
        for _ in range(n):
            if state == "up":
                x = x + 1
                if x.sum() > 5:
                    state = "down"
            else:
                x, turns = x - 2, turns + 1
                if x.sum() < 0:
                    state = "up"
        return x, turns

    assert_kept_alive(model, ROUNDS[-1], ROUNDS, loops=1)


def test_a_state_of_several_that_picks_the_layer():
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.heads = nn.ModuleDict({"a": nn.Linear(3, 3), "b": nn.Linear(3, 3), "c": nn.Identity()})

        def forward(self, x, n):
            state = "a"
            while n > 0:
                x = self.heads[state](x)
                match state:
                    case "a" if x.sum() > 0:
                        state = "b"
                    case "b":
                        state = "c" if x[0] > 0 else "a"
                    case "c":
                        state = "a"
                n = n - 1
            return x * 2 if state in ("a", "c") else x, state == "c"

    torch.manual_seed(0)
    assert_kept_alive(Net().eval(), ROUNDS[-1], ROUNDS)


@dataclass
class Search:
    at: torch.Tensor
    count: int = 0
    done: bool = False
    mode: str = "coarse"


def test_a_text_in_an_object_that_a_loop_carries():
    def model(x, n):
        search = Search(x)
        while not search.done:
            step = 1.0 if search.mode == "coarse" else 0.25
            search = replace(search, at=search.at + step, count=search.count + 1)
            search.mode = "fine" if search.at.sum() > 4 else "coarse"
            search.done = search.count >= int(n)
        return search.at, search.count, search.mode == "fine"

    assert_kept_alive(model, ROUNDS[-1], ROUNDS, loops=1)


def test_a_function_that_each_round_exchanges():
    def model(x, n):
        function, last = torch.sin, None
        for _ in range(n):
            last = "odd" if x[0] > 0 else "even"
            x = function(x)
            function = torch.cos if function is torch.sin else torch.sin
        if last is None:
            return x - 10
        return x * (2 if last == "odd" else 3)

    assert_kept_alive(model, ROUNDS[-1], ROUNDS)


def by_a_function(x, mode):
    return helpers_elsewhere.moved(x, mode)


def by_a_function_that_hands_it_on(x, mode):
    return helpers_elsewhere.moved_by_another(x, {"mode": mode})


def by_a_method_of_what_holds_it(x, mode):
    return helpers_elsewhere.Mover(mode).move(x)


def by_a_partial(x, mode):
    return functools.partial(helpers_elsewhere.moved, mode=mode)(x)


@pytest.mark.parametrize(
    "asked", [by_a_function, by_a_function_that_hands_it_on, by_a_method_of_what_holds_it, by_a_partial]
)
def test_who_is_given_it_asks_which_object_it_is(asked):
    """`mode is Mode.UP` asks no tensor, so nothing else would tell that the function has to be rewritten."""

    def model(x):
        mode = helpers_elsewhere.Mode.UP if x.sum() > 0 else helpers_elsewhere.Mode.DOWN
        return asked(x, mode)

    assert_kept_alive(model, (UP,), [(DOWN,)])


def test_a_helper_asks_whether_it_is_none():
    def model(x):
        found = None
        for row in x:
            if row[0] > 0:
                found = row
        return helpers_elsewhere.or_zeros(found)

    assert_kept_alive(model, (torch.ones(2, 3),), [(-torch.ones(2, 3),), (torch.ones(0, 3),)], dynamic_shapes=ROWS)


def test_text_that_is_only_shown():
    def model(x):
        if x.sum() > 0:
            print(f"sum={x.sum():.2f}, {x.sum().item()!r:>10} of {x.shape}")
        return x * 2

    assert_kept_alive(model, (UP,), [(DOWN,)])
