"""Models by name: small, with noise for weights, with inputs that eager takes, and sizes that eager lets move."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import nn

from trueport.cli.request import read_request
from trueport.errors import UsageError
from trueport.sweeping import Entry
from trueport.zoo import build, is_named
from trueport.zoo.of_transformers import _telling
from trueport.zoo.plans import CallPlan, TensorPlan
from trueport.zoo.remaking import construction_of
from trueport.zoo.shrinking import shrunk

transformers = pytest.importorskip("transformers")


def free(shapes: Mapping[str, Any]) -> dict[str, dict[int, str]]:
    return {name: {axis: size.__name__ for axis, size in axes.items()} for name, axes in shapes.items()}


def test_what_is_a_name() -> None:
    assert is_named("transformers:llama") and is_named("timm:resnet50") and is_named("transformers:audio-spectrogram")
    assert not is_named("models.py:Net") and not is_named("transformers") and not is_named("mytransformers:llama")


@pytest.mark.parametrize(
    ("name", "arguments", "moving"),
    [
        ("llama", {"input_ids", "attention_mask"}, {"batch", "sequence"}),
        ("T5ForConditionalGeneration", {"input_ids", "attention_mask", "decoder_input_ids"}, {"sequence", "target"}),
        ("vit", {"pixel_values"}, {"batch"}),
        ("convnext", {"pixel_values"}, {"batch", "height", "width"}),
        ("wav2vec2", {"input_values", "attention_mask"}, {"batch", "samples"}),
        ("audio-spectrogram-transformer", {"input_values"}, {"batch"}),
        ("detr", {"pixel_values", "pixel_mask"}, {"batch", "height", "width"}),
        ("llava", {"input_ids", "attention_mask", "pixel_values"}, {"batch", "sequence"}),
        ("lxmert", {"input_ids", "attention_mask", "visual_feats", "visual_pos"}, {"batch", "sequence", "boxes"}),
        ("siglip2", {"input_ids", "pixel_values", "pixel_attention_mask", "spatial_shapes"}, {"batch", "sequence"}),
    ],
)  # fmt: skip
def test_a_model_of_each_kind(name: str, arguments: set[str], moving: set[str]) -> None:
    """Text, two texts, pictures of one size and of any, sound, masks, a picture in a text, regions of one, a plan."""
    made = build(f"transformers:{name}")
    assert set(made.kwargs) == arguments and not made.args
    assert {size for axes in free(made.dynamic_shapes).values() for size in axes.values()} >= moving
    assert sum(weight.numel() for weight in made.model.parameters()) < 5_000_000
    assert not made.model.training
    shapes = {tuple(value.shape for value in kwargs.values()) for _, kwargs in made.more}
    assert len(made.more) >= 4 and len(shapes) >= 3
    again = build(f"transformers:{name}")
    with torch.no_grad():
        first, second = (each.model(**each.kwargs).to_tuple()[0] for each in (made, again))
    assert torch.equal(first, second) and first.abs().max() > 0.01  # the same in every process, and not nothing


def test_the_failure_that_is_told() -> None:
    """That a larger one does not fit is not why the small one does not run."""
    failed = [
        "A, degree 0, input_ids: ValueError: no `visual_feats`",
        "A, degree 1: MemoryError: 90 million parameters",
    ]
    assert _telling(failed) == failed[0]
    assert _telling(failed[1:]) == failed[1]


def test_each_kind_of_layer_stays() -> None:
    """Layers of two kinds, and a mask that is shorter than the text: else the export would not meet them."""
    config = shrunk(transformers.Qwen3NextConfig, 0)
    assert config.num_hidden_layers == len(config.layer_types) == 2
    assert set(config.layer_types) == {"linear_attention", "full_attention"}
    assert shrunk(transformers.Gemma2Config, 0).sliding_window < 8
    nested = shrunk(transformers.LlavaConfig, 0)
    assert nested.text_config.hidden_size == nested.vision_config.hidden_size == 64
    assert nested.image_token_index < nested.text_config.vocab_size
    kept = shrunk(transformers.BertConfig, 2)
    assert kept.hidden_size == 768 and kept.num_hidden_layers == 2


def test_a_size_may_be_a_multiple_of_another() -> None:
    plan = CallPlan(
        {"x": TensorPlan("float", ("16*batch", 3)), "n": TensorPlan("grid", ("batch", 2), (4, 4))}, {"batch": 2}
    )
    assert plan.inputs(0)["x"].shape == (32, 3) and plan.inputs(0, {"batch": 3})["x"].shape == (48, 3)
    assert free(plan.dynamic_shapes({}, {}))["x"] == {0: "16*batch"}
    assert plan.fixed("batch").inputs(0, {"batch": 3})["x"].shape == (32, 3)
    assert not plan.fixed("batch").free


def test_names_that_are_none() -> None:
    with pytest.raises(UsageError) as caught:
        build("transformers:lama")
    assert "'lama'" in caught.value.diagnostics[0].message and "llama" in caught.value.diagnostics[0].fix


def test_the_command_line_takes_a_name() -> None:
    said: dict[str, Any] = {"weights": None, "constants": None}
    asked = read_request(target="transformers:bert", inputs=(), dims=(), **said)
    assert free(asked.options["dynamic_shapes"])["input_ids"] == {0: "batch", 1: "sequence"}
    given = read_request(target="transformers:bert", inputs=("input_ids:BxS:i64@0..90",), dims=("S=2..16",), **said)
    assert list(given.options["kwargs"] or {}) + list(given.args) and given.model is given.given
    with pytest.raises(UsageError, match="the name of the model alone"):
        read_request(target="transformers:bert", inputs=(), dims=("S=2..16",), **said)


def test_another_version_of_the_library_is_another_row(monkeypatch: pytest.MonkeyPatch) -> None:
    entry = Entry(target="transformers:llama")
    before = entry.key({})
    newer = SimpleNamespace(version="999.0")
    monkeypatch.setattr("trueport.sweeping.entries.distributions", lambda name: iter([newer]))
    assert entry.key({}) != before


@dataclass
class Stage:
    """As timm describes a network: a type of block, how many of it, and how wide."""

    type: str
    d: int
    c: int


class Backbone(nn.Module):
    def __init__(
        self, stages: tuple[Stage, ...], depths: tuple[int, ...] = (6, 6), *, act: type = nn.ReLU, **more: Any
    ):
        super().__init__()
        self.layers = nn.Sequential(*(nn.Conv2d(3, 3, 1) for _ in range(sum(s.d for s in stages) + sum(depths))))
        self.act, self.more = act(), more

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.act(self.layers(x))


def test_a_constructor_is_called_again_with_smaller_numbers() -> None:
    """What a library's own function makes takes none of them."""

    def made_by_a_library() -> nn.Module:
        return Backbone((Stage("a", 9, 16), Stage("b", 1, 32)), act=nn.GELU, num_classes=7)

    found = construction_of(made_by_a_library)
    assert found is not None
    small = found.again(0)
    assert len(small.layers) == 2 + 1 + 2 + 2 and isinstance(small.act, nn.GELU) and small.more == {"num_classes": 7}
    assert next(small.parameters()).device.type == "cpu"
    assert len(found.again(None, depths=()).layers) == 10


def test_what_is_given_modules_is_not_made_again() -> None:
    class Head(nn.Module):
        def __init__(self, body: nn.Module) -> None:
            super().__init__()
            self.body = body

    assert construction_of(lambda: Head(nn.Linear(2, 2))) is None


def test_a_library_that_is_not_there_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "timm", None)
    with pytest.raises(UsageError, match="timm cannot be imported"):
        build("timm:resnet18")


def test_pictures_of_timm() -> None:
    pytest.importorskip("torchvision")
    pytest.importorskip("timm")
    made = build("timm:resnet18")
    assert set(free(made.dynamic_shapes)["x"]) == {0, 2, 3}
