"""Models of transformers that are small, random and made here: nothing is downloaded."""

from __future__ import annotations

import importlib
from typing import Any

import torch

VOCABULARY = 99
TINY = {
    "vocab_size": VOCABULARY, "hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 2,
    "num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": 64,
}  # fmt: skip


def transformers() -> Any:
    return importlib.import_module("transformers")


def made(config: Any, kind: str) -> Any:
    """With weights large enough that the logits lie apart."""
    torch.manual_seed(0)
    model = getattr(transformers(), kind)(config).eval()
    for parameter in model.parameters():
        if parameter.dim() > 1:
            torch.nn.init.normal_(parameter, std=0.3)
    return model


def llama(**more: Any) -> Any:
    return made(transformers().LlamaConfig(**TINY, **more), "LlamaForCausalLM")


def mistral(window: int) -> Any:
    return made(transformers().MistralConfig(**TINY, sliding_window=window), "MistralForCausalLM")


def t5() -> Any:
    config = transformers().T5Config(
        vocab_size=VOCABULARY, d_model=16, d_kv=4, d_ff=32, num_layers=2, num_heads=4, decoder_start_token_id=0
    )
    return made(config, "T5ForConditionalGeneration")


def moonshine() -> Any:
    """Which asks the outputs of its encoder for attributes, where others take a tuple."""
    config = transformers().MoonshineConfig(
        vocab_size=VOCABULARY, hidden_size=16, intermediate_size=32, encoder_num_hidden_layers=1,
        decoder_num_hidden_layers=1, encoder_num_attention_heads=2, decoder_num_attention_heads=2,
        bos_token_id=1, eos_token_id=2, pad_token_id=0, decoder_start_token_id=1,
    )  # fmt: skip
    return made(config, "MoonshineForConditionalGeneration")


def mamba() -> Any:
    config = transformers().MambaConfig(
        vocab_size=VOCABULARY, hidden_size=16, num_hidden_layers=1, state_size=4, expand=2, conv_kernel=3
    )
    return made(config, "MambaForCausalLM")


def recurrent_gemma() -> Any:
    """Which raises where several tokens come after others: its mask does not count those."""
    config = transformers().RecurrentGemmaConfig(
        vocab_size=VOCABULARY, hidden_size=16, intermediate_size=32, num_hidden_layers=2, num_attention_heads=2,
        num_key_value_heads=1, lru_width=16, attention_window_size=16, block_types=["recurrent", "attention"],
    )  # fmt: skip
    return made(config, "RecurrentGemmaForCausalLM")


def phi3() -> Any:
    """Whose rotary embedding changes after 12 tokens."""
    rope = {
        "rope_type": "longrope", "rope_theta": 10000.0, "original_max_position_embeddings": 12, "factor": 2.0,
        "short_factor": [1.0, 1.1], "long_factor": [2.0, 4.0],
    }  # fmt: skip
    config = transformers().Phi3Config(
        **TINY,
        original_max_position_embeddings=12,
        rope_parameters=rope,
        pad_token_id=0,
        bos_token_id=1,
        eos_token_id=2,
    )
    return made(config, "Phi3ForCausalLM")


def leaky() -> Any:
    """No model of the library's: its states are attributes, and it begins anew with each piece of several tokens."""
    library = transformers()

    class Leaky(torch.nn.Module):
        def __init__(self, width: int) -> None:
            super().__init__()
            self.inner = torch.nn.Linear(width, width)
            self.level: Any = None
            self.register_buffer("count", torch.zeros(1, 1), persistent=False)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            if x.shape[1] > 1 or self.level is None:
                self.level = torch.zeros(x.shape[0], x.shape[2])
                self.count = torch.zeros(x.shape[0], 1)
            found = []
            for t in range(x.shape[1]):
                self.level = torch.tanh(self.inner(x[:, t]) + 0.5 * self.level)
                self.count = self.count + 1
                found.append(self.level / self.count)
            return torch.stack(found, 1)

    class LeakyNet(library.PreTrainedModel, library.GenerationMixin):
        config_class = library.PretrainedConfig

        def __init__(self, config: Any) -> None:
            super().__init__(config)
            self.embed = torch.nn.Embedding(VOCABULARY, 8)
            self.cells = torch.nn.ModuleList(Leaky(8) for _ in range(2))
            self.head = torch.nn.Linear(8, VOCABULARY)
            self.post_init()

        def prepare_inputs_for_generation(
            self, input_ids: torch.Tensor, attention_mask: Any = None, is_first_iteration: bool = False, **_: Any
        ) -> dict[str, Any]:
            return {"input_ids": input_ids if is_first_iteration else input_ids[:, -1:]}

        def forward(self, input_ids: torch.Tensor, attention_mask: Any = None, **_: Any) -> Any:
            x = self.embed(input_ids)
            for cell in self.cells:
                x = x + cell(x)
            return library.modeling_outputs.CausalLMOutput(logits=self.head(x))

    torch.manual_seed(0)
    model = LeakyNet(library.PretrainedConfig(vocab_size=VOCABULARY, num_hidden_layers=2, bos_token_id=1)).eval()
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.8)
    return model
