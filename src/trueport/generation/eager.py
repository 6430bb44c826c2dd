"""`generate()` in eager: prompts to watch and to compare with, and greedy generation without a model's own habits."""

from __future__ import annotations

import contextlib
import importlib
import inspect
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import torch

from trueport.diagnostics.rules.tp002_eager_refuses import EagerRefuses
from trueport.diagnostics.rules.tp206_generate_unknown import GenerateUnknown
from trueport.errors import ExportError, refusal
from trueport.examine.places import user_place
from trueport.examine.refusals import shortened
from trueport.generation.watch import noted, unknown

Inputs = dict[str, torch.Tensor]


@dataclass(frozen=True)
class Prompts:
    """Makes inputs for `generate()` of any batch and length: text is drawn, anything else must be given."""

    model: Any
    given: Mapping[str, torch.Tensor]
    seed: int = 0

    @property
    def encodes(self) -> bool:
        """Whether the model has an encoder, which reads the source before the first token."""
        return bool(self.model.config.is_encoder_decoder)

    @property
    def vocabulary(self) -> int:
        config = self.model.config.get_text_config(decoder=True)
        if not isinstance(found := getattr(config, "vocab_size", None), int):
            raise unknown(
                f"the config of {type(self.model).__name__} has no vocab_size, and which tokens there are is not known"
            )
        return found

    @property
    def positions(self) -> int | None:
        """How many tokens the model is made for, where its config says so."""
        found = getattr(self.model.config.get_text_config(decoder=True), "max_position_embeddings", None)
        return found if isinstance(found, int) and found > 0 else None

    def make(self, batch: int, length: int, source: int = 0) -> Inputs:
        """Rows of which each is padded by one more token on the left than the one before it.

        `length` is that of the decoder's prompt; with an encoder, `source` is that of its text.
        """
        draw = torch.Generator().manual_seed(self.seed + 100 * batch + length)
        if set(self.given) - {"input_ids", "attention_mask"}:
            found = {
                name: torch.stack([value[i % len(value)] for i in range(batch)]) for name, value in self.given.items()
            }
        elif self.model.main_input_name == "input_ids":
            found = self._text(draw, batch, source if self.encodes else length)
        else:
            message = f"{type(self.model).__name__} is given {self.model.main_input_name}, and not text alone"
            raise refusal(GenerateUnknown(message=message, fix="give an example of it: inputs={...}"))
        if self.encodes:
            prompt = self._ids(draw, batch, length)
            prompt[:, 0] = start_token(self.model)
            found["decoder_input_ids"] = prompt
        return found

    @property
    def pads(self) -> bool:
        """Whether `generate()` can be told which tokens of a text are padding. It refuses what it does not pass on."""
        taken = inspect.signature(self.model.prepare_inputs_for_generation).parameters
        passes_on = any(each.kind is each.VAR_KEYWORD for each in taken.values())
        return "attention_mask" in taken or (
            passes_on and "attention_mask" in inspect.signature(self.model.forward).parameters
        )

    def _text(self, draw: torch.Generator, batch: int, length: int) -> Inputs:
        found = {"input_ids": self._ids(draw, batch, length)}
        if self.pads:
            found["attention_mask"] = (torch.arange(length) >= torch.arange(batch)[:, None]).long()
        return found

    def _ids(self, draw: torch.Generator, batch: int, length: int) -> torch.Tensor:
        return torch.randint(0, self.vocabulary, (batch, length), generator=draw)


@dataclass(frozen=True)
class EagerText:
    """What eager chose, token by token, and the logits that it chose by."""

    tokens: torch.Tensor
    logits: tuple[torch.Tensor, ...]
    anew: tuple[bool, ...]
    """Of each token, whether all tokens before it were read for it once more, with an empty cache. The first one is;
    so is the one at which the frequencies of a rotary embedding change (longrope)."""


def generate(model: Any, inputs: Inputs, tokens: int) -> EagerText:
    """Greedy generation of so many tokens, none of which ends it.

    It is the library's own loop, also where a model's class has a `generate` of its own around it (Whisper's cuts
    audio into pieces): a graph is one step of that loop. Processors of logits and tokens that end a text stay out.
    """
    library: Any = importlib.import_module("transformers")
    lengths: list[int] = []

    def after(given: Mapping[str, Any], _: Any) -> None:
        lengths.append(given[tokens_name(model)].shape[1])

    with _plainly(model, tokens), noted(model, lambda _: None, after), torch.no_grad():
        given = {name: value.clone() for name, value in inputs.items()}
        try:
            found = library.GenerationMixin.generate(model, **given)
        except ExportError:
            raise
        except Exception as error:  # whatever the model raises, eager gives no answer
            raise refusal(_eager_refuses(model, given, error)) from error
    return EagerText(found.sequences[:, -tokens:], found.logits, (True, *(length > 1 for length in lengths[1:])))


def _eager_refuses(model: Any, inputs: Inputs, error: Exception) -> EagerRefuses:
    shown = ", ".join(f"{name} {list(value.shape)}" for name, value in inputs.items())
    return EagerRefuses(
        message=f"generate() of {type(model).__name__} raises {shortened(error)}",
        place=user_place(error, model),
        seen=(f"it was given {shown}",),
        fix="run model.generate() yourself: it raises the same; where it takes more than text, give inputs={...}",
    )


def tokens_name(model: Any) -> str:
    """The argument of forward that is the new tokens."""
    return "decoder_input_ids" if model.config.is_encoder_decoder else "input_ids"


@contextlib.contextmanager
def _plainly(model: Any, tokens: int) -> Iterator[None]:
    """Meanwhile the model's generation config says "greedy", and nothing else."""
    library: Any = importlib.import_module("transformers")
    before = model.generation_config
    model.generation_config = library.GenerationConfig(
        max_new_tokens=tokens,
        do_sample=False,
        return_dict_in_generate=True,
        output_logits=True,
        pad_token_id=0,
        bos_token_id=before.bos_token_id,
        decoder_start_token_id=start_token(model) if model.config.is_encoder_decoder else None,
    )
    try:
        yield
    finally:
        model.generation_config = before


def start_token(model: Any) -> int:
    """The first token of each text that a decoder writes."""
    for holder in (model.generation_config, model.config):
        for name in ("decoder_start_token_id", "bos_token_id"):
            if isinstance(found := getattr(holder, name, None), int):
                return found
    return 0
