"""A folder that generates what `generate()` does."""

from __future__ import annotations

import json
import re

import numpy as np
import onnx
import onnxruntime
import pytest
import torch

import trueport
from tests.generation.models import leaky, llama, mamba, mistral, moonshine, phi3, recurrent_gemma, t5
from trueport.generation.eager import Prompts, generate

pytest.importorskip("transformers")


def shapes(values) -> dict[str, list[object]]:
    return {
        value.name: [axis.dim_param or axis.dim_value for axis in value.type.tensor_type.shape.dim] for value in values
    }


def program_bytes(program) -> int:
    """Of the weights that go to a file of their own."""
    values = [value.const_value for value in program.model.graph.initializers.values()]
    return sum(value.nbytes for value in values if value.nbytes >= 1024)


def test_a_decoder_is_one_graph_for_the_prompt_and_each_token(tmp_path):
    done = trueport.generation.export(llama(), tmp_path / "out", tokens=8)
    graph = onnx.load(tmp_path / "out" / "model.onnx", load_external_data=False).graph
    past, present = ["batch", 2, "past", 4], ["batch", 2, "past + sequence", 4]
    assert shapes(graph.input) == {
        "input_ids": ["batch", "sequence"],
        "attention_mask": ["batch", "past + sequence"],
        "position_ids": ["batch", "sequence"],
        **{f"past_key_values.{layer}.{kind}": past for layer in (0, 1) for kind in ("key", "value")},
    }
    assert shapes(graph.output) == {
        "logits": ["batch", "sequence", 99],
        **{f"present.{layer}.{kind}": present for layer in (0, 1) for kind in ("key", "value")},
    }
    assert [(run.rows, run.pieces, run.tokens) for run in done.proof.runs] == [
        (1, (7,), 8),
        (1, (3, 1, 3), 8),
        (3, (7,), 8),
        (3, (3, 1, 3), 8),
    ]
    assert done.programs["model.onnx"].report.verified
    assert {"config.json", "generation_config.json"} <= {file.name for file in (tmp_path / "out").iterdir()}


def test_a_sliding_window_is_in_the_mask(tmp_path):
    """The states keep every token, and the tokens are those of a cache that drops what has left the window."""
    model = mistral(window=4)
    inputs = Prompts(model, {}).make(1, 7)
    wide = mistral(window=64)
    assert not torch.equal(generate(model, inputs, 12).tokens, generate(wide, inputs, 12).tokens)
    done = trueport.generation.export(model, tmp_path / "out", tokens=12)
    assert [run.tokens for run in done.proof.runs] == [12] * 4


def test_an_encoder_and_its_decoder(tmp_path):
    done = trueport.generation.export(t5(), tmp_path / "out", tokens=6)
    decoder = onnx.load(tmp_path / "out" / "decoder_model.onnx", load_external_data=False).graph
    encoder = onnx.load(tmp_path / "out" / "encoder_model.onnx", load_external_data=False).graph
    assert "past_key_values.1.encoder.value" in shapes(decoder.input)
    assert "present.1.decoder.key" in shapes(decoder.output)
    assert "present.1.encoder.key" in shapes(encoder.output)
    assert "present.1.encoder.key" not in shapes(decoder.output)
    (data,) = (tmp_path / "out").glob("*.data")
    assert data.stat().st_size < sum(program_bytes(program) for program in done.programs.values())
    assert [run.tokens for run in done.proof.runs] == [6] * 4


def test_a_decoder_that_asks_its_encoders_outputs_by_name(tmp_path):
    sound = torch.randn(3, 2000, generator=torch.Generator().manual_seed(0))
    done = trueport.generation.export(moonshine(), tmp_path / "out", inputs={"input_values": sound}, tokens=4)
    assert [run.tokens for run in done.proof.runs] == [4] * 4
    assert "no row was padded" in done.lines()[-1]


def test_where_eager_reads_the_whole_text_again(tmp_path):
    """The prompt has 7 tokens; with the sixth new one there are 13, and the long factors count from the beginning."""
    done = trueport.generation.export(phi3(), tmp_path / "out", tokens=9)
    assert {run.anew for run in done.proof.runs} == {(6,)}
    assert "the whole text read again for token 6" in done.lines()[-1]


def test_the_model_is_left_as_it_was(tmp_path):
    model = llama()
    before, habits = dict(vars(model)), model.generation_config
    trueport.generation.export(model, tmp_path / "out", tokens=2)
    assert vars(model).keys() == before.keys()
    assert model.generation_config is habits


def test_settings_for_genai(tmp_path):
    trueport.generation.export(llama(), tmp_path / "out", verify=False)
    settings = json.loads((tmp_path / "out" / "genai_config.json").read_text())["model"]
    decoder = settings["decoder"]
    assert (settings["type"], settings["vocab_size"], settings["context_length"]) == ("llama", 99, 64)
    assert (decoder["num_hidden_layers"], decoder["num_key_value_heads"], decoder["head_size"]) == (2, 2, 4)
    graph = onnx.load(tmp_path / "out" / decoder["filename"], load_external_data=False).graph
    given = {name % 1 if "%" in name else name for name in decoder["inputs"].values()}
    assert given <= {value.name for value in graph.input}


def test_a_model_in_training_mode_is_refused(tmp_path):
    with pytest.raises(trueport.UsageError, match="training mode"):
        trueport.generation.export(llama().train(), tmp_path / "out")


def test_a_local_folder_with_its_tokenizer(tmp_path):
    llama().save_pretrained(tmp_path / "in")
    (tmp_path / "in" / "tokenizer_config.json").write_text("{}")
    trueport.generation.export(tmp_path / "in", tmp_path / "out", verify=False)
    written = {file.name for file in (tmp_path / "out").iterdir()}
    assert {"model.onnx", "config.json", "tokenizer_config.json"} <= written
    assert not any(name.endswith(".safetensors") for name in written)


def test_what_is_there_stays(tmp_path):
    out = tmp_path / "out"
    out.mkdir()
    (out / "mine.txt").write_text("mine")
    for overwrite, why in ((False, "not empty"), (True, "holds no export")):
        with pytest.raises(trueport.UsageError, match=why):
            trueport.generation.export(llama(), out, overwrite=overwrite)
    assert [file.name for file in tmp_path.rglob("*")] == ["out", "mine.txt"]


def test_an_older_export_is_replaced_when_told(tmp_path):
    out = tmp_path / "out"
    for overwrite in (False, True):
        trueport.generation.export(llama(), out, verify=False, overwrite=overwrite)
        (out / "left.txt").write_text("") if not overwrite else None
    assert not (out / "left.txt").exists()
    assert [file.name for file in tmp_path.iterdir()] == ["out"]


def test_the_folder_of_the_model_itself_stays(tmp_path):
    llama().save_pretrained(tmp_path / "in")
    (tmp_path / "in" / "model.onnx").write_text("")
    with pytest.raises(trueport.UsageError, match="is where the model is read from"):
        trueport.generation.export(tmp_path / "in", tmp_path / "in", overwrite=True)
    assert (tmp_path / "in" / "model.safetensors").exists()


def test_another_token_is_an_error_and_nothing_is_written(tmp_path, monkeypatch):
    from trueport.generation import proof

    monkeypatch.setattr(proof, "Decoding", _Other)
    with pytest.raises(trueport.ExportError) as refused:
        trueport.generation.export(llama(), tmp_path / "out", tokens=4)
    assert [found.code for found in refused.value.diagnostics] == ["TP813"]
    assert not list(tmp_path.iterdir())


class _Other:
    """A graph that always has the first token best."""

    def __init__(self, graphs, inputs):
        pass

    def step(self, tokens, mask):
        logits = torch.zeros(*tokens.shape, 99)
        logits[..., 0] = 1.0
        return logits


def test_a_model_that_cannot_go_on_with_a_prompt_is_said_to_be_one(tmp_path):
    """The forward of Mamba begins its states anew with each piece of the prompt, in eager as well."""
    done = trueport.generation.export(mamba(), tmp_path / "out", tokens=6)
    assert [(run.rows, run.pieces) for run in done.proof.runs] == [(1, (7,)), (3, (7,))]
    assert done.proof.one_piece_only
    assert "must come in one piece" in done.lines()[-1]
    names = {value.name for value in onnx.load(tmp_path / "out" / "model.onnx", load_external_data=False).graph.output}
    assert names == {"logits", "present_conv_states.0", "present_recurrent_states.0"}
    assert not (tmp_path / "out" / "genai_config.json").exists()


def test_where_eager_raises_after_a_past_the_file_does(tmp_path):
    """It would have to leave out what was read before, or what eager never computed."""
    done = trueport.generation.export(recurrent_gemma(), tmp_path / "out", tokens=4)
    assert [(run.rows, run.pieces) for run in done.proof.runs] == [(1, (7,)), (3, (7,))]
    assert done.lines()[-1].endswith("the file refuses several tokens after others, as eager does")
    session = onnxruntime.InferenceSession(tmp_path / "out" / "model.onnx")

    def logits(new: int, past: int):
        sizes = {"batch": 2, "sequence": new, "past": past, "past + sequence": past + new}
        dtypes = {"tensor(int64)": np.int64, "tensor(float)": np.float32}
        inputs = session.get_inputs()
        feeds = {i.name: np.ones([sizes.get(n, n) for n in i.shape], dtypes[i.type]) for i in inputs}
        return session.run(["logits"], feeds)[0].shape

    assert logits(3, 0) == (2, 3, 99)
    assert logits(1, 4) == (2, 1, 99)
    for past in (1, 4):
        with pytest.raises(onnxruntime.capi.onnxruntime_pybind11_state.InvalidArgument, match="out of data bounds"):
            logits(3, past)


def test_what_is_not_known_is_refused(tmp_path):
    """A number that changes from step to step would be frozen."""
    model = llama()
    inner = model.prepare_inputs_for_generation

    def more(input_ids, **kwargs):
        return {**inner(input_ids, **kwargs), "step": input_ids.shape[1]}

    model.prepare_inputs_for_generation = more
    with pytest.raises(trueport.ExportError, match=re.escape("step is 5, 6, 7")) as refused:
        trueport.generation.export(model, tmp_path / "out")
    assert [found.code for found in refused.value.diagnostics] == ["TP206"]


def test_what_is_no_model_of_transformers(tmp_path):
    with pytest.raises(trueport.UsageError, match="Linear is no model of transformers"):
        trueport.generation.export(torch.nn.Linear(2, 2), tmp_path / "out")


def test_states_that_modules_keep_in_attributes_are_named(tmp_path):
    """RecurrentGemma does so; here a model of somebody's own, without any cache: a plain attribute and a buffer."""
    done = trueport.generation.export(leaky(), tmp_path / "out", tokens=6)
    graph = onnx.load(tmp_path / "out" / "model.onnx", load_external_data=False).graph
    states = {f"{kind}.{layer}": ["batch", width] for layer in (0, 1) for kind, width in (("level", 8), ("count", 1))}
    assert shapes(graph.input) == {
        "input_ids": ["batch", "sequence"],
        **{f"past_{name}": shape for name, shape in states.items()},
    }
    assert shapes(graph.output) == {
        "logits": ["batch", "sequence", 99],
        **{f"present_{name}": shape for name, shape in states.items()},
    }
    assert done.proof.one_piece_only  # it begins anew with each piece of several tokens
    assert [(run.rows, run.pieces, run.tokens) for run in done.proof.runs] == [(1, (7,), 6), (3, (7,), 6)]
