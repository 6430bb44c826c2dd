"""The models whose export is timed: `WORKLOADS` maps a name to a builder of (model, args, dynamic_shapes)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.export import Dim

Built = tuple[nn.Module, tuple[Any, ...], Any]


@dataclass(frozen=True)
class Workload:
    build: Callable[[], Built]
    repeats: int = 3
    quick: bool = False
    """Part of `--quick`."""
    warm_up: bool = False
    """Another small model is exported in the same process first: what does the second one cost?"""


def tiny_mlp(width: int = 16) -> Built:
    model = nn.Sequential(nn.Linear(8, width), nn.ReLU(), nn.Linear(width, 4))
    return model.eval(), (torch.randn(2, 8),), ({0: Dim.DYNAMIC},)


class Block(nn.Module):
    """A pre-norm transformer block, written with plain operations as users write them."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.heads = heads

    def forward(self, x: Tensor) -> Tensor:
        batch, length, width = x.shape
        head = width // self.heads
        q, k, v = self.qkv(self.norm1(x)).view(batch, length, 3, self.heads, head).permute(2, 0, 3, 1, 4)
        mixed = (q @ k.transpose(-1, -2) / head**0.5).softmax(-1) @ v
        x = x + self.out(mixed.transpose(1, 2).reshape(batch, length, width))
        x = x + self.down(nn.functional.gelu(self.up(self.norm2(x))))
        return x


def decoder(layers: int, free: bool) -> Built:
    """Narrow on purpose: the time goes into operations, not into writing weights."""
    model = nn.Sequential(*(Block(64, 4) for _ in range(layers)))
    return model.eval(), (torch.randn(2, 16, 64),), ({0: Dim.DYNAMIC, 1: Dim.DYNAMIC},) if free else None


class LanguageModel(nn.Module):
    def __init__(self, layers: int, width: int, heads: int, vocabulary: int, positions: int) -> None:
        super().__init__()
        self.tokens, self.places = nn.Embedding(vocabulary, width), nn.Embedding(positions, width)
        self.blocks = nn.ModuleList(Block(width, heads) for _ in range(layers))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, vocabulary, bias=False)
        self.head.weight = self.tokens.weight

    def forward(self, ids: Tensor) -> Tensor:
        x = self.tokens(ids) + self.places(torch.arange(ids.shape[1]))
        for block in self.blocks:
            x = block(x)
        logits: Tensor = self.head(self.norm(x))
        return logits


def decoder_350m() -> Built:
    """24 layers of width 1024 with a tied vocabulary of 32k, batch and sequence free: 1.35 GB of weights."""
    model = LanguageModel(layers=24, width=1024, heads=16, vocabulary=32_000, positions=1024)
    return model.eval(), (torch.zeros(2, 16, dtype=torch.long),), ({0: Dim.DYNAMIC, 1: Dim.DYNAMIC},)


class Bottleneck(nn.Module):
    def __init__(self, inside: int, width: int, stride: int) -> None:
        super().__init__()
        outside = width * 4
        self.body = nn.Sequential(
            *_conv(inside, width, 1), nn.ReLU(), *_conv(width, width, 3, stride), nn.ReLU(), *_conv(width, outside, 1)
        )
        same = stride == 1 and inside == outside
        self.shortcut = nn.Identity() if same else nn.Sequential(*_conv(inside, outside, 1, stride))

    def forward(self, x: Tensor) -> Tensor:
        return nn.functional.relu(self.body(x) + self.shortcut(x))


def _conv(inside: int, outside: int, kernel: int, stride: int = 1) -> tuple[nn.Module, nn.Module]:
    return nn.Conv2d(inside, outside, kernel, stride, kernel // 2, bias=False), nn.BatchNorm2d(outside)


def resnet50() -> Built:
    """The standard stages (3, 4, 6, 3); torchvision is not a dependency for the sake of one model."""
    stages: list[nn.Module] = []
    inside = 64
    for width, blocks, stride in ((64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2)):
        for index in range(blocks):
            stages.append(Bottleneck(inside, width, stride if index == 0 else 1))
            inside = width * 4
    model = nn.Sequential(
        *_conv(3, 64, 7, 2), nn.ReLU(), nn.MaxPool2d(3, 2, 1), *stages,
        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(inside, 1000),
    )  # fmt: skip
    return model.eval(), (torch.randn(2, 3, 224, 224),), ({0: Dim.DYNAMIC},)


WORKLOADS = {
    "tiny_mlp": Workload(tiny_mlp, repeats=5, quick=True),
    "second_small": Workload(partial(tiny_mlp, 24), repeats=5, quick=True, warm_up=True),
    "resnet50": Workload(resnet50),
    "decoder_6_fixed": Workload(partial(decoder, 6, False), quick=True),
    "decoder_6_free": Workload(partial(decoder, 6, True), quick=True),
    "decoder_24_fixed": Workload(partial(decoder, 24, False)),
    "decoder_24_free": Workload(partial(decoder, 24, True)),
    "decoder_96_fixed": Workload(partial(decoder, 96, False), repeats=1),
    "decoder_96_free": Workload(partial(decoder, 96, True), repeats=1),
    "decoder_350m": Workload(decoder_350m, repeats=1),
}


def weight_bytes(model: nn.Module) -> int:
    """Shared storages once."""
    tensors = [*model.parameters(), *model.buffers()]
    return sum({t.untyped_storage().data_ptr(): t.untyped_storage().nbytes() for t in tensors}.values())
