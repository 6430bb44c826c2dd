"""When a trace cannot go on: the user's line, every unsupported operator at once, and a model that is as it was."""

from __future__ import annotations

import json
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch
from torch import nn

import trueport
from tests.capture.helpers import FREE, assert_captured, line_of, refusal
from trueport.errors import ExportError


def x(*sizes: int) -> torch.Tensor:
    return torch.randn(*sizes)


def errors(model, args, **options):
    return [found for found in refusal(model, args, **options).diagnostics if found.is_error]


# --- operators that nobody translates


@torch.library.custom_op("captests::first", mutates_args=())
def first(y: torch.Tensor) -> torch.Tensor:
    return y * 2


@first.register_fake
def _(y):
    return torch.empty_like(y)


@torch.library.custom_op("captests::second", mutates_args=())
def second(y: torch.Tensor) -> torch.Tensor:
    return y[:, :1].clone()


@second.register_fake
def _(y):
    return y.new_empty(y.shape[0], 1)


@torch.library.custom_op("captests::no_fake", mutates_args=())
def no_fake(y: torch.Tensor) -> torch.Tensor:
    return y * 2


def test_every_unsupported_operator_is_told_in_one_run_each_at_its_line():
    class Exotic(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = nn.Linear(3, 3)

        def forward(self, y):
            y = first(y)
            y = self.inner(y)
            z = second(y)
            return first(z)

    found = errors(Exotic(), (x(2, 3),))
    assert {each.code for each in found} == {"TP401"}
    assert [line_of(each) for each in found] == ["y = first(y)", "z = second(y)", "return first(z)"]
    assert all("captests::" in each.message for each in found)


def test_an_unsupported_operator_in_a_loop_is_told_once():
    def model(y):
        for _ in range(5):
            y = first(y)
        return y

    assert len(errors(model, (x(2, 3),))) == 1


def test_an_unsupported_operator_is_still_captured():
    def model(y):
        return second(first(y))

    assert_captured(model, (x(2, 3),), [(x(5, 3),)], dynamic_shapes=({0: FREE},))


def test_an_operator_without_a_fake_kernel_is_told_how_to_get_one():
    def model(y):
        return no_fake(y) + 1

    (found,) = errors(model, (x(2, 3),))
    assert (found.code, line_of(found)) == ("TP401", "return no_fake(y) + 1")
    assert "register_fake" in found.fix


# --- what leaves torch


LEAVES = {
    "numpy": lambda y: torch.from_numpy(y.numpy() * 2),
    "np function": lambda y: torch.as_tensor(np.tanh(y)),
    "data_ptr": lambda y: y * y.data_ptr(),
    "a thread": lambda y: torch.stack(list(ThreadPoolExecutor(1).map(torch.sin, [y, y + 1]))),
}


@pytest.mark.filterwarnings("ignore:__array_wrap__")
@pytest.mark.parametrize("model", LEAVES.values(), ids=LEAVES)
def test_what_leaves_torch_is_refused_at_its_line(model):
    (found,) = errors(model, (x(2, 3),))
    assert found.code == "TP204"
    assert line_of(found).startswith('"')


def test_a_failure_names_the_line_of_the_user_and_the_submodule():
    class Inner(nn.Module):
        def forward(self, y):
            return torch.from_numpy(y.numpy())

    class Outer(nn.Module):
        def __init__(self):
            super().__init__()
            self.block = nn.Sequential(nn.Linear(3, 3), Inner())

        def forward(self, y):
            return self.block(y)

    (found,) = errors(Outer().eval(), (x(2, 3),))
    assert line_of(found) == "return torch.from_numpy(y.numpy())"
    assert [call.function.rsplit(".", 2)[-2:] for call in found.place.calls] == [
        ["Outer", "forward"],
        ["Inner", "forward"],
    ]
    assert found.place.module == "block.1"


def test_a_failure_inside_a_library_points_into_it_and_shows_the_way():
    def helper(y):
        return torch.from_numpy(y.numpy())

    def model(y):
        return helper(y) + 1

    (found,) = errors(model, (x(2, 3),))
    assert [call.function.rsplit(".", 1)[-1] for call in found.place.calls] == ["model", "helper"]


def test_a_failure_inside_pythons_own_library_points_at_the_line_that_called_it():
    def model(y):
        sent = json.dumps({"total": y.sum().item()})
        return y * json.loads(sent)["total"]

    (found,) = errors(model, (x(3),))
    assert line_of(found).startswith("sent = json.dumps")


def test_what_the_model_itself_catches_goes_on():
    def model(y):
        try:
            raise KeyError("own")
        except KeyError:
            return y * 2

    assert_captured(model, (x(2, 3),))


# --- nothing of the user's is changed


class Busy(nn.Module):
    """Does to itself whatever a forward can do."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(3, 3)
        self.register_buffer("total", torch.zeros(3))
        self.register_buffer("scratch", torch.zeros(3), persistent=False)
        self.count = 0
        self.seen: list[torch.Tensor] = []
        self.by_name: dict[str, object] = {"deep": [1, {"er": 2}]}
        self.cache = None
        self.fails = False

    def forward(self, y):
        self.count += 1
        self.seen.append(y)
        self.by_name["last"] = y
        self.by_name["deep"][1]["er"] = self.count
        self.cache = y * 2
        self.total += y.sum(0)
        self.scratch = self.total * 2
        self.new_attribute = y
        self.layer.own = self.cache
        if self.fails:
            return torch.from_numpy(y.numpy())
        return self.layer(y) + self.total


def picture(model: nn.Module):
    """Everything that can be seen of a model, by identity where it is an object."""
    seen = {}
    for path, module in model.named_modules():
        for name, value in vars(module).items():
            if isinstance(value, dict):
                value = [(key, id(item)) for key, item in value.items()]
            elif isinstance(value, list):
                value = [id(item) for item in value]
            elif isinstance(value, torch.Tensor):
                value = id(value)
            seen[path, name] = value
    tensors = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    return seen, tensors, [module.training for module in model.modules()]


@pytest.mark.parametrize("fails", [False, True])
@pytest.mark.parametrize("state", ["inputs-outputs", "frozen", None])
def test_the_model_is_as_it_was(fails, state):
    model = Busy().train()
    hook = model.layer.register_forward_hook(lambda module, args, out: out * 2)
    model.fails = fails
    deep = model.by_name["deep"]
    before, weights, training = picture(model)
    grad = torch.is_grad_enabled()
    try:
        trueport.export(model, (x(2, 3),), state=state)
    except ExportError:
        pass
    after, weights_after, training_after = picture(model)
    assert after == before
    assert training_after == training
    assert model.by_name["deep"] is deep
    assert deep == [1, {"er": 2}]
    for name, tensor in weights.items():
        assert torch.equal(weights_after[name], tensor), name
    assert not hasattr(model, "new_attribute")
    assert not hasattr(model.layer, "own")
    assert len(model.layer._forward_hooks) == 1
    assert torch.is_grad_enabled() is grad
    assert not torch.compiler.is_compiling()
    assert not torch.compiler.is_exporting()
    hook.remove()
    assert type(model(x(2, 3)) if not fails else x(1)) is torch.Tensor


def test_inputs_are_as_they_were():
    def model(y, cache):
        y.add_(1)
        cache["k"].mul_(2)
        cache["new"] = y
        return y + cache["k"]

    y, cache = x(2, 3), {"k": x(2, 3)}
    kept, kept_cache = y.clone(), cache["k"].clone()
    trueport.export(model, (y, cache))
    assert torch.equal(y, kept)
    assert list(cache) == ["k"]
    assert torch.equal(cache["k"], kept_cache)


def test_random_state_is_as_it_was():
    model = nn.Linear(3, 3)
    before = torch.random.get_rng_state()
    trueport.export(model, (torch.ones(2, 3),), dynamic_shapes=({0: FREE},))
    assert torch.equal(torch.random.get_rng_state(), before)


def test_another_thread_computes_undisturbed():
    """The modes of a trace belong to its thread; real tensors of another one stay real."""
    net = nn.Sequential(nn.Linear(3, 8), nn.ReLU(), nn.Linear(8, 2)).eval()
    y = x(4, 3)
    with torch.no_grad():
        expected = net(y)
    stop, wrong, runs = threading.Event(), [], [0]

    def work():
        while not stop.is_set():
            with torch.no_grad():
                got = net(y)
                z = torch.zeros(3)
                z += 1
            runs[0] += 1
            if type(got) is not torch.Tensor or not torch.equal(got, expected) or z.tolist() != [1.0] * 3:
                wrong.append(got)
                return

    thread = threading.Thread(target=work)
    thread.start()
    try:
        for _ in range(3):
            assert_captured(net, (x(4, 3),), [(x(7, 3),)], dynamic_shapes=({0: FREE},))
    finally:
        stop.set()
        thread.join()
    assert not wrong
    assert runs[0] > 0


def test_two_exports_at_once():
    nets = [nn.Sequential(nn.Linear(3, 4), nn.ReLU()).eval() for _ in range(2)]
    failures: list[BaseException] = []

    def work(net):
        try:
            for _ in range(2):
                assert_captured(net, (x(4, 3),), [(x(7, 3),)], dynamic_shapes=({0: FREE},))
        except Exception as failure:  # noqa: BLE001 (told by the assertion below)
            failures.append(failure)

    threads = [threading.Thread(target=work, args=(net,)) for net in nets]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    assert not torch.compiler.is_exporting()


def test_exporting_twice_gives_the_same_graph():
    net = nn.Sequential(nn.Linear(3, 4), nn.ReLU()).eval()
    one, two = (trueport.export(net, (x(4, 3),), dynamic_shapes=({0: FREE},)) for _ in range(2))
    assert [node.op_type for node in one.model.graph] == [node.op_type for node in two.model.graph]


def test_an_interrupted_trace_leaves_nothing_behind():
    def model(y):
        raise KeyboardInterrupt

    from trueport.capture.trace import capture
    from trueport.load.request import make_job
    from trueport.lower.table import is_leaf

    with pytest.raises(KeyboardInterrupt):
        capture(make_job(model, (x(2),)), is_leaf)
    assert not torch.compiler.is_exporting()
    assert torch.is_grad_enabled()
    assert type(torch.zeros(2) + 1) is torch.Tensor
