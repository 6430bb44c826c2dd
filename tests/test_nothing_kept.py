"""An export that is over keeps nothing: no weights, no object more than the one before it."""

from __future__ import annotations

import gc
import logging
import weakref

import pytest
import torch
from torch import nn

import trueport

WIDTH = 1600
"""Two layers of it are 20 MB."""


class Plain(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, WIDTH)

    def forward(self, x):
        return self.second(torch.relu(self.first(x)))


class WithControlFlow(Plain):
    def forward(self, x):
        y = self.first(x)
        if y.sum() > 0:
            y = y * 2
        for row in x:
            y = y + self.second(row)
        return y


class WritesInPlace(Plain):
    def forward(self, x):
        y = self.first(x)
        y[:, 0] = 0
        return self.second(y)


class FixedSize(Plain):
    """Refused after the trace: 2 rows are baked in."""

    def forward(self, x):
        return self.second(self.first(x)).reshape(2, WIDTH)


class Fails(Plain):
    """Refused in the trace, whose traceback has the model in its frames."""

    def forward(self, x):
        return self.second(self.first(x)).numpy().tolist()


class FailsEagerly(Plain):
    def forward(self, x):
        return self.second(self.first(x)) @ x


def export_once(kind: type[nn.Module], verify: bool) -> list[weakref.ref[torch.Tensor]]:
    model = kind().eval()
    kept = [weakref.ref(parameter) for parameter in model.parameters()]
    try:
        trueport.export(model, (torch.randn(2, WIDTH),), dynamic_shapes=({0: "n"},), verify=verify)
        assert kind in (Plain, WithControlFlow, WritesInPlace)
    except trueport.ExportError:
        assert kind in (FixedSize, Fails, FailsEagerly)
    return kept


def tensor_bytes() -> int:
    """Of all storages that some tensor of this process has, each counted once."""
    storages = {}
    for found in gc.get_objects():
        if type(found) in (torch.Tensor, nn.Parameter) and found.device.type == "cpu":
            if found.layout is not torch.strided:
                continue
            storage = found.untyped_storage()
            storages[storage._cdata] = storage.nbytes()
    return sum(size for size in storages.values() if isinstance(size, int))


MODELS = [Plain, WithControlFlow, WritesInPlace, FixedSize, Fails, FailsEagerly]


@pytest.mark.parametrize("kind", MODELS)
def test_the_weights_go_with_the_model_and_the_rest_stays_level(kind, monkeypatch):
    monkeypatch.setattr(logging.getLogger("torch.__trace"), "disabled", True)  # pytest keeps what torch logs
    seen = []
    for exports in (2, 4, 4):
        for _ in range(exports):
            kept = export_once(kind, verify=False)
        gc.collect()
        assert not [reference for reference in kept if reference() is not None]
        del kept
        seen.append((len(gc.get_objects()), tensor_bytes()))
    objects, sizes = zip(*seen, strict=True)
    assert sizes[-1] - sizes[0] < 4 * WIDTH  # one row, and not a model
    # What Python keeps for later (caches of abstract classes) may grow now and then, never with each export.
    assert min(objects[1] - objects[0], objects[2] - objects[1]) < 4 * 5


@pytest.mark.parametrize("kind", [Plain, WithControlFlow, FixedSize])
def test_a_verified_export_keeps_no_weights_either(kind):
    kept = [reference for _ in range(3) for reference in export_once(kind, verify=True)]
    gc.collect()
    assert not [reference for reference in kept if reference() is not None]


def test_a_server_need_not_call_the_collector():
    """The graph of an export is a ring, which the collector ends; it is called where much waits for it."""
    kept = [export_once(Plain, verify=False)[0] for _ in range(12)]
    assert sum(reference() is not None for reference in kept) <= 6
