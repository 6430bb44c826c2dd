"""run_eager: every call begins in the same state and leaves model and inputs as they were."""

from __future__ import annotations

from collections import deque
from typing import Any

import pytest
import torch

from trueport.examine import run_eager, state
from trueport.examine.state import Snapshot
from trueport.load.request import make_job

X = torch.arange(3.0)


class Memory:
    """An object of the user's own that a module keeps."""

    def __init__(self) -> None:
        self.last = torch.zeros(3)
        self.calls = 0


class Restless(torch.nn.Module):
    """Writes wherever a module can write."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("mean", torch.zeros(3))
        self.register_buffer("swapped", torch.zeros(3))
        self.weight = torch.nn.Parameter(torch.ones(3))
        self.plain = torch.zeros(3)
        self.count = 0
        self.history: list[torch.Tensor] = []
        self.recent: deque[int] = deque([1], maxlen=2)
        self.seen: set[int] = set()
        self.cache: dict[str, torch.Tensor] = {}
        self.memory = Memory()
        self.scale = 2.0

    def forward(self, x: torch.Tensor) -> Any:
        self.mean.data.add_(x)  # past the version counter
        self.swapped = self.swapped + 1
        self.weight.mul_(2)
        self.plain[0] = 5
        self.count += 1
        self.history.append(x)
        self.recent.append(self.count)
        self.seen.add(self.count)
        self.cache["x"] = x
        self.memory.last += 1
        self.memory.calls += 1
        self.added = x
        self.scale = 2.0  # the same value again: nothing written
        return self.mean + self.weight + self.count


WRITTEN = {
    "mean", "swapped", "weight", "plain", "count", "history", "recent", "seen", "cache", "memory.last", "memory.calls",
    "added",
}  # fmt: skip


class TestState:
    def test_each_call_gives_the_first_answer(self) -> None:
        job = make_job(Restless(), (X,))
        assert torch.equal(run_eager(job, [X]), run_eager(job, [X]))

    def test_the_model_is_left_as_it_was(self) -> None:
        model = Restless()
        before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
        identities = {name: id(value) for name, value in vars(model).items()}
        run_eager(make_job(model, (X,)), [X])
        assert all(torch.equal(tensor, before[name]) for name, tensor in model.state_dict().items())
        assert {name: id(value) for name, value in vars(model).items()} == identities
        assert (model.count, model.history, list(model.recent), model.seen, model.cache) == (0, [], [1], set(), {})
        assert (model.memory.calls, model.memory.last.sum(), model.plain.sum()) == (0, 0, 0)

    def test_everything_that_was_written_is_named(self) -> None:
        model = Restless()
        snapshot = Snapshot(model)
        with torch.no_grad():
            model(X)
        assert set(snapshot.written()) == WRITTEN
        snapshot.put_back()
        assert snapshot.written() == ()

    def test_an_error_restores_too(self) -> None:
        class Breaks(Restless):
            def forward(self, x: torch.Tensor) -> Any:
                super().forward(x)
                raise ValueError("after the writes")

        model = Breaks()
        with pytest.raises(ValueError, match="after the writes"):
            run_eager(make_job(model, (X,)), [X])
        assert model.count == 0
        assert model.mean.sum() == 0

    def test_an_output_that_is_a_view_of_state_keeps_its_value(self) -> None:
        class ReturnsState(torch.nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.register_buffer("total", torch.zeros(3))

            def forward(self, x: torch.Tensor) -> Any:
                self.total += x
                return {"total": self.total[1:]}

        assert run_eager(make_job(ReturnsState(), (X,)), [X])["total"].tolist() == [1.0, 2.0]

    def test_parameters_of_a_large_model_are_not_copied_and_a_write_is_seen(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(state, "SMALL_ENOUGH_TO_COPY", 4)
        model = Restless()
        snapshot = Snapshot(model)
        assert [tensor.copy is None for tensor in snapshot.tensors if tensor.kind == "parameter"] == [True]
        assert all(tensor.copy is not None for tensor in snapshot.tensors if tensor.kind != "parameter")
        with torch.no_grad():
            model(X)
        assert snapshot.lost() == ("weight",)

    def test_a_scripted_modules_buffers(self) -> None:
        class Counts(torch.nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.register_buffer("n", torch.zeros(()))

            def forward(self, x: torch.Tensor) -> torch.Tensor:
                self.n += 1
                return x + self.n

        model = torch.jit.script(Counts())
        job = make_job(model, (X,))
        assert torch.equal(run_eager(job, [X]), run_eager(job, [X]))
        assert model.n == 0


class TestInputs:
    def test_a_model_may_write_to_its_inputs(self) -> None:
        class Writes(torch.nn.Module):
            def forward(self, batch: dict[str, Any]) -> Any:
                batch["x"].zero_()
                batch["new"] = 1
                return batch["x"]

        batch = {"x": X.clone()}
        run_eager(make_job(Writes(), (batch,)), [batch["x"]])
        assert batch.keys() == {"x"}
        assert torch.equal(batch["x"], X)

    def test_constants_are_filled_in(self) -> None:
        def scaled(x: torch.Tensor, mode: str, n: int) -> torch.Tensor:
            return x * n if mode == "times" else x

        job = make_job(scaled, (X, "times", 3))
        assert run_eager(job, [X, 5]).tolist() == [0, 5, 10]
        assert run_eager(job, [X, "times", 5]).tolist() == [0, 5, 10]
        with pytest.raises(ValueError, match="2 values are needed, one per input; got 1"):
            run_eager(job, [X])


class TestTheReference:
    def test_is_without_gradients(self) -> None:
        assert not run_eager(make_job(torch.nn.Linear(3, 2), (X,)), [X]).requires_grad

    def test_runs_compiled_parts_plainly(self) -> None:
        def never(graph: object, example: object) -> Any:
            raise AssertionError("compiled")

        class Net(torch.nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.inner = torch.compile(torch.nn.Linear(3, 2), backend=never)

            def forward(self, x: torch.Tensor) -> Any:
                return self.inner(x)

        assert run_eager(make_job(Net(), (X,)), [X]).shape == (2,)
