"""The parent outlives whatever a model does to its worker, and the next model finds a worker again."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import onnx
import pytest
import torch
from onnx import TensorProto, helper

from tests.verify.onnx_models import FLOAT, endless, greedy, port, scaled, write
from trueport.verify.runtime import sandbox
from trueport.verify.runtime.frames import receive, send
from trueport.verify.runtime.sandbox import FailureKind, Limits, Optimisation, Worker, WorkerFailure, shared_worker
from trueport.verify.runtime.tensors import TensorData, from_torch, to_torch

X = torch.tensor([[1.0, 2.0, 3.0]])
DTYPES = [
    *(torch.float64, torch.float16, torch.bfloat16, torch.float8_e4m3fn, torch.float8_e5m2),
    *(torch.bool, torch.int64, torch.int16, torch.uint8, torch.uint16),
]


@pytest.fixture(scope="module")
def worker():
    worker = Worker()
    yield worker
    worker.close()


def fails(kind: FailureKind, action) -> str:
    with pytest.raises(WorkerFailure) as caught:
        action()
    assert caught.value.kind is kind, caught.value
    return caught.value.detail


def works(worker: Worker, tmp_path: Path) -> bool:
    with worker.load(scaled(tmp_path / "works.onnx")) as model:
        return torch.equal(to_torch(model.run({"x": from_torch(X)})["y"]), X * 2)


def test_runs_a_model_and_tells_its_signature(worker, tmp_path):
    model = worker.load(scaled(tmp_path / "m.onnx"))
    assert [(p.name, p.type, p.shape) for p in model.inputs] == [("x", "tensor(float)", ("batch", 3))]
    assert torch.equal(to_torch(model.run({"x": from_torch(X)})["y"]), X * 2)


@pytest.mark.parametrize("shape", [(2, 3), (0, 3)])
@pytest.mark.parametrize("dtype", DTYPES)
def test_every_dtype_arrives_and_returns_bit_by_bit(worker, tmp_path, dtype, shape):
    value = (torch.arange(6) % 5).reshape(2, 3)[: shape[0]].to(dtype)
    number = from_torch(value).element_type
    node = helper.make_node("Identity", ["x"], ["y"])
    path = write(tmp_path / "m.onnx", [node], [port("x", number)], [port("y", number)], {})
    with worker.load(path) as model:
        assert model.run({"x": from_torch(value)})["y"] == from_torch(value)


def test_scalars_keep_having_no_axes(worker, tmp_path):
    node = helper.make_node("Neg", ["x"], ["y"])
    path = write(tmp_path / "m.onnx", [node], [port("x", FLOAT, [])], [port("y", FLOAT, [])], {})
    with worker.load(path) as model:
        assert model.run({"x": from_torch(torch.tensor(2.5))})["y"] == from_torch(torch.tensor(-2.5))


def test_four_bit_integers_return_packed_and_are_unpacked_here(worker, tmp_path):
    node = helper.make_node("QuantizeLinear", ["x", "scale"], ["y"], output_dtype=TensorProto.INT4)
    path = write(tmp_path / "m.onnx", [node], [port("x")], [port("y", TensorProto.INT4)], {"scale": (FLOAT, [], [1.0])})
    with worker.load(path) as model:
        got = model.run({"x": from_torch(torch.tensor([[-8.0, 7.0, -1.0]]))})["y"]
    assert isinstance(got, TensorData)
    assert (got.dtype, got.shape, to_torch(got).tolist()) == ("int4", (1, 3), [[-8, 7, -1]])


def test_a_sequence_is_a_tuple_of_tensors(worker, tmp_path):
    nodes = [helper.make_node("SplitToSequence", ["x"], ["s"], axis=1), helper.make_node("Neg", ["x"], ["y"])]
    sequence = helper.make_tensor_sequence_value_info("s", FLOAT, None)
    path = write(tmp_path / "m.onnx", nodes, [port("x")], [sequence, port("y")], {})
    with worker.load(path) as model:
        got = model.run({"x": from_torch(X)})
    assert [to_torch(part).tolist() for part in got["s"]] == [[[1.0]], [[2.0]], [[3.0]]]
    assert got["y"] == from_torch(-X)


def test_what_native_code_prints_goes_to_stderr_and_not_among_the_answers(worker, tmp_path):
    assert works(worker, tmp_path)
    assert os.readlink(f"/proc/{worker.pid}/fd/1") == os.readlink(f"/proc/{worker.pid}/fd/2")


def test_a_loop_without_an_end_is_stopped_within_its_limit(worker, tmp_path):
    model = worker.load(endless(tmp_path / "m.onnx"))
    began = time.monotonic()
    fails(FailureKind.HANG, lambda: model.run({"x": from_torch(X)}, seconds=0.5))
    assert time.monotonic() - began < 3
    assert works(worker, tmp_path)


def test_memory_beyond_the_limit(worker, tmp_path):
    model = worker.load(greedy(tmp_path / "m.onnx"), Limits(memory_bytes=300 << 20))
    small, huge = torch.tensor([1000]), torch.tensor([1 << 28])
    assert model.run({"n": from_torch(small)})["y"].shape == ()
    fails(FailureKind.OUT_OF_MEMORY, lambda: model.run({"n": from_torch(huge)}))
    assert works(worker, tmp_path)


@pytest.mark.parametrize("blow", [signal.SIGKILL, signal.SIGSEGV])
def test_a_killed_worker_is_a_crash_with_the_name_of_the_signal(worker, tmp_path, blow):
    model = worker.load(endless(tmp_path / "m.onnx"))
    killer = threading.Timer(0.3, lambda: os.kill(worker.pid, blow))
    killer.start()
    assert blow.name in fails(FailureKind.CRASH, lambda: model.run({"x": from_torch(X)}, seconds=20))
    assert works(worker, tmp_path)


@pytest.mark.parametrize("blow", [signal.SIGKILL, signal.SIGSEGV])
def test_a_worker_that_is_killed_while_it_loads(worker, tmp_path, blow):
    os.mkfifo(tmp_path / "m.onnx")  # a file that nobody ever writes to
    worker.start()
    killer = threading.Timer(1.0, lambda: os.kill(worker.pid, blow))
    killer.start()
    assert blow.name in fails(FailureKind.CRASH, lambda: worker.load(tmp_path / "m.onnx"))
    assert works(worker, tmp_path)


def test_a_load_without_an_end_is_stopped_within_its_limit(worker, tmp_path):
    os.mkfifo(tmp_path / "m.onnx")
    fails(FailureKind.HANG, lambda: worker.load(tmp_path / "m.onnx", Limits(load_seconds=0.5)))
    assert works(worker, tmp_path)


def test_a_model_loads_itself_again_in_a_new_worker(worker, tmp_path):
    model = worker.load(scaled(tmp_path / "m.onnx"))
    before = worker.pid
    os.kill(before, signal.SIGKILL)
    while worker.is_running:
        time.sleep(0.01)
    assert model.run({"x": from_torch(X)})["y"] == from_torch(X * 2)
    assert worker.pid != before


def test_files_that_cannot_be_loaded(worker, tmp_path):
    corrupt = tmp_path / "corrupt.onnx"
    corrupt.write_bytes(b"\xff" * 100)
    assert "corrupt.onnx" in fails(FailureKind.CANNOT_LOAD, lambda: worker.load(corrupt))
    assert "absent.onnx" in fails(FailureKind.CANNOT_LOAD, lambda: worker.load(tmp_path / "absent.onnx"))


def test_weights_that_are_not_there(worker, tmp_path):
    path = scaled(tmp_path / "m.onnx")
    model = onnx.load(path)
    model.graph.initializer[0].raw_data = b"\0" * 4
    model.graph.initializer[0].ClearField("float_data")
    onnx.external_data_helper.set_external_data(model.graph.initializer[0], "gone.bin")
    model.graph.initializer[0].ClearField("raw_data")
    path.write_bytes(model.SerializeToString())
    assert "gone.bin" in fails(FailureKind.CANNOT_LOAD, lambda: worker.load(path))


def test_an_operator_that_no_runtime_knows(worker, tmp_path):
    node = helper.make_node("Frobnicate", ["x"], ["y"])
    path = write(tmp_path / "m.onnx", [node], [port("x")], [port("y")], {})
    assert "Frobnicate" in fails(FailureKind.CANNOT_LOAD, lambda: worker.load(path))


def test_an_input_that_does_not_fit_is_refused_and_the_worker_stays(worker, tmp_path):
    model = worker.load(scaled(tmp_path / "m.onnx"))
    before = worker.pid
    fails(FailureKind.REFUSES_INPUT, lambda: model.run({"x": from_torch(X.int())}))
    fails(FailureKind.REFUSES_INPUT, lambda: model.run({"x": from_torch(torch.ones(1, 4))}))
    assert model.run({"x": from_torch(X)})["y"] == from_torch(X * 2)
    assert worker.pid == before


def test_optimisations_can_be_switched_off(worker, tmp_path):
    with worker.load(scaled(tmp_path / "m.onnx"), optimisation=Optimisation.NONE) as model:
        assert model.run({"x": from_torch(X)})["y"] == from_torch(X * 2)


def test_large_tensors_travel_whole(worker, tmp_path):
    large = torch.randn(300_000, 3)
    with worker.load(scaled(tmp_path / "m.onnx")) as model:
        assert model.run({"x": from_torch(large)})["y"] == from_torch(large * 2)


def test_several_threads_share_one_worker(worker, tmp_path):
    models = [worker.load(scaled(tmp_path / f"{n}.onnx", float(n))) for n in range(1, 4)]
    wrong: list[int] = []

    def use(n: int) -> None:
        for _ in range(20):
            if models[n - 1].run({"x": from_torch(X)})["y"] != from_torch(X * n):
                wrong.append(n)

    threads = [threading.Thread(target=use, args=(n,)) for n in (1, 2, 3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_one_worker_is_shared_and_does_not_import_anything_of_the_users(tmp_path, monkeypatch):
    assert shared_worker() is shared_worker()
    # A file that would shadow numpy wherever the user's folder is on the path.
    (tmp_path / "numpy.py").write_text("raise SystemExit('imported the user\\'s file')")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    worker = Worker()
    assert works(worker, tmp_path)
    worker.close()


def test_an_interrupt_in_the_middle_of_a_run_leaves_a_working_worker(worker, tmp_path):
    """Ctrl-C: the half-read answer of the run must not be taken for the answer to the next command."""
    model = worker.load(endless(tmp_path / "m.onnx"))

    def interrupt(number, frame):
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, 0.3)
    try:
        with pytest.raises(KeyboardInterrupt):
            model.run({"x": from_torch(X)}, seconds=20)
    finally:
        signal.signal(signal.SIGALRM, before)
    assert works(worker, tmp_path)


def test_a_machine_without_the_runtime_is_told_so():
    """`-S` hides the installed packages."""
    child = Path(sandbox.__file__).with_name("child.py")
    with subprocess.Popen(
        [sys.executable, "-I", "-S", str(child)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        send(process.stdin, {"do": "load"}, [])
        answer, _ = receive(process.stdout)
    assert not answer["ok"]
    assert "onnxruntime cannot be imported" in answer["detail"]


FORK = """
import os, sys
from pathlib import Path
import torch
from trueport.verify.runtime.sandbox import shared_worker
from trueport.verify.runtime.tensors import from_torch
x = from_torch(torch.ones(1, 3))
with shared_worker().load(Path(sys.argv[1])) as model:
    model.run({"x": x})
    mine = shared_worker().pid
    if os.fork() == 0:
        with shared_worker().load(Path(sys.argv[1])) as other:
            other.run({"x": x})
        assert shared_worker().pid not in (None, mine)
        sys.exit(0)
    assert os.waitstatus_to_exitcode(os.wait()[1]) == 0
    model.run({"x": x})
    assert shared_worker().pid == mine
"""


def test_a_forked_process_has_a_worker_of_its_own_and_leaves_its_parents_alone(tmp_path):
    path = scaled(tmp_path / "m.onnx")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    subprocess.run([sys.executable, "-c", FORK, str(path)], env=environment, check=True, timeout=60)


ORPHAN = """
import sys, threading
from pathlib import Path
import torch
from trueport.verify.runtime.sandbox import Worker
from trueport.verify.runtime.tensors import from_torch
worker = Worker()
model = worker.load(Path(sys.argv[1]))
print(worker.pid, flush=True)
if sys.argv[2] == "run":
    model.run({"x": from_torch(torch.ones(1, 3))})
"""


@pytest.mark.parametrize("ending", ["exit", "run"])
def test_no_orphan_remains(tmp_path, ending):
    """Neither when the parent ends by itself nor when it is killed while a model runs for ever."""
    path = endless(tmp_path / "m.onnx")
    parent = subprocess.Popen(
        [sys.executable, "-c", ORPHAN, str(path), ending],
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    pid = int(parent.stdout.readline())
    if ending == "run":
        time.sleep(0.3)
        parent.kill()
    parent.wait()
    parent.stdout.close()
    deadline = time.monotonic() + 10
    while _exists(pid) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not _exists(pid)


def _exists(pid: int) -> bool:
    try:
        status = Path(f"/proc/{pid}/stat").read_text()
    except FileNotFoundError:
        return False
    return status.rsplit(")", 1)[1].split()[0] != "Z"
