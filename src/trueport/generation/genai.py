"""`genai_config.json`: what ONNX Runtime GenAI asks of a folder with a decoder."""

from __future__ import annotations

import re
from typing import Any

from trueport.generation.plan import StepPlan, TensorRole

_ANY_DECODER = "llama"
"""GenAI knows a list of types, and does the same for each that has keys and values by layer; it takes GPT-2, OPT and
Mixtral by this name, and not by their own. Only where the frequencies of a rotary embedding change it does more."""


def genai_config(model: Any, plan: StepPlan, file: str) -> dict[str, Any] | None:
    """The settings; None for what it has no words for: states other than keys and values of one shape."""
    shapes = {(tuple(state.axes.items()), state.example.shape[1], state.example.shape[-1]) for state in plan.states}
    names = {re.sub(r"\d+", "%d", state.name, count=1) for state in plan.states}
    if len(shapes) != 1 or names != {"past_key_values.%d.key", "past_key_values.%d.value"}:
        return None
    ((_, heads, head_size),) = shapes
    config, habits = model.config.get_text_config(decoder=True), model.generation_config
    known = (TensorRole.TOKENS, TensorRole.MASK, TensorRole.POSITIONS)
    inputs = {port.name: port.name for port in plan.arguments.values() if port.role in known}
    longest = getattr(config, "max_position_embeddings", None)  # rotary embeddings and ALiBi need not name one
    length = longest if isinstance(longest, int) and longest > 0 else None
    ids = {name: getattr(habits, name) for name in ("bos_token_id", "eos_token_id", "pad_token_id")}
    if ids["pad_token_id"] is None:
        ids["pad_token_id"] = ids["eos_token_id"][0] if isinstance(ids["eos_token_id"], list) else ids["eos_token_id"]
    return {
        "model": {
            "type": config.model_type if "longrope" in str(getattr(config, "rope_parameters", "")) else _ANY_DECODER,
            "vocab_size": config.vocab_size,
            **({} if length is None else {"context_length": length}),
            **{name: value for name, value in ids.items() if value is not None},
            "decoder": {
                "filename": file,
                "session_options": {"log_id": "onnxruntime-genai", "provider_options": []},
                "hidden_size": config.hidden_size,
                "head_size": head_size,
                "num_attention_heads": config.num_attention_heads,
                "num_key_value_heads": heads,
                "num_hidden_layers": len(plan.states) // 2,
                "inputs": {
                    **inputs,
                    "past_key_names": "past_key_values.%d.key",
                    "past_value_names": "past_key_values.%d.value",
                },
                "outputs": {
                    "logits": "logits",
                    "present_key_names": "present.%d.key",
                    "present_value_names": "present.%d.value",
                },
            },
        },
        "search": {
            "do_sample": bool(habits.do_sample),
            **({} if length is None else {"max_length": length}),
            "num_beams": 1,
            "past_present_share_buffer": False,
        },
    }
