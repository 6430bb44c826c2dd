"""The process of the reference evaluator: it ends with its parent, and has limits of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import psutil
import pytest
from onnx import TensorProto, helper

from trueport.verify.judging import evaluator
from trueport.verify.judging.second_opinion import _library_folders

GIGABYTE = 1 << 30


@pytest.fixture
def large(tmp_path: Path) -> Path:
    """A model that makes as many floats as its input says, and a path for feeds beside it."""
    made = helper.make_node("ConstantOfShape", ["size"], ["y"])
    graph = helper.make_graph(
        [made],
        "large",
        [helper.make_tensor_value_info("size", TensorProto.INT64, [1])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [None])],
    )
    path = tmp_path / "large.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)]), path)
    return path


@pytest.fixture
def endless(tmp_path: Path) -> Path:
    body = helper.make_graph(
        [helper.make_node("Identity", ["going"], ["on"]), helper.make_node("Identity", ["x"], ["next"])],
        "body",
        [
            helper.make_tensor_value_info("round", TensorProto.INT64, []),
            helper.make_tensor_value_info("going", TensorProto.BOOL, []),
            helper.make_tensor_value_info("x", TensorProto.INT64, [1]),
        ],
        [
            helper.make_tensor_value_info("on", TensorProto.BOOL, []),
            helper.make_tensor_value_info("next", TensorProto.INT64, [1]),
        ],
    )
    graph = helper.make_graph(
        [helper.make_node("Loop", ["", "always", "size"], ["y"], body=body)],
        "endless",
        [helper.make_tensor_value_info("size", TensorProto.INT64, [1])],
        [helper.make_tensor_value_info("y", TensorProto.INT64, [1])],
        [helper.make_tensor("always", TensorProto.BOOL, [], [True])],
    )
    path = tmp_path / "endless.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)]), path)
    return path


def command(model: Path, size: int, memory: int, seconds: int, parent: object) -> list[str]:
    feeds = model.with_suffix(".npz")
    np.savez(feeds, names=np.array(json.dumps(["size"])), a0=np.array([size]))
    given = [str(parent), str(memory), str(seconds), *_library_folders(), str(model), str(feeds)]
    return [sys.executable, "-I", str(evaluator.__file__), *given, str(model.with_suffix(".answers.npz"))]


@pytest.mark.parametrize(("size", "fits"), [(1000, True), (2 * GIGABYTE, False)])
def test_memory_is_limited(large: Path, size: int, fits: bool) -> None:
    done = subprocess.run(
        command(large, size, 4 * GIGABYTE, 100, os.getpid()), capture_output=True, text=True, check=False
    )
    assert (done.returncode == 0) is fits, done.stderr
    assert fits or "MemoryError" in done.stderr


def test_time_is_limited(endless: Path) -> None:
    """Of its own, besides that of whoever waits for it."""
    done = subprocess.run(command(endless, 1, 4 * GIGABYTE, 5, os.getpid()), capture_output=True, check=False)
    assert done.returncode < 0


PARENT = """
import os, subprocess, sys, time
given = [str(os.getpid()) if word == "PARENT" else word for word in sys.argv[1:]]
started = subprocess.Popen(given)
print(started.pid, flush=True)
time.sleep(600)
"""


def test_it_ends_with_its_parent(endless: Path) -> None:
    parent = subprocess.Popen(
        [sys.executable, "-c", PARENT, *command(endless, 1, 4 * GIGABYTE, 600, "PARENT")],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert parent.stdout is not None
    started = psutil.Process(int(parent.stdout.readline()))
    while "numpy" not in " ".join(each.path for each in started.memory_maps()):  # at work
        pass
    parent.kill()
    parent.communicate()
    _, alive = psutil.wait_procs([started], timeout=60)
    assert not [process for process in alive if process.status() != psutil.STATUS_ZOMBIE]
