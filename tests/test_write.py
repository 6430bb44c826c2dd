"""Writing a model: whole or not at all, each weight once, and without a second copy of the weights in memory."""

from __future__ import annotations

import functools
import hashlib
import os
import stat
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
import torch
from torch import nn

import trueport
from trueport.errors import UsageError
from trueport.lower import write as writing
from trueport.lower.weights import WeightTensor

export = functools.partial(trueport.export, verify=False)  # the files are read and run here


def x(*sizes: int) -> torch.Tensor:
    return torch.randn(*sizes)


def net(width: int = 64) -> nn.Module:
    return nn.Sequential(nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 2)).eval()


class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(100, 32)
        self.head = nn.Linear(32, 100, bias=False)
        self.head.weight = self.embed.weight

    def forward(self, ids):
        return self.head(self.embed(ids))


def run(path: Path, *arrays: np.ndarray) -> list[np.ndarray]:
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    return session.run(None, dict(zip([given.name for given in session.get_inputs()], arrays, strict=True)))


def agrees(path: Path, model: nn.Module, *args: torch.Tensor) -> None:
    with torch.no_grad():
        expected = model(*args)
    (got,) = run(path, *(given.numpy() for given in args))
    torch.testing.assert_close(torch.from_numpy(got), expected)


def files(folder: Path) -> set[str]:
    return set(os.listdir(folder))


def data_files(folder: Path) -> list[Path]:
    """Named after their content."""
    found = list(folder.glob("*.data"))
    for path in found:
        assert path.name == f"net.onnx.{hashlib.sha256(path.read_bytes()).hexdigest()[:16]}.data"
    return found


# --- one file, or two


def test_one_file_with_the_weights_in_it(tmp_path):
    model, path = net(), tmp_path / "net.onnx"
    export(model, (x(2, 64),), path)
    assert files(tmp_path) == {"net.onnx"}
    onnx.checker.check_model(str(path), full_check=True)
    agrees(path, model, x(2, 64))


def test_external_data_on_request(tmp_path):
    model, path = net(), tmp_path / "net.onnx"
    export(model, (x(2, 64),), path, external_data=True)
    (data,) = data_files(tmp_path)
    assert files(tmp_path) == {"net.onnx", data.name}
    assert path.stat().st_size < 64 * 64 * 4 <= data.stat().st_size
    onnx.checker.check_model(str(path), full_check=True)
    agrees(path, model, x(2, 64))


def test_a_model_too_big_for_one_file_gets_two(tmp_path, monkeypatch):
    monkeypatch.setattr(writing, "PROTOBUF_LIMIT", writing._ROOM_FOR_THE_GRAPH + 1000)
    model, path = net(), tmp_path / "net.onnx"
    written = export(model, (x(2, 64),)).save(path)
    assert list(written) == [path, *data_files(tmp_path)]
    agrees(path, model, x(2, 64))


def test_one_file_is_streamed_and_reads_back_as_any_other(tmp_path):
    """The pieces that are written one by one are one protobuf message to every reader."""
    model, path = net(), tmp_path / "net.onnx"
    export(model, (x(2, 64),), path)
    read = onnx.load(path)
    stored = {tensor.name: onnx.numpy_helper.to_array(tensor) for tensor in read.graph.initializer}
    for name, parameter in model.named_parameters():
        assert np.array_equal(stored[name], parameter.detach().numpy()), name
    assert len(read.graph.initializer) == len(stored)
    assert read.graph.node


def test_weights_keep_their_names_and_nodes_their_lines(tmp_path):
    path = tmp_path / "net.onnx"
    export(net(), (x(2, 64),), path)
    read = onnx.load(path)
    assert {tensor.name for tensor in read.graph.initializer} >= {"0.weight", "0.bias", "2.weight", "2.bias"}
    assert all(node.metadata_props for node in read.graph.node)


@pytest.mark.parametrize("external", [False, True])
def test_tied_weights_are_stored_once(tmp_path, external):
    path = tmp_path / "tied.onnx"
    model = Tied().eval()
    written = export(model, (torch.tensor([[1, 2]]),), path, external_data=external)
    assert list(written.model.graph.initializers) == ["embed.weight"]
    size = sum((tmp_path / name).stat().st_size for name in files(tmp_path))
    assert 100 * 32 * 4 < size < 1.5 * 100 * 32 * 4
    agrees(path, model, torch.tensor([[3, 4]]))


@pytest.mark.parametrize("external", [False, True])
def test_transposed_strided_and_half_weights(tmp_path, external):
    class Odd(nn.Module):
        def __init__(self):
            super().__init__()
            self.turned = nn.Parameter(x(64, 32).t())
            self.gaps = nn.Parameter(x(64, 64)[:, ::2])
            self.register_buffer("halves", x(32, 64).half())
            self.register_buffer("brain", x(64).bfloat16())
            self.register_buffer("flags", x(600) > 0)

        def forward(self, y):
            hidden = y @ self.turned @ self.gaps
            return hidden @ self.halves.float() + self.brain.float().sum() + self.flags.sum()

    model = Odd().eval()
    path = tmp_path / "odd.onnx"
    export(model, (x(2, 32),), path, external_data=external)
    onnx.checker.check_model(str(path), full_check=True)
    with torch.no_grad():
        y = x(2, 32)
        (got,) = run(path, y.numpy())
        torch.testing.assert_close(torch.from_numpy(got), model(y), rtol=1e-4, atol=1e-3)


def test_saving_twice_gives_the_same_file(tmp_path):
    program = export(net(), (x(2, 64),))
    program.save(tmp_path / "one.onnx")
    program.save(tmp_path / "two.onnx", external_data=True)
    program.save(tmp_path / "three.onnx")
    assert (tmp_path / "one.onnx").read_bytes() == (tmp_path / "three.onnx").read_bytes()


# --- whole or not at all


def crash(self, file):
    file.write(b"half of it")
    raise OSError(28, "No space left on device")


@pytest.mark.parametrize("external", [False, True])
@pytest.mark.parametrize("fault", [OSError, KeyboardInterrupt])
def test_a_crash_in_the_middle_leaves_the_old_file_and_nothing_else(tmp_path, monkeypatch, external, fault):
    path = tmp_path / "net.onnx"
    old, new = net(), net()
    export(old, (x(2, 64),), path, external_data=external)
    before = {name: (tmp_path / name).read_bytes() for name in files(tmp_path)}
    program = export(new, (x(2, 64),))

    def broken(self, file):
        file.write(b"half of it")
        raise fault(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(WeightTensor, "tofile", broken)
        with pytest.raises(UsageError if fault is OSError else fault):
            program.save(path, external_data=external, overwrite=True)
    assert {name: (tmp_path / name).read_bytes() for name in files(tmp_path)} == before
    agrees(path, old, x(2, 64))
    program.save(path, external_data=external, overwrite=True)
    agrees(path, new, x(2, 64))


def test_a_full_disk_is_told_as_such(tmp_path, monkeypatch):
    program = export(net(), (x(2, 64),))
    monkeypatch.setattr(WeightTensor, "tofile", crash)
    with pytest.raises(UsageError, match="No space left"):
        program.save(tmp_path / "net.onnx")
    assert files(tmp_path) == set()


def test_replacing_a_model_with_data_leaves_no_old_data(tmp_path):
    path = tmp_path / "net.onnx"
    trueport.export(net(), (x(2, 64),), path, external_data=True, proof=True)
    model = net()
    trueport.export(model, (x(2, 64),), path, external_data=True, overwrite=True, proof=True)
    assert len(files(tmp_path)) == 3  # the old certificate named the old data
    (tmp_path / "net.onnx.proof.json").unlink()
    agrees(path, model, x(2, 64))
    export(model, (x(2, 64),), path, overwrite=True)
    assert files(tmp_path) == {"net.onnx"}
    agrees(path, model, x(2, 64))


def test_only_data_files_of_ours_are_removed(tmp_path):
    """They are named by the model that is replaced, and by no other file of the folder."""
    path = tmp_path / "net.onnx"
    old = net()
    export(old, (x(2, 64),), path, external_data=True)
    (data,) = data_files(tmp_path)
    read = onnx.load(path, load_external_data=False)
    for tensor in read.graph.initializer:
        for entry in tensor.external_data:
            if entry.key == "location":
                entry.value = "net.onnx_precious.data"
    path.write_bytes(read.SerializeToString())
    (tmp_path / "net.onnx_precious.data").write_bytes(data.read_bytes())
    stranger = tmp_path / "net.onnx.0123456789abcdef.data"
    stranger.write_bytes(b"precious, and named by nobody")
    export(net(), (x(2, 64),), path, external_data=True, overwrite=True)
    assert (tmp_path / "net.onnx_precious.data").exists()
    assert stranger.exists()
    assert data.exists(), "no model that was replaced here named it"


@pytest.mark.parametrize("external", [False, True])
def test_a_copy_of_the_old_model_keeps_its_weights(tmp_path, external):
    path, copy = tmp_path / "net.onnx", tmp_path / "of_last_week.bak"
    old = net()
    export(old, (x(2, 64),), path, external_data=True)
    copy.write_bytes(path.read_bytes())
    export(net(), (x(2, 64),), path, external_data=external, overwrite=True)
    agrees(copy, old, x(2, 64))
    copy.unlink()
    export(net(), (x(2, 64),), path, external_data=external, overwrite=True)
    assert len(files(tmp_path)) == (3 if external else 2), "what was in doubt stays"


@pytest.mark.parametrize("at", [0, writing._PIECE - 7, writing._PIECE, 2 * writing._PIECE - 1])
def test_a_name_is_found_wherever_it_is_in_a_file(tmp_path, at):
    data, other = tmp_path / "net.onnx.0123456789abcdef.data", tmp_path / "copy"
    other.write_bytes(bytes(at) + data.name.encode() + bytes(5))
    assert writing._is_named(data, [data, other])
    other.write_bytes(bytes(at) + data.name.encode()[:-1] + bytes(5))
    assert not writing._is_named(data, [data, other])


def test_the_same_model_gives_the_same_files(tmp_path):
    """Whatever stood there before: a build can be repeated."""
    model = net()
    given = (x(2, 64),)
    one, two = tmp_path / "one", tmp_path / "two"
    one.mkdir(), two.mkdir()
    export(net(), given, two / "net.onnx", external_data=True)
    for folder in (one, two):
        export(model, given, folder / "net.onnx", external_data=True, overwrite=True)
    assert files(one) == files(two)
    for name in files(one):
        assert (one / name).read_bytes() == (two / name).read_bytes()


RACE = """
import sys, torch
from torch import nn
import trueport

number, path, rounds = int(sys.argv[1]), sys.argv[2], int(sys.argv[3])
model = nn.Linear(64, 64, bias=False).eval()
model.weight.data.fill_(number)
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = model
    def forward(self, x):
        return self.layer(x) - 64 * number  # 0 for ones, with no weights but its own
program = trueport.export(Net(), (torch.ones(2, 64),), verify=False)
print("ready", flush=True)
sys.stdin.readline()
for _ in range(rounds):
    program.save(path, external_data=True, overwrite=True)
"""


def test_two_processes_that_write_to_one_path(tmp_path):
    """At any time there is one whole model, with its own weights; in the end nothing else is there."""
    path = tmp_path / "net.onnx"
    writers = [
        subprocess.Popen(
            [sys.executable, "-c", RACE, str(number), str(path), "60"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for number in (1, 2)
    ]
    for writer in writers:
        assert writer.stdout.readline() == "ready\n"
    for writer in writers:
        writer.stdin.write("\n")
        writer.stdin.flush()
    looked = 0
    while any(writer.poll() is None for writer in writers):
        if path.exists():
            try:
                (got,) = run(path, np.ones((2, 64), np.float32))
            except Exception:  # noqa: BLE001  its data may go while it is being read; never is it another's
                continue
            assert not got.any()
            looked += 1
    for writer in writers:
        assert writer.wait() == 0
        writer.stdin.close(), writer.stdout.close()
    assert looked
    assert not run(path, np.ones((2, 64), np.float32))[0].any()
    assert len(files(tmp_path)) == 2


def test_a_refused_export_writes_nothing(tmp_path):
    def model(y):
        return y.reshape(2, 3)

    with pytest.raises(trueport.ExportError):
        export(model, (x(2, 3),), tmp_path / "net.onnx", dynamic_shapes=({0: "n"},))
    assert files(tmp_path) == set()


# --- where to


def test_an_existing_file_is_not_overwritten_unasked(tmp_path):
    path = tmp_path / "net.onnx"
    path.write_bytes(b"precious")
    with pytest.raises(UsageError, match="exists"):
        export(net(), (x(2, 64),), path)
    assert path.read_bytes() == b"precious"
    export(net(), (x(2, 64),), path, overwrite=True)
    onnx.checker.check_model(str(path))


def test_a_folder_that_cannot_be_written_to_is_told_before_any_work(tmp_path, monkeypatch):
    allowed = os.access
    monkeypatch.setattr(os, "access", lambda path, mode, **more: path != tmp_path and allowed(path, mode, **more))

    def model(y):
        raise AssertionError("no work was to be done")

    with pytest.raises(UsageError, match="cannot be written"):
        export(model, (x(2, 64),), tmp_path / "net.onnx")


def test_a_folder_as_the_path(tmp_path):
    with pytest.raises(UsageError, match="folder") as refused:
        export(net(), (x(2, 64),), tmp_path)
    assert "model.onnx" in refused.value.diagnostics[0].fix


def test_a_folder_that_is_not_there(tmp_path):
    with pytest.raises(UsageError, match="does not exist"):
        export(net(), (x(2, 64),), tmp_path / "nowhere" / "net.onnx")


@pytest.mark.parametrize("external", [False, True])
def test_the_mode_of_a_file_that_is_replaced_is_kept(tmp_path, external):
    path = tmp_path / "net.onnx"
    export(net(), (x(2, 64),), path)
    path.chmod(0o640)
    export(net(), (x(2, 64),), path, overwrite=True, external_data=external)
    assert {stat.S_IMODE((tmp_path / name).stat().st_mode) for name in files(tmp_path)} == {0o640}


def test_a_new_file_has_the_mode_that_new_files_have(tmp_path):
    (tmp_path / "any").touch()
    export(net(), (x(2, 64),), tmp_path / "net.onnx", external_data=True)
    assert len({(tmp_path / name).stat().st_mode for name in files(tmp_path)}) == 1


def test_a_link_is_followed(tmp_path):
    real, link = tmp_path / "real", tmp_path / "net.onnx"
    real.mkdir()
    link.symlink_to(real / "net.onnx")
    model = net()
    for overwrite in (False, True):
        export(model, (x(2, 64),), link, overwrite=overwrite, external_data=True)
        assert link.is_symlink()
        assert len(files(real)) == 2 and files(tmp_path) == {"net.onnx", "real"}
        agrees(real / "net.onnx", model, x(2, 64))


@pytest.mark.parametrize("overwrite", [False, True])
def test_a_pipe_or_a_device_is_refused_before_any_work(tmp_path, overwrite):
    def model(y):
        raise AssertionError("no work was to be done")

    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", Path(os.devnull)):
        with pytest.raises(UsageError, match=r"already exists|no regular file"):
            export(model, (x(2, 64),), path, overwrite=overwrite)
    assert files(tmp_path) == {"pipe"}


def test_a_model_that_changes_the_folder_does_not_move_the_output(tmp_path, monkeypatch):
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path)

    def model(y):
        os.chdir(tmp_path / "elsewhere")
        return y * 2

    program = trueport.export(model, (x(2, 3),), "net.onnx", counterexample="difference", proof=True)
    assert files(tmp_path) == {"net.onnx", "net.onnx.proof.json", "elsewhere"}
    assert files(tmp_path / "elsewhere") == set()
    os.chdir(tmp_path)
    assert trueport.verify("net.onnx", model, (x(2, 3),)).ok
    assert program.report.path == "net.onnx"


def test_a_path_as_a_bare_name(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    export(net(), (x(2, 64),), "net.onnx", external_data=True)
    assert len(data_files(tmp_path)) == 1 and len(files(tmp_path)) == 2


# --- what the file is


MODELS = {
    "convolution": (
        lambda: nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU()).eval(),
        (2, 3, 8, 8),
        {0: "n"},
    ),
    "normalisation": (lambda: nn.Sequential(nn.LayerNorm(8), nn.GELU()).eval(), (2, 5, 8), {0: "n", 1: "t"}),
    "recurrence": (lambda: nn.LSTM(8, 4, batch_first=True).eval(), (2, 5, 8), {0: "n", 1: "t"}),
    "encoder": (lambda: nn.TransformerEncoderLayer(8, 2, 16, batch_first=True).eval(), (2, 5, 8), {0: "n", 1: "t"}),
}


@pytest.mark.parametrize(("make", "size", "free"), MODELS.values(), ids=MODELS)
def test_the_checker_of_onnx_is_content(tmp_path, make, size, free):
    path = tmp_path / "model.onnx"
    export(make(), (x(*size),), path, dynamic_shapes=(free,))
    onnx.checker.check_model(str(path), full_check=True)
    inferred = onnx.shape_inference.infer_shapes(onnx.load(path), strict_mode=True, data_prop=True)
    assert inferred.graph.output


def test_a_control_flow_model_passes_the_checker(tmp_path):
    def model(y):
        if y.sum() > 0:
            y = y * 2
        for row in y:
            y = y + row
        return y

    path = tmp_path / "model.onnx"
    export(model, (x(3, 4),), path, dynamic_shapes=({0: "n"},))
    onnx.checker.check_model(str(path), full_check=True)


# --- memory


MEASURE = """
import resource, sys, torch
from torch import nn
import trueport

def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024

class Wide(nn.Module):
    def __init__(self, rows):
        super().__init__()
        self.layers = nn.ModuleList(nn.utils.skip_init(nn.Linear, 1024, rows, bias=False) for _ in range(8))

    def forward(self, y):
        return sum(layer(y).sum(-1) for layer in self.layers)

model = Wide(6400).eval()
for number, parameter in enumerate(model.parameters()):
    parameter.data.fill_(number)  # equal ones would be one
program = trueport.export(model, (torch.ones(1, 2, 1024),), verify=False)  # a product of matrices: each is transposed
weights = sum(p.numel() * 4 for p in model.parameters())
for name, external in (("external", True), ("inline", False)):
    before = peak()
    program.save(f"{sys.argv[1]}/{name}.onnx", external_data=external)
    print(name, peak() - before, weights)
"""


def test_writing_takes_far_less_memory_than_the_weights(tmp_path):
    """In a process of its own: a peak is for good, and tracemalloc sees nothing of the memory of torch."""
    done = subprocess.run(
        [sys.executable, "-c", MEASURE, str(tmp_path)],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": "src"},
    )
    for line in done.stdout.splitlines():
        form, more, weights = line.split()
        assert int(weights) == 200 << 20
        assert int(more) < int(weights) / 5, f"{form}: {int(more) >> 20} MB more for {int(weights) >> 20} MB of weights"
    assert (tmp_path / "inline.onnx").stat().st_size > 200 << 20
