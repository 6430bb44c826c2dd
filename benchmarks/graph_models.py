"""The models whose graphs are compared: what people export, with random weights and, where that is said, fewer layers.

ViT-B, BERT-base and the Llama-like decoder have 4 layers here; the latter has a width of 512.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn
from torch.export import Dim

from benchmarks.bench_models import Built, resnet50


class Double(nn.Sequential):
    """Twice convolution, norm and ReLU, as in every U-Net."""

    def __init__(self, inside: int, outside: int) -> None:
        layers: list[nn.Module] = []
        for width in (inside, outside):
            layers += [nn.Conv2d(width, outside, 3, padding=1), nn.BatchNorm2d(outside), nn.ReLU()]
        super().__init__(*layers)


class UNet(nn.Module):
    def __init__(self, widths: tuple[int, ...] = (16, 32, 64, 128)) -> None:
        super().__init__()
        self.down = nn.ModuleList(Double(a, b) for a, b in zip((3, *widths[:-1]), widths, strict=True))
        self.up = nn.ModuleList(nn.ConvTranspose2d(b, a, 2, stride=2) for a, b in itertools.pairwise(widths))
        self.join = nn.ModuleList(Double(2 * a, a) for a in widths[:-1])
        self.head = nn.Conv2d(widths[0], 2, 1)

    def forward(self, x: Tensor) -> Tensor:
        kept: list[Tensor] = []
        for i, block in enumerate(self.down):
            x = block(x if i == 0 else nn.functional.max_pool2d(x, 2))
            kept.append(x)
        for up, join, skip in zip(reversed(self.up), reversed(self.join), reversed(kept[:-1]), strict=True):
            x = up(x)
            if x.shape[-2:] != skip.shape[-2:]:
                x = nn.functional.interpolate(x, size=skip.shape[-2:], mode="bilinear", align_corners=False)
            x = join(torch.cat([skip, x], dim=1))
        logits: Tensor = self.head(x)
        return logits


def unet() -> Built:
    return UNet().eval(), (torch.randn(1, 3, 128, 128),), ({0: Dim.DYNAMIC},)


class EncoderLayer(nn.Module):
    """A transformer block on torch's own layers and scaled_dot_product_attention, with or without norms first."""

    def __init__(self, width: int, heads: int, norm_first: bool) -> None:
        super().__init__()
        self.query, self.key, self.value = (nn.Linear(width, width) for _ in range(3))
        self.out = nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.heads, self.norm_first = heads, norm_first

    def attend(self, x: Tensor, mask: Tensor | None) -> Tensor:
        batch, length, width = x.shape
        q, k, v = (f(x).view(batch, length, self.heads, -1).transpose(1, 2) for f in (self.query, self.key, self.value))
        mixed = nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        out: Tensor = self.out(mixed.transpose(1, 2).reshape(batch, length, width))
        return out

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        if self.norm_first:
            x = x + self.attend(self.norm1(x), mask)
            return x + self.down(nn.functional.gelu(self.up(self.norm2(x))))
        x = self.norm1(x + self.attend(x, mask))
        x = self.norm2(x + self.down(nn.functional.gelu(self.up(x))))
        return x


class ViT(nn.Module):
    def __init__(self, layers: int, width: int = 768, heads: int = 12) -> None:
        super().__init__()
        self.patches = nn.Conv2d(3, width, 16, stride=16)
        self.cls = nn.Parameter(torch.zeros(1, 1, width))
        self.places = nn.Parameter(torch.randn(1, 197, width) * 0.02)
        self.layers = nn.ModuleList(EncoderLayer(width, heads, norm_first=True) for _ in range(layers))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, 1000)

    def forward(self, pixels: Tensor) -> Tensor:
        x = self.patches(pixels).flatten(2).transpose(1, 2)
        x = torch.cat([self.cls.expand(x.shape[0], -1, -1), x], dim=1) + self.places
        for layer in self.layers:
            x = layer(x)
        logits: Tensor = self.head(self.norm(x)[:, 0])
        return logits


def vit(layers: int = 4) -> Built:
    return ViT(layers).eval(), (torch.randn(1, 3, 224, 224),), ({0: Dim.DYNAMIC},)


class Bert(nn.Module):
    def __init__(self, layers: int, width: int = 768, heads: int = 12) -> None:
        super().__init__()
        self.words, self.places, self.kinds = (nn.Embedding(n, width) for n in (30_522, 512, 2))
        self.norm = nn.LayerNorm(width)
        self.layers = nn.ModuleList(EncoderLayer(width, heads, norm_first=False) for _ in range(layers))
        self.pool, self.head = nn.Linear(width, width), nn.Linear(width, 2)

    def forward(self, input_ids: Tensor, attention_mask: Tensor, token_type_ids: Tensor) -> Tensor:
        places = torch.arange(input_ids.shape[1])
        x = self.norm(self.words(input_ids) + self.places(places) + self.kinds(token_type_ids))
        mask = (1.0 - attention_mask[:, None, None, :].to(x.dtype)) * torch.finfo(x.dtype).min
        for layer in self.layers:
            x = layer(x, mask)
        logits: Tensor = self.head(torch.tanh(self.pool(x[:, 0])))
        return logits


def bert(layers: int = 4) -> Built:
    ids = torch.randint(0, 30_000, (1, 128))
    free = {0: Dim.DYNAMIC, 1: Dim.DYNAMIC}
    return Bert(layers).eval(), (ids, torch.ones_like(ids), torch.zeros_like(ids)), (free, free, free)


class RMSNorm(nn.Module):
    """As the Llama of transformers writes it."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x: Tensor) -> Tensor:
        wide = x.to(torch.float32)
        variance = wide.pow(2).mean(-1, keepdim=True)
        return self.weight * (wide * torch.rsqrt(variance + 1e-6)).to(x.dtype)


def rotate_half(x: Tensor) -> Tensor:
    half = x.shape[-1] // 2
    return torch.cat((-x[..., half:], x[..., :half]), dim=-1)


def repeat_kv(x: Tensor, times: int) -> Tensor:
    batch, heads, length, width = x.shape
    return x[:, :, None].expand(batch, heads, times, length, width).reshape(batch, heads * times, length, width)


class LlamaLayer(nn.Module):
    def __init__(self, width: int, heads: int, groups: int) -> None:
        super().__init__()
        head = width // heads
        self.query, self.out = nn.Linear(width, width, bias=False), nn.Linear(width, width, bias=False)
        self.key, self.value = (nn.Linear(width, groups * head, bias=False) for _ in range(2))
        self.gate, self.up = (nn.Linear(width, 3 * width, bias=False) for _ in range(2))
        self.down = nn.Linear(3 * width, width, bias=False)
        self.norm1, self.norm2 = RMSNorm(width), RMSNorm(width)
        self.head, self.times = head, heads // groups

    def forward(
        self, x: Tensor, cos: Tensor, sin: Tensor, mask: Tensor, past: tuple[Tensor, Tensor]
    ) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        batch, length, width = x.shape
        y = self.norm1(x)
        q, k, v = (f(y).view(batch, length, -1, self.head).transpose(1, 2) for f in (self.query, self.key, self.value))
        q, k = (z * cos + rotate_half(z) * sin for z in (q, k))
        k, v = torch.cat([past[0], k], dim=2), torch.cat([past[1], v], dim=2)
        mixed = nn.functional.scaled_dot_product_attention(
            q, repeat_kv(k, self.times), repeat_kv(v, self.times), attn_mask=mask
        )
        x = x + self.out(mixed.transpose(1, 2).reshape(batch, length, width))
        y = self.norm2(x)
        return x + self.down(nn.functional.silu(self.gate(y)) * self.up(y)), (k, v)


class Llama(nn.Module):
    """A decoder with a cache, grouped heads and rotary embedding, written as people write it."""

    def __init__(self, layers: int, width: int, heads: int, groups: int, vocabulary: int) -> None:
        super().__init__()
        self.tokens = nn.Embedding(vocabulary, width)
        self.layers = nn.ModuleList(LlamaLayer(width, heads, groups) for _ in range(layers))
        self.norm, self.lm_head = RMSNorm(width), nn.Linear(width, vocabulary, bias=False)
        head = width // heads
        frequencies = 1.0 / (10_000 ** (torch.arange(0, head, 2).float() / head))
        self.register_buffer("frequencies", frequencies, persistent=False)

    def forward(
        self, input_ids: Tensor, past: list[tuple[Tensor, Tensor]]
    ) -> tuple[Tensor, list[tuple[Tensor, Tensor]]]:
        seen, length = past[0][0].shape[2], input_ids.shape[1]
        places = torch.arange(seen, seen + length)
        angles = places[:, None].float() * self.frequencies[None, :]
        angles = torch.cat((angles, angles), dim=-1)
        cos, sin = angles.cos()[None, None], angles.sin()[None, None]
        mask = (torch.arange(seen + length)[None, :] <= places[:, None])[None, None]
        x = self.tokens(input_ids)
        present = []
        for layer, kept in zip(self.layers, past, strict=True):
            x, new = layer(x, cos, sin, mask, kept)
            present.append(new)
        return self.lm_head(self.norm(x)), present


def llama(layers: int = 4, width: int = 512, vocabulary: int = 8_000) -> Built:
    """Of the proportions of a small Llama: heads of 64, 4 to a group. Batch, length and cache are free."""
    model = Llama(layers, width, heads=width // 64, groups=width // 256, vocabulary=vocabulary)
    free, cache = {0: Dim.DYNAMIC, 1: Dim.DYNAMIC}, {0: Dim.DYNAMIC, 2: Dim.DYNAMIC}
    return model.eval(), llama_inputs(model, 2, 5, 7), (free, [(cache, cache)] * layers)


def llama_inputs(model: Llama, batch: int, length: int, seen: int) -> tuple[Any, ...]:
    vocabulary, width = model.tokens.weight.shape
    layers, groups = len(model.layers), width // 256
    past = [tuple(torch.randn(batch, groups, seen, 64) for _ in range(2)) for _ in range(layers)]
    return torch.randint(0, vocabulary, (batch, length)), past


class Tagger(nn.Module):
    """Embedding, a bidirectional LSTM of two layers, a linear layer."""

    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(5_000, 128)
        self.lstm = nn.LSTM(128, 128, num_layers=2, bidirectional=True, batch_first=True)
        self.head = nn.Linear(256, 17)

    def forward(self, ids: Tensor) -> Tensor:
        mixed, _ = self.lstm(self.words(ids))
        scores: Tensor = self.head(mixed).log_softmax(-1)
        return scores


def tagger() -> Built:
    return Tagger().eval(), (torch.randint(0, 5_000, (2, 40)),), ({0: Dim.DYNAMIC, 1: Dim.DYNAMIC},)


@dataclass(frozen=True)
class GraphModel:
    """A model, and what it is run on: the inputs that it is exported with, or others of free sizes."""

    build: Callable[[], Built]
    runs: dict[str, Callable[[Any], tuple[Any, ...]]] = field(default_factory=dict)


GRAPHS = {
    "resnet50": GraphModel(resnet50),
    "unet": GraphModel(unet),
    "vit_b_4_layers": GraphModel(vit),
    "bert_base_4_layers": GraphModel(bert),
    "llama_4_layers": GraphModel(
        llama,
        {
            "prefill 128": lambda model: llama_inputs(model, 1, 128, 0),
            "decode, 512 in the cache": lambda model: llama_inputs(model, 1, 1, 512),
            "decode, 2048 in the cache": lambda model: llama_inputs(model, 1, 1, 2048),
        },
    ),
    "lstm_tagger": GraphModel(tagger),
}
