"""Faults of the request, a file or the machine: each has a code and a way out, and none is called a bug of ours."""

from __future__ import annotations

import contextlib
import json
import os
import pickle
import resource
import subprocess
import sys
import threading
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import torch
from click.testing import CliRunner, Result
from onnx import TensorProto, helper

import trueport
from trueport.cli.main import main
from trueport.cli.outcome import Exit
from trueport.verify.runtime.sandbox import Worker, shared_worker

MODEL = """
import sys
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 4)
    def forward(self, x):
        return self.fc(x)

class Double(nn.Module):
    def forward(self, x):
        return x * 2

class File(nn.Module):
    def forward(self, file):
        return file * 2

class Data(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.ones(4))
    def forward(self, x):
        self.w.data.add_(1)
        return x * self.w

class Undecodable(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("a\\udc80", torch.ones(4))
    def forward(self, x):
        return x * getattr(self, "a\\udc80")

class OnlyText(nn.Module):
    def forward(self, x):
        return "hello"

class Sparse(nn.Module):
    def forward(self, x):
        return x.to_sparse()

class Recursive(nn.Module):
    def forward(self, x):
        return self.forward(x)

class NoMemory(nn.Module):
    def forward(self, x):
        raise MemoryError

class Exits(nn.Module):
    def forward(self, x):
        sys.exit(0)

class ExitsLater(nn.Module):
    def forward(self, x):
        if x.sum() > 100:
            sys.exit(0)
        return x * 2

class ExitsTraced(nn.Module):
    def forward(self, x):
        if torch.compiler.is_compiling():
            sys.exit(0)
        return x * 2

class Ends(BaseException):
    pass

class Ending(nn.Module):
    def forward(self, x):
        raise Ends("here")
"""

FILES = {
    "raising.py": "raise ValueError('no')",
    "exiting.py": "import sys; sys.exit(0)",
    "ending.py": "class E(BaseException): pass\nraise E",
    "recursive.py": "def f(): f()\nf()",
    "wrong_syntax.py": "def f(:",
    "no_encoding.py": "# -*- coding: nonsense -*-",
    "without_models.py": "",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Every bad file that there is."""
    here = tmp_path_factory.mktemp("bad")
    (here / "bad_model.py").write_text(MODEL)
    for name, text in FILES.items():
        (here / name).write_text(text)
    (here / "zeros.py").write_bytes(b"\0\1\2")
    (here / "a_folder").mkdir()
    (here / "folder.pt").mkdir()
    (here / "folder.py").mkdir()
    (here / "a_file").touch()
    weights = {"fc.weight": torch.ones(4, 4), "fc.bias": torch.ones(4)}
    torch.save(weights, here / "good.pt")
    good = (here / "good.pt").read_bytes()
    for name, content in {
        "empty.pt": b"", "garbage.pt": b"garbage", "cut.pt": good[: len(good) // 2],
        "damaged.pt": good[:200] + bytes(100) + good[300:], "garbage.safetensors": b"\xff" * 99,
        "garbage.npy": b"\x93NUMPY\x01\x00junk", "empty.npy": b"", "garbage.pt2": b"PK", "empty.onnx": b"",
        "garbage.onnx": b"x" * 200, "other.json": b"{}", "cut.npz": b"PK\x03\x04",
        "objects.pt": pickle.dumps(threading.Event, protocol=2),
    }.items():  # fmt: skip
        (here / name).write_bytes(content)
    with zipfile.ZipFile(here / "zip.pt", "w") as archive:
        archive.writestr("archive/data.pkl", b"junk")
    for name, odd in {
        "int_keys": {**weights, 1: torch.ones(1), None: torch.ones(1)}, "only_ints": {1: torch.ones(1)},
        "nested": {"fc": weights}, "in_checkpoint": {"state_dict": {2: torch.ones(2)}},
        "sparse": {**weights, "fc.weight": torch.eye(4).to_sparse()}, "text": {**weights, "fc.weight": "hello"},
        "complex": {**weights, "fc.weight": torch.ones(4, 4, dtype=torch.complex64)},
        "meta": {**weights, "fc.weight": torch.ones(4, 4, device="meta")},
        "shape": {**weights, "fc.weight": torch.ones(2, 2)}, "list": [1], "tensor": torch.ones(1), "none": None,
    }.items():  # fmt: skip
        torch.save(odd, here / f"{name}.pt")
    np.save(here / "text.npy", np.array(["a"]))
    np.save(here / "dates.npy", np.array(["2020-01-01"], dtype="datetime64[D]"))
    np.save(here / "wide.npy", np.zeros((2, 4), dtype=np.longdouble))
    np.save(here / "objects.npy", np.array([None], dtype=object), allow_pickle=True)
    _write_text_output(here / "text.onnx")
    _write_undecodable(here / "undecodable.onnx")
    return here


@pytest.fixture(autouse=True)
def _inside(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.chdir(folder)
    modules, path = set(sys.modules), list(sys.path)
    yield
    sys.path[:] = path
    for name in set(sys.modules) - modules:
        if str(getattr(sys.modules[name], "__file__", "")).startswith(str(folder)):
            del sys.modules[name]


def _write_text_output(path: Path) -> None:
    text = helper.make_tensor("text", TensorProto.STRING, [1], [b"hello"])
    graph = helper.make_graph(
        [helper.make_node("Constant", [], ["y"], value=text)],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, 4])],
        [helper.make_tensor_value_info("y", TensorProto.STRING, [1])],
    )
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10), path)


def _write_undecodable(path: Path) -> None:
    ports = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [2, 4]) for name in ("QQQQ", "y")]
    graph = helper.make_graph([helper.make_node("Neg", ["QQQQ"], ["y"])], "g", ports[:1], ports[1:])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10)
    path.write_bytes(model.SerializeToString().replace(b"QQQQ", b"\xff\xfe\xfd\xfc"))


def run(*arguments: str) -> Result:
    return CliRunner().invoke(main, arguments)


NET = ("check", "bad_model.py:Net")
X = ("-i", "x:2x4")

USAGE = [
    # sizes, dtypes and ranges of -i
    *[(*NET, "-i", spec) for spec in (
        "x:99999999999x4", "x:999999999999999999999999x4", "x:99999x99999x99", "x:-1x4", "x:2x4:f99", "x:2x4:", "x", "",
        "x:2x4@1..0", "x:2x4@a..b", "x:2x4@nan..1", "x:2x4:i8@0..999", "x:2x4:u8@-5..3", "y:2x4", "self:2x4",
        "x:2x4:i64@0..99999999999999999999", "x:i64=99999999999999999999", "x:i64=1.5", "x:bool=7", "x=[1,2]",
        "x=@nothing.npy", "x=@garbage.npy", "x=@empty.npy", "x=@text.npy", "x=@dates.npy", "x=@wide.npy",
        "x=@objects.npy", "x=@cut.npz", "x=@a_folder", "x=@C:\\x\\y.npy", "x=@", "x\udcff:2x4", "x:2x4 y:2x4",
    )],
    (*NET, *X, *X), (*NET, *X, "-i", "2x4"), NET, (*NET, *X, "--dim", "x"), (*NET, *X, "--dim", "B=1..2"),
    # --weights
    *[(*NET, *X, "--weights", name) for name in (
        "missing.pt", "folder.pt", "empty.pt", "garbage.pt", "cut.pt", "damaged.pt", "zip.pt", "objects.pt",
        "garbage.safetensors", "int_keys.pt", "only_ints.pt", "nested.pt", "in_checkpoint.pt", "sparse.pt", "text.pt",
        "complex.pt", "meta.pt", "shape.pt", "list.pt", "tensor.pt", "none.pt", "a_file", "",
    )],
    # targets
    *[("check", target, *X) for target in (
        "raising.py:Net", "exiting.py:Net", "ending.py:Net", "recursive.py:Net", "wrong_syntax.py:Net", "zeros.py:Net",
        "no_encoding.py:Net", "without_models.py", "without_models.py:Net", "folder.py:Net", "nan.py:Net", "", ":",
        "missing.mod:Net", "bad_model.py:", "bad_model.py:Net()", "bad_model.py:torch", "bad_model.py:Nets",
        "C:\\Users\\x.py:Net", "bad_model.py:\udcff", "\udcff.py:Net", "garbage.pt2", "missing.pt2",
        "json:JSONDecoder", "bad_model.py:nn.Linear",
    )],
    # options of the check and of the report
    *[(*NET, *X, option) for option in (
        "--seed=99999999999999999999", "--rtol=nan", "--rtol=inf", "--rtol=-1", "--atol=y=-1", "--atol=q=1",
        "--opset=999", "--constants=zz", "--select=XX", "--report=a_folder", "--report=r.pdf",
        "--report=missing/r.html", "--report=a_file/r.html", "--counterexample=a_file",
    )],
    # where to write
    *[("export", *NET[1:], *X, "-o", path) for path in (
        "a_folder", "missing/m.onnx", "a_file/m.onnx", "", "/proc/m.onnx", f"{'n' * 300}.onnx", "good.pt",
    )],
    ("export", *NET[1:], *X, "-o", "m.onnx", "--source-root", "missing"),
    # which file to verify
    *[("verify", path, *NET[1:], *X) for path in ("missing.onnx", "a_folder", "", "/dev/null")],
]  # fmt: skip


@pytest.mark.parametrize("arguments", USAGE, ids=[" ".join(arguments)[:60] for arguments in USAGE])
def test_a_request_that_cannot_be_carried_out_is_told_as_one(arguments: tuple[str, ...]) -> None:
    done = run(*arguments)
    assert done.exit_code == Exit.USAGE, done.output
    assert "error[TP001]" in done.stderr or "error[TP601]" in done.stderr
    assert "TP901" not in done.output
    assert "Traceback" not in done.output
    assert done.stdout == ""


FINDINGS = [
    *[(("check", f"bad_model.py:{model}", "-i", "4x4"), code) for model, code in {
        "Data": "TP203", "Undecodable": "TP201", "OnlyText": "TP202", "Sparse": "TP202", "Recursive": "TP002",
        "NoMemory": "TP002", "Exits": "TP002", "ExitsLater": "TP204", "ExitsTraced": "TP204", "Ending": "TP002",
    }.items()],
    ((*NET, "-i", "x=hello"), "TP002"),
    ((*NET, "-i", "x=@int_keys.pt"), "TP002"),
    ((*NET, "-i", "x:2x4:i8"), "TP002"),
    *[(("verify", file, "bad_model.py:Double", *X), code) for file, code in {
        "garbage.onnx": "TP801", "empty.onnx": "TP801", "other.json": "TP801", "good.pt": "TP801", "text.onnx": "TP80",
        "undecodable.onnx": "TP80",
    }.items()],
]  # fmt: skip


@pytest.mark.parametrize(("arguments", "code"), FINDINGS, ids=[" ".join(a)[:60] for a, _ in FINDINGS])
def test_what_is_wrong_with_a_model_or_a_file_is_a_finding(arguments: tuple[str, ...], code: str) -> None:
    done = run(*arguments, "--output-format", "json")
    assert done.exit_code == Exit.FINDINGS, done.output
    found = [one for one in json.loads(done.stdout)["diagnostics"] if one["severity"] == "error"]
    assert found
    assert all(one["code"].startswith(code) for one in found), found
    assert "Traceback" not in done.output


def test_every_damaged_byte_of_the_weights_is_told(folder: Path) -> None:
    """Whatever torch raises about it, the file cannot be read, or does not fit, or is whole all the same."""
    from trueport.load.targets import load_weights

    codes = set()
    good = (folder / "good.pt").read_bytes()
    for at in range(0, len(good), 61):
        (folder / "flipped.pt").write_bytes(good[:at] + bytes([good[at] ^ 0xFF]) + good[at + 1 :])
        with contextlib.suppress(trueport.UsageError):
            load_weights(torch.nn.ModuleDict({"fc": torch.nn.Linear(4, 4)}), folder / "flipped.pt")
            codes.add("whole")
    assert codes == {"whole"}  # a byte of a weight


def test_names_that_are_parameters_of_ours_hide_no_finding() -> None:
    """An input called `file` was handed on to `numpy.savez` by name."""
    run("export", "bad_model.py:Double", *X, "-o", "double.onnx", "--overwrite")
    words = "file self args values path names".split()
    for word in words:
        model = onnx.load("double.onnx")
        for node in model.graph.node:
            node.input[:] = [word if name == "x" else name for name in node.input]
            node.output[:] = [f"{word}_out" if name == "output" else name for name in node.output]
        model.graph.input[0].name, model.graph.output[0].name = word, f"{word}_out"
        del model.graph.value_info[:]
        onnx.save(model, "renamed.onnx")
        report = trueport.verify("renamed.onnx", torch.nn.Identity(), (torch.ones(2, 4),), counterexample="shown")
        assert [found.code for found in report.errors] == ["TP805"], word
        assert any(fact.startswith("to see it") for fact in report.errors[0].seen), word
        assert any("reference evaluator: differs" in fact for fact in report.errors[0].seen), word


@pytest.mark.parametrize("name", ["a\udc80", "", "\udfff"])
def test_names_that_are_no_text_are_refused(name: str) -> None:
    for names in ({"input_names": [name]}, {"output_names": [name]}):
        with pytest.raises(trueport.UsageError) as refused:
            trueport.check(torch.nn.Identity(), (torch.ones(2),), **names)
        str(refused.value).encode()


def test_a_name_of_70_000_bytes_is_carried(tmp_path: Path) -> None:
    class Long(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> dict[str, torch.Tensor]:
            return {"n" * 70_000: x * 2}

    report = trueport.export(Long(), (torch.ones(2),), tmp_path / "m.onnx").report
    assert report.ok
    wrong = trueport.verify(tmp_path / "m.onnx", torch.nn.Identity(), (torch.ones(2),), counterexample=tmp_path / "c")
    assert wrong.errors[0].code == "TP805"
    assert (tmp_path / "c" / "show_difference.py").exists()


class TestNoProcess:
    @pytest.fixture(autouse=True)
    def _fresh_worker(self) -> Iterator[None]:
        shared_worker().close()
        yield
        shared_worker().close()

    def test_that_none_can_be_started_is_told(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def refuses(*args: Any, **options: Any) -> None:
            raise BlockingIOError(11, "Resource temporarily unavailable")

        monkeypatch.setattr(subprocess, "Popen", refuses)
        done = run("check", "bad_model.py:Double", *X)
        assert done.exit_code == Exit.USAGE
        assert "error[TP001]: the check needs a process of its own" in done.stderr
        assert "--no-verify" in done.stderr

    @pytest.mark.parametrize("executable", [None, ""])
    def test_that_python_does_not_know_itself_is_told(
        self, monkeypatch: pytest.MonkeyPatch, executable: str | None
    ) -> None:
        monkeypatch.setattr(sys, "executable", executable)
        assert "none can be started" in run("check", "bad_model.py:Double", *X).stderr

    def test_that_no_thread_can_be_started_is_told(self, monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
        def refuses(self: threading.Thread) -> None:
            raise RuntimeError("can't start new thread")

        worker = Worker()
        monkeypatch.setattr(
            "trueport.verify.runtime.sandbox._SMALL", -1
        )  # as for a question that the pipe does not take whole
        monkeypatch.setattr(threading.Thread, "start", refuses)
        with pytest.raises(trueport.UsageError, match="can't start new thread"):
            worker.load(folder / "garbage.onnx")
        worker.close()


def _short_of_memory() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (400 << 20, 400 << 20))


def test_too_little_memory_to_begin_with_is_told() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "trueport", "check", "bad_model.py:Net", *X],
        capture_output=True, text=True, check=False, preexec_fn=_short_of_memory,
    )  # fmt: skip
    assert done.returncode == Exit.USAGE, done.stderr
    assert "error[TP001]" in done.stderr
    assert "ulimit -v" in done.stderr


@pytest.mark.parametrize("form", ["full", "json"])
@pytest.mark.parametrize(("model", "ends"), [("Double", Exit.FAITHFUL), ("Exits", Exit.FINDINGS)])
def test_a_reader_that_leaves_changes_no_verdict(model: str, ends: Exit, form: str) -> None:
    command = [sys.executable, "-m", "trueport", "check", f"bad_model.py:{model}", *X, "--output-format", form]
    end, begin = os.pipe()
    os.close(end)  # nobody will ever read
    done = subprocess.run(command, stdout=begin, stderr=subprocess.PIPE, text=True, check=False)
    os.close(begin)
    assert done.returncode == ends, done.stderr
    assert "BrokenPipe" not in done.stderr


def test_a_reader_that_leaves_an_explanation_is_no_bug_of_ours() -> None:
    end, begin = os.pipe()
    os.close(end)
    command = [sys.executable, "-m", "trueport", "explain"]
    done = subprocess.run(command, stdout=begin, stderr=subprocess.PIPE, text=True, check=False)
    os.close(begin)
    assert (done.returncode, done.stderr) == (Exit.NO_READER, "")
