"""What holds for all rewritten code: the user's lines, the user's functions afterwards, and no silent fallback."""

from __future__ import annotations

import ast
import asyncio
import inspect
import linecache
import sys
import threading
import traceback

import pytest
import torch
from torch import nn

import trueport
from benchmarks.rewrite_cost import cost
from tests.control_flow.kept_alive import DOWN, ROWS, UP, assert_kept_alive, refused, rows
from trueport.errors import ExportError
from trueport.rewrite import functions


def branching(x):
    y = x + 1
    if x.sum() > 0:
        y = y * 2
    else:
        y = y - 3
    return y


FIRST = branching.__code__.co_firstlineno


# --- the user's lines


def test_nodes_in_arms_have_the_users_lines():
    program = assert_kept_alive(branching, (UP,), [(DOWN,)], ifs=1)
    lines = {str(node.op): node.place.where.line for node in program.captured.root.walk()}
    assert lines["aten.mul.Tensor"] == FIRST + 3
    assert lines["aten.sub.Tensor"] == FIRST + 5
    assert lines["Control.IF"] == FIRST + 2
    assert all(node.place.where.file == __file__ for node in program.captured.root.walk())
    assert all(node.place.where.function == "branching" for node in program.captured.root.walk())


def test_the_onnx_nodes_have_them_too():
    program = trueport.export(branching, (UP,), verify=False)
    (branch,) = [node for node in program.model.graph if node.op_type == "If"]
    then = branch.attributes["then_branch"].as_graph()
    told = [value for node in then for value in node.metadata_props.values()]
    assert any(f"tests/control_flow/test_rules.py:{FIRST + 3}" in value for value in told)


def test_a_traceback_through_rewritten_code_has_the_users_lines():
    def model(x):
        if x.sum() > 0:
            y = x * 2
        else:
            y = x.numpy()
        return y

    found = refused(model, (UP,))
    assert found.where.line == model.__code__.co_firstlineno + 4
    try:
        trueport.export(model, (UP,), verify=False)
    except ExportError as error:
        text = "".join(traceback.format_exception(error.__cause__ or error))
        assert "y = x.numpy()" in text


def test_a_line_trace_sees_the_lines_of_the_arms():
    """What a debugger relies on: a breakpoint on a line of an arm is hit."""
    hit = set()

    def watch(frame, event, _):
        if frame.f_code.co_filename == __file__ and event == "line":
            hit.add(frame.f_lineno)
        return watch

    before = sys.gettrace()
    sys.settrace(watch)
    try:
        trueport.export(branching, (UP,), verify=False)
    finally:
        sys.settrace(before)
    # the example takes the first arm: the second is only run by the trace of the rewritten code
    assert {FIRST + 3, FIRST + 5} <= hit


# --- the user's functions afterwards


def test_functions_are_as_before():
    code = branching.__code__
    trueport.export(branching, (UP,), verify=False)
    assert branching.__code__ is code


def test_functions_are_as_before_when_the_export_fails():
    def model(x):
        y = x.long() if x.sum() > 0 else x
        return y

    code = model.__code__
    refused(model, (UP,))
    assert model.__code__ is code


def test_classes_are_as_before():
    class Net(nn.Module):
        def forward(self, x):
            self.seen = 0
            if x.sum() > 0:
                return x * 2
            return x

    net = Net().eval()
    attributes, code = dict(vars(Net)), Net.forward.__code__
    trueport.export(net, (UP,), verify=False)
    assert dict(vars(Net)) == attributes
    assert Net.forward.__code__ is code
    assert "seen" not in vars(net)


def test_other_threads_run_the_model_meanwhile():
    stop, wrong = threading.Event(), []

    def run():
        while not stop.is_set():
            for given, expected in ((UP, (UP + 1) * 2), (DOWN, DOWN - 2)):
                if not torch.equal(branching(given), expected):
                    wrong.append(given)

    worker = threading.Thread(target=run)
    worker.start()
    try:
        for _ in range(3):
            trueport.export(branching, (UP,), verify=False)
    finally:
        stop.set()
        worker.join()
    assert not wrong


def test_exports_of_the_same_function_on_two_threads():
    made = []

    def run():
        made.append(trueport.export(branching, (UP,), verify=False))

    code = branching.__code__
    workers = [threading.Thread(target=run) for _ in range(3)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert branching.__code__ is code
    assert len(made) == 3
    for program in made:
        assert torch.equal(program(DOWN), branching(DOWN))


def test_exports_after_a_thread_that_exported_has_ended():
    """Up to torch 2.11, what the first thread left behind killed the process (`releases.guard_of_no_thread`)."""
    for _ in range(3):
        worker = threading.Thread(target=lambda: trueport.export(branching, (UP,), verify=False))
        worker.start()
        worker.join()
    assert torch.equal(trueport.export(branching, (UP,), verify=False)(DOWN), branching(DOWN))


def test_a_function_is_rewritten_once():
    functions._rewritten_code.cache_clear()
    for _ in range(3):
        trueport.export(branching, (UP,), verify=False)
    assert functions._rewritten_code.cache_info().misses == 1


def test_rewriting_costs_little_more_than_parsing_and_compiling():
    """Both by the processor's time, in one run: `benchmarks/results/rewrite_cost.md` has the milliseconds."""
    code = branching.__code__
    text = inspect.getsource(branching)
    functions.rewritten_code(code)  # its file is parsed once

    def anew():
        functions._rewritten_code.cache_clear()
        functions.rewritten_code(code)

    assert cost(anew) < 25 * cost(lambda: compile(ast.parse(text), __file__, "exec"))


def test_a_model_without_decisions_is_never_rewritten():
    functions._rewritten_code.cache_clear()
    trueport.export(lambda x: x * 2 if x.dim() == 2 else x, (UP,), verify=False)
    assert functions._rewritten_code.cache_info().misses == 0


def test_rewritten_code_runs_eagerly_like_the_original():
    rewritten = type(branching)(functions.rewritten_code(branching.__code__), globals(), "branching")
    for given in (UP, DOWN):
        assert torch.equal(rewritten(given), branching(given))


# --- no silent fallback


def test_source_that_does_not_exist():
    space = {}
    exec("def made(x):\n    if x.sum() > 0:\n        return x * 2\n    return x\n", space)
    found = refused(space["made"], (UP,))
    assert found.code == "TP107"
    assert "without source" in found.message
    assert found.where.line == 2
    assert "file" in found.fix


def test_source_of_a_prompt_or_notebook():
    """A notebook's cell has its source in linecache, and is rewritten like a file."""
    name = "<ipython-input-1-trueport>"
    text = "def made(x):\n    if x.sum() > 0:\n        return x * 2\n    return x\n"
    linecache.cache[name] = (len(text), None, text.splitlines(True), name)
    space = {}
    exec(compile(text, name, "exec"), space)
    try:
        assert_kept_alive(space["made"], (UP,), [(DOWN,)], ifs=1)
    finally:
        del linecache.cache[name]


def test_source_that_changed_since(tmp_path, monkeypatch):
    file = tmp_path / "changing.py"
    file.write_text("def pick(x):\n    if x.sum() > 0:\n        return x * 2\n    return x\n")
    space = {}
    exec(compile(file.read_text(), str(file), "exec"), space)
    file.write_text("# another line\n\n\n" + file.read_text())
    found = refused(space["pick"], (UP,))
    assert found.code == "TP107"


def test_asynchronous_code():
    async def pick(x):
        if x.sum() > 0:
            return x * 2
        return x

    def model(x):
        return asyncio.run(pick(x))

    found = refused(model, (UP,))
    assert found.code == "TP107"
    assert "async" in found.message
    assert found.fix


# --- unrolling


def test_very_long_unrolling_is_told_at_its_line():
    def model(x):
        for _ in range(600):
            x = x + 1
        return x

    report = trueport.export(model, (UP,), verify=False).report
    (told,) = [d for d in report.diagnostics if d.code == "TP106"]
    assert told.where.line == model.__code__.co_firstlineno + 2
    assert not told.is_error


def test_unrolling_below_the_bound_is_not():
    def model(x):
        for _ in range(100):
            x = x + 1
        return x

    report = trueport.export(model, (UP,), verify=False).report
    assert not [d for d in report.diagnostics if d.code == "TP106"]


@pytest.mark.parametrize("size", [1, 5])
def test_the_example_may_have_any_size(size):
    """A size of 1 in the example is as free as any other."""

    def model(x):
        if x.shape[0] > 3:
            return x * 2
        return x

    example, *others = rows(size, 1, 2, 4, 9)
    assert_kept_alive(model, example, others, dynamic_shapes=ROWS, ifs=1)


def test_a_function_that_calls_itself_until_a_value_says_stop_is_refused():
    """It was written out until the machine gave up."""

    def halved(x, steps=0):
        if x.sum() <= 1:
            return x + steps
        return halved(x / 2, steps + 1)

    found = refused(halved, (torch.ones(4),))
    assert found.code == "TP102"
    assert found.where.line == halved.__code__.co_firstlineno + 1
    assert "while" in found.fix
