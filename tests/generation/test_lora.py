"""Adapters of peft: with the file of one the tokens are those of eager with it on, without they are the base's."""

from __future__ import annotations

import onnx
import onnxruntime
import pytest
import torch

import trueport
from tests.generation.models import llama
from trueport.generation.eager import Prompts, generate
from trueport.generation.lora import AdapterSet

peft = pytest.importorskip("peft")

LAYERS = ["q_proj", "down_proj"]


def with_adapter(model, name: str, alpha: int, rank: int = 2, **more):
    config = peft.LoraConfig(r=rank, lora_alpha=alpha, target_modules=LAYERS, task_type="CAUSAL_LM", **more)
    if isinstance(model, peft.PeftModel):
        model.add_adapter(name, config)
    else:
        model = peft.get_peft_model(model, config, adapter_name=name)
    draw = torch.Generator().manual_seed(sum(name.encode()))
    for parameter, weight in model.named_parameters():
        if parameter.endswith(f".{name}.weight"):
            weight.data = torch.randn(weight.shape, generator=draw) * 0.3
    return model.eval()


def test_two_adapters_and_the_base(tmp_path):
    """The second one has another scale, and comes from a folder."""
    folder = tmp_path / "poet"
    with_adapter(llama(), "default", alpha=12).save_pretrained(folder)
    base = llama()
    before = {name: weight.clone() for name, weight in base.state_dict().items()}
    model = with_adapter(base, "pirate", alpha=4)
    model.load_adapter(folder, "poet")
    model.set_adapter("pirate")
    done = trueport.generation.export(model.eval(), tmp_path / "out", tokens=6)

    # Each proof raises where a token differs from eager's; that eager's differ shows that an adapter does something.
    assert list(done.adapters) == ["pirate", "poet"]
    assert [len(proof.runs) for proof in (done.proof, *done.adapters.values())] == [4, 4, 4]
    adapters = AdapterSet.of(model.get_base_model())
    texts = set()
    for name in (None, "pirate", "poet"):
        with adapters.on(name):
            text = generate(adapters.model, Prompts(adapters.model, {}).make(1, 7), 6).tokens
        texts.add(tuple(text[0].tolist()))
    assert len(texts) == 3
    graph = onnx.load(tmp_path / "out" / "model.onnx").graph
    inputs = {value.name for value in graph.input}
    weights = {tensor.name: onnx.numpy_helper.to_array(tensor) for tensor in graph.initializer}
    layers = [f"model.layers.{i}.{layer}" for i in (0, 1) for layer in ("self_attn.q_proj", "mlp.down_proj")]
    factors = {f"{layer}.lora_{factor}.weight" for layer in layers for factor in "AB"}
    assert factors < inputs
    assert not any(weights[name].any() for name in factors)
    assert not any("pirate" in name or "poet" in name for name in (*inputs, *weights))
    after = {name.replace(".base_layer", ""): weight for name, weight in adapters.model.state_dict().items()}
    assert all(torch.equal(after[name], weight) for name, weight in before.items())
    for name in done.adapters:
        read = onnxruntime.AdapterFormat.read_adapter(str(tmp_path / "out" / f"{name}.onnx_adapter"))
        assert set(read.get_parameters()) == factors
    assert "with poet.onnx_adapter" in "\n".join(done.lines())


def test_what_one_graph_cannot_hold_is_refused():
    model = with_adapter(with_adapter(llama(), "one", alpha=4), "two", alpha=4, rank=3)
    with pytest.raises(trueport.ExportError, match="other layers or ranks"):
        AdapterSet.of(model.get_base_model())
    with pytest.raises(trueport.ExportError, match="DoRA"):
        AdapterSet.of(with_adapter(llama(), "default", alpha=4, use_dora=True).get_base_model())
    merged = with_adapter(llama(), "default", alpha=4)
    merged.merge_adapter()
    with pytest.raises(trueport.ExportError, match="none merged"):
        AdapterSet.of(merged.get_base_model())
    assert AdapterSet.of(llama()).names == ()


def test_a_folder_without_an_adapter(tmp_path):
    with pytest.raises(trueport.UsageError, match="adapter_config"):
        trueport.generation.export(llama(), tmp_path / "out", lora=tmp_path)
