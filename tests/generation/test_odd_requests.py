"""What is asked for in an odd way ends in a diagnostic with a way out, or works; nothing is left behind."""

from __future__ import annotations

import json
import shutil

import pytest
import torch
from click.testing import CliRunner

import trueport
from tests.generation.models import TINY, llama, made, transformers
from trueport.cli.main import main

pytest.importorskip("transformers")


def refused(tmp_path, model, message: str, code: str = "TP001", **more) -> None:
    with pytest.raises(trueport.ExportError, match=message) as found:
        trueport.generation.export(model, tmp_path / "out", **more)
    (error,) = [one for one in found.value.diagnostics if one.is_error]
    assert error.code == code
    assert error.fix
    assert not list(tmp_path.glob("*out*"))


def saved(tmp_path, **changes) -> object:
    folder = tmp_path / "in"
    llama().save_pretrained(folder)
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, **changes}))
    return folder


@pytest.mark.parametrize(
    ("architectures", "message"),
    [
        (None, "names no architecture"),
        (["LlamaConfig"], "names no architecture"),
        ([3], "names no architecture"),
        (["LlamaModel"], "LlamaModel is no model of transformers that generates"),
    ],
)
def test_a_config_that_names_no_model_that_generates(tmp_path, architectures, message):
    refused(tmp_path, saved(tmp_path, architectures=architectures), message)


def test_code_in_a_folder_is_neither_run_nor_asked_about(tmp_path):
    folder = saved(tmp_path, model_type="mine", auto_map={"AutoConfig": "mine.Config"})
    (folder / "mine.py").write_text("raise SystemExit(7)")
    refused(tmp_path, folder, "custom code")


def test_weights_that_would_be_drawn_at_random(tmp_path):
    """transformers says so in its log, and goes on."""
    from safetensors.torch import load_file, save_file

    folder = saved(tmp_path)
    weights = load_file(folder / "model.safetensors")
    for change in ({}, {"model.layers.1.mlp.up_proj.weight": torch.zeros(3, 3)}):
        left = {name: weight for name, weight in weights.items() if "1.mlp.up" not in name} | change
        save_file(left, folder / "model.safetensors", metadata={"format": "pt"})
        refused(tmp_path, folder, "random numbers there")


def test_folders_without_weights(tmp_path):
    refused(tmp_path, tmp_path / "nowhere", "no local folder")
    folder = saved(tmp_path)
    whole = (folder / "model.safetensors").read_bytes()
    (folder / "model.safetensors").write_bytes(whole[: len(whole) // 2])
    refused(tmp_path, folder, "cannot be read: SafetensorError")
    (folder / "model.safetensors").unlink()
    refused(tmp_path, folder, "has no safetensors$")
    torch.save(llama().state_dict(), folder / "pytorch_model.bin")
    refused(tmp_path, folder, "pytorch_model.bin is a pickle")


def test_the_exit_code_of_a_folder_that_is_not_there(tmp_path):
    ended = CliRunner().invoke(main, ["generate", "export", str(tmp_path / "gpt2"), "-o", str(tmp_path / "out")])
    assert ended.exit_code == 2
    assert "no local folder" in ended.stderr


def test_requests_that_compare_nothing(tmp_path):
    refused(tmp_path, llama(), "tokens=0", tokens=0)
    refused(tmp_path, llama(), "no batch of tensors", inputs={"pixel_values": torch.tensor(1.0)})
    short = made(transformers().LlamaConfig(**{**TINY, "max_position_embeddings": 7}), "LlamaForCausalLM")
    refused(tmp_path, short, "made for 7 positions")


def test_generate_that_raises_is_eagers_word(tmp_path):
    refused(tmp_path, llama(), "are not used by the model: .'nope'", "TP002", inputs={"nope": torch.ones(1, 3)})


def without_a_mask(passes_positions: bool):
    """A model of somebody's own whose forward cannot be told of padding."""
    model = llama()

    class Plain(type(model)):
        def forward(self, input_ids, past_key_values=None, position_ids=None, use_cache=None, return_dict=None):
            more = {"past_key_values": past_key_values, "position_ids": position_ids, "use_cache": use_cache}
            return super().forward(input_ids=input_ids, **more)

        def prepare_inputs_for_generation(self, input_ids, past_key_values=None, is_first_iteration=False, **_):
            new = input_ids if is_first_iteration else input_ids[:, -1:]
            given = {"input_ids": new, "past_key_values": past_key_values}
            if passes_positions:
                given["position_ids"] = torch.arange(input_ids.shape[1])[None, -new.shape[1] :]
            return given

    model.__class__ = Plain
    return model


@pytest.mark.parametrize("passes_positions", [False, True])
def test_a_model_that_takes_no_mask(tmp_path, passes_positions):
    done = trueport.generation.export(without_a_mask(passes_positions), tmp_path / "out", tokens=4)
    names = {value.name for value in done.programs["model.onnx"].model.graph.inputs if "past" not in value.name}
    assert names == {"input_ids", "position_ids"} if passes_positions else {"input_ids"}
    assert [run.rows for run in done.proof.runs] == [1, 1, 3, 3]
    assert "no row was padded" in done.lines()[-1]


def test_settings_that_transformers_finds_odd_are_the_users(tmp_path):
    """Sampling, beams and forced tokens are the application's; save_pretrained() would refuse some of these."""
    model = llama()
    model.generation_config = transformers().GenerationConfig(
        top_k=4, num_beams=3, eos_token_id=None, pad_token_id=-1, suppress_tokens=[1, 2], forced_bos_token_id=3
    )
    trueport.generation.export(model, tmp_path / "out", tokens=3)
    written = json.loads((tmp_path / "out" / "generation_config.json").read_text())
    assert (written["top_k"], written["num_beams"], written["suppress_tokens"]) == (4, 3, [1, 2])


def test_wrappers_are_looked_through(tmp_path):
    trueport.generation.export(torch.compile(llama()), tmp_path / "out", verify=False)
    shutil.rmtree(tmp_path / "out")
    refused(tmp_path, type(llama()), "the class LlamaForCausalLM")
