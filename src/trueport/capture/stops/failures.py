"""Why a trace stopped, in the user's words.

Eager accepted the same input a moment ago, so whatever stops a trace is something that a graph cannot hold: a decision
on a tensor's value, a number needed where only a symbol is known, a tensor's memory asked for.

Failures of the trace that the model's own `except` catches.

Eager went through such a line; the trace could not, and what the model does about errors is no answer to that: it would
go on with `except Exception: y = fallback`, and the graph would hold the fallback.
"""

from __future__ import annotations

import functools
import linecache
import re
import sys
import traceback
from types import TracebackType

from trueport.capture.stops.places import Places
from trueport.capture.stops.raising import is_refused_by_eager, reads_unbound
from trueport.capture.stops.restarts import WritesInPlace
from trueport.capture.values.disagreement import Disagreement
from trueport.capture.values.stores import held_disagreement
from trueport.capture.values.texts import MARK
from trueport.decompositions.cannot_be_carried import CannotBeCarried
from trueport.diagnostics.base import Diagnostic, Severity
from trueport.diagnostics.rules.tp101_branch_on_tensor import BranchOnTensor
from trueport.diagnostics.rules.tp102_loop_on_tensor import LoopOnTensor
from trueport.diagnostics.rules.tp105_arm_dropped import ArmDropped
from trueport.diagnostics.rules.tp110_too_deep import TooDeep
from trueport.diagnostics.rules.tp204_left_the_graph import LeftTheGraph
from trueport.diagnostics.rules.tp302_size_narrowed import SizeNarrowed
from trueport.diagnostics.rules.tp304_data_dependent_size import DataDependentSize
from trueport.diagnostics.rules.tp401_unsupported_operator import UnsupportedOperator
from trueport.diagnostics.rules.tp901_our_fault import OurFault, report_it
from trueport.diagnostics.spelling import option, told
from trueport.errors import ExportError
from trueport.source import Place, Where
from trueport.torch_internals import (
    DataDependentOutputException,
    DynamicOutputShapeException,
    GuardOnDataDependentSymNode,
    OpOverload,
    UnsupportedOperatorException,
    is_custom,
    messages,
)
from trueport.torch_internals.messages import is_quantised
from trueport.torch_internals.schemas import arguments_of, result_types

_OF_TRACING = (
    GuardOnDataDependentSymNode,
    DataDependentOutputException,
    DynamicOutputShapeException,
    UnsupportedOperatorException,
    CannotBeCarried,
    ExportError,
    WritesInPlace,
)
_LOOPS = re.compile(r"\b(for|while|range)\b")
"""What a line says that runs something several times; `torch.arange` is not among it."""
_TRACED = (*messages.TRACED_NUMBERS, "OpenSequence", "TracedList", "__format__")
"""What messages of Python's call a value that is being traced; a tensor is asked for its format by `f"{x:.3f}"`."""

_MARKED = repr(MARK)[1:-1]
"""What messages of Python's show of a text with a traced number in it: `invalid literal for int(): '\\x01s0'`."""


def is_of_tracing(failure: BaseException) -> bool:
    """Whether eager, which has values, cannot have failed in this way."""
    if isinstance(failure, _OF_TRACING):
        return True
    text = str(failure)
    told = messages.reads_memory(text) or any(part in text for part in _TRACED)
    return isinstance(failure, (RuntimeError, TypeError)) and told


def diagnose(failure: Exception, places: Places) -> Diagnostic:
    """One diagnostic for the exception that ended a trace."""
    place = place_of(failure.__traceback__, places)
    text = str(failure)
    if (found := _by_class(failure, place)) is not None:
        return found
    if reads_unbound(failure, places):
        return ArmDropped(
            message="a name is read here that is not assigned when the model comes here first",
            place=place,
            severity=Severity.ERROR,
            label="not yet assigned",
            fix="assign it before the branch or the loop: eager raises UnboundLocalError if it comes here",
        )
    if (name := _without_fake_kernel(failure, text)) is not None:
        return UnsupportedOperator(
            message=f"`{name}` does not tell torch what sizes its results have, and the trace computes no values",
            place=place,
            label=f"calls {name}",
            fix=f"give it a fake kernel, and a translation (which the next run asks for):\n{fake_kernel_stub(name)}",
        )
    if (needed := messages.layout_needed(text)) is not None:
        operator, layout = needed
        return UnsupportedOperator(
            message=f"`{operator}` works on {layout} tensors, which no ONNX operator takes",
            place=place,
            label=f"needs {layout} tensors",
            fix="use dense tensors: padded with a mask instead of nested, .to_dense() instead of sparse",
        )
    if isinstance(failure, (UnsupportedOperatorException, NotImplementedError)) or messages.lacks_fake_kernel(text):
        return UnsupportedOperator(
            message=f"torch cannot tell the shape of this operator's result without running it: {_first_line(text)}",
            place=place,
            fix=_instead_of_an_operator(text),
        )
    if messages.is_outside_the_modes(text):
        return LeftTheGraph(
            message="a traced tensor is used where nothing traces: in another thread, or with torch's modes taken off",
            place=place,
            label="not traced here",
            seen=(_first_line(text),),
            fix="call the function itself, in a plain loop: [f(x) for x in xs] for list(pool.map(f, xs))",
        )
    if messages.reads_memory(text):
        return LeftTheGraph(
            message="the memory of a tensor is read here, outside torch; the graph cannot follow",
            place=place,
            label="leaves torch",
            seen=(_first_line(text),),
            fix="stay in torch: use torch functions instead of numpy, .tolist() or data_ptr()",
        )
    if any(kind in text for kind in _TRACED) or (isinstance(failure, ValueError) and _MARKED in text):
        return LeftTheGraph(
            message="a number that is known only when the model runs is used where Python needs a plain one",
            place=place,
            label="needs a plain number",
            seen=(_first_line(text),),
            fix=_instead_of_a_plain_number(text),
        )
    if isinstance(failure, TypeError) and messages.is_of_object_arrays(text):
        return LeftTheGraph(
            message="a number that is known only when the model runs is given to numpy, which holds it as an object",
            place=place,
            label="a scalar or an array of numpy's",
            seen=(_first_line(text),),
            fix="use a number of Python's, or a tensor: float(v) for np.float64(v), torch.tensor(v) for np.array(v)",
        )
    if isinstance(failure, TypeError) and (disagreement := _disagreed_on(failure.__traceback__)) is not None:
        return disagreement.told()
    if isinstance(failure, RuntimeError) and messages.names_a_size_of_the_run(text):
        return DataDependentSize(
            message=f"torch takes no size here that depends on values: {_first_line(text)}",
            place=place,
            label="a size is known only when the model runs",
            fix="say what it is: torch._check(y.shape[0] == 1); or write what it is: x[t].unsqueeze(0) for x[t:t + 1]",
        )
    if is_refused_by_eager(failure) is False:
        return SizeNarrowed(
            message=f"eager runs this line with some of the declared sizes only: {_first_line(text)}",
            place=place,
            label="raises or not, by a free size",
            fix="do not declare that size free, or only the range of it with which the model runs",
        )
    if is_refused_by_eager(failure):
        return ArmDropped(
            message=f"eager would raise here, too: {_first_line(text)}",
            place=place,
            severity=Severity.ERROR,
            label="raises in eager",
            fix="decide before this line, with `if`, whether the model comes here",
        )
    return OurFault(
        message=f"the trace stopped with {type(failure).__name__}: {_first_line(text)}",
        place=place,
        fix=report_it(": eager runs this line"),
    )


@functools.singledispatch
def _by_class(failure: Exception, place: Place) -> Diagnostic | None:
    """The diagnostic of an exception whose class tells all; None where the message has to tell."""
    return None


@_by_class.register
def _(failure: RecursionError, place: Place) -> Diagnostic:
    most = sys.getrecursionlimit()
    return TooDeep(
        message="branches and loops lie too deep within each other here: to trace them takes too many calls",
        place=place,
        label="no room for more",
        seen=(f"Python allows {most} calls within each other (sys.getrecursionlimit())",),
        fix="write a loop, choose with torch.where or by an index, or split the function",
    )


@_by_class.register
def _(failure: CannotBeCarried, place: Place) -> Diagnostic:
    return UnsupportedOperator(message=str(failure), place=place, fix=failure.fix)


@_by_class.register
def _(failure: DynamicOutputShapeException, place: Place) -> Diagnostic:
    return DataDependentSize(
        message=f"the size of what `{failure.func}` returns depends on values, and torch needs to know it here",
        place=place,
    )


@_by_class.register
def _(failure: DataDependentOutputException, place: Place) -> Diagnostic:
    return _loop_on_a_value(place) or _branch_on_a_value(place)


@_by_class.register
def _(failure: GuardOnDataDependentSymNode, place: Place) -> Diagnostic:
    if (loop := _loop_on_a_value(place)) is not None:
        return loop
    if _asked_by_user(failure):
        return _branch_on_a_value(place)
    return DataDependentSize(
        message="torch needs to know a size here that depends on the values of a tensor",
        place=place,
        label="the size is known only when the model runs",
        fix="tell torch what holds, e.g. torch._check(n > 0), or use an operator that keeps the size open",
    )


def ends_the_call(ended: BaseException, places: Places) -> Diagnostic:
    """Something was raised that is no Exception. Eager went another way on the example, or knew that it was not being
    traced."""
    place = place_of(ended.__traceback__, places)
    if isinstance(ended, SystemExit):
        return LeftTheGraph(
            message="the process is ended here, and nothing in a graph can do that",
            place=place,
            label="sys.exit",
            fix="raise an error instead: the arm that raises is left out, and the report says so",
        )
    name = type(ended).__name__
    return LeftTheGraph(
        message=f"`{name}` is raised here, which is no Exception, and nothing in a graph can raise it",
        place=place,
        label=f"raises {name}",
        seen=(_first_line(str(ended)),) if str(ended) else (),
        fix=f"derive {name} from Exception: the arm that raises is left out, and the report says so",
    )


def _disagreed_on(trail: TracebackType | None) -> Disagreement | None:
    """What two arms left without one value, and a function of Python's own was then given (`" ".join(words)`)."""
    frames = [frame for frame, _ in traceback.walk_tb(trail)]
    values = (value for frame in reversed(frames) for value in frame.f_locals.values())
    return next((held for value in values if (held := held_disagreement(value)) is not None), None)


def _without_fake_kernel(failure: Exception, text: str) -> str | None:
    """The name of a user's operator that torch can ask for no sizes."""
    if isinstance(failure, UnsupportedOperatorException) and is_custom(failure.func):
        return str(failure.func.name())
    return messages.operator_without_fake_kernel(text)


def _instead_of_an_operator(text: str) -> str:
    if messages.is_quantised(text):
        return "leave this layer as it was before the conversion, or export the model before it is converted"
    return "write it with other operators"


def _instead_of_a_plain_number(text: str) -> str:
    if "__format__" in text:
        return "leave out what is only printed, or print it after the model has run"
    if "the text of a number" in text or _MARKED in text:
        return 'ask the numbers instead of their text: (n, m) == (3, 4) for f"{n}x{m}" == "3x4", and tuples as keys'
    if "unhashable" in text:
        return "a dict or a set needs a plain key: decide with `if`, or keep the values in a tensor and index that"
    return told("compute with it in torch, or pass it as an argument and fix that: ", option("constants", ...))


def _loop_on_a_value(place: Place) -> Diagnostic | None:
    if not _LOOPS.search(_source_line(place)):
        return None
    return LoopOnTensor(
        message="how often this loop runs depends on the value of a tensor",
        place=place,
        label="runs as often as a tensor says",
        fix="loop over a fixed number, or compute with whole tensors and a mask",
    )


def _branch_on_a_value(place: Place) -> Diagnostic:
    return BranchOnTensor(
        message="this line needs the value of a tensor to decide what to run next",
        place=place,
        label="decided by a tensor's value",
        fix="torch.where(condition, a, b) where both sides may be computed",
    )


def _asked_by_user(failure: Exception) -> bool:
    """Whether the frame that asked for the value is the user's own (an `if`), or inside a torch kernel."""
    places = Places()
    frames = [f.f_code for f, _ in traceback.walk_tb(failure.__traceback__)]
    for code in reversed(frames):
        if not Places.is_size_machinery(code):
            return not places.is_foreign(code)
    return False


def place_of(trace: TracebackType | None, places: Places) -> Place:
    """The frames of a traceback that are not torch's or ours, from forward inwards. Where it ends in Python's library,
    the last is the line that called it: nobody can mend the other."""
    calls = [
        Where.of(frame.f_code, line) for frame, line in traceback.walk_tb(trace) if not places.is_foreign(frame.f_code)
    ]
    while len(calls) > 1 and calls[-1].is_standard:
        calls.pop()
    return Place(tuple(calls), places.module)


def _source_line(place: Place) -> str:
    where = place.where
    return linecache.getline(where.file, where.line).strip() if where else ""


def _first_line(text: str) -> str:
    text = re.sub(r"\\x0[12]|[\x01\x02]", "", text)  # the marks around the names of traced numbers
    return next((line.strip() for line in text.splitlines() if line.strip()), "")[:300]


class Swallowed:
    """What went wrong in calls of torch by the user's own code; what a library tries and leaves, the check judges."""

    def __init__(self, places: Places) -> None:
        self._places = places
        self._failures: list[BaseException] = []

    def note(self, failure: BaseException) -> None:
        """A call of torch ends with this, and the model sees it."""
        if is_of_tracing(failure) and self._places.called_by_user():
            self._failures.append(failure)

    def forget(self, failure: BaseException) -> None:
        """It was met by ourselves, who try something else."""
        self._failures = [each for each in self._failures if each is not failure]

    def bring_up(self) -> None:
        """The trace has ended as if nothing had happened: the first of them happens now."""
        if self._failures:
            raise self._failures[0]


def untranslated(op: OpOverload, place: Place) -> Diagnostic:
    """A call of an operator that nobody can translate, with what a user has to fill in to do so."""
    instead = (
        "leave this layer as it was before the conversion"
        if is_quantised(op.name())
        else "write it with other operators"
    )
    return UnsupportedOperator(
        message=f"`{op.name()}` has no translation to ONNX",
        place=place,
        label=f"calls {op.name()}",
        fix=f"{instead}, or translate it:\n{translation_stub(op)}",
    )


def translation_stub(op: OpOverload) -> str:
    """A translation with the operator's own arguments, to be filled in."""
    results = ["a tensor" if each == "Tensor" else each for each in result_types(op)]
    gives = results[0] if len(results) == 1 else f"a tuple of {len(results)}"
    return "\n".join(
        (
            f'@trueport.op("{op.name()}")',
            f"def {op.overloadpacket.__name__}(op, {_parameters(op)}):",
            f"    return ...  # {gives}, made of ONNX operators: op.Add({arguments_of(op)[0].name}, 1)",
        )
    )


def fake_kernel_stub(name: str) -> str:
    """What tells torch the sizes of an operator's results."""
    return "\n".join(
        (
            f'@torch.library.register_fake("{name}")',
            "def _(x, ...):  # the operator's own arguments",
            "    return torch.empty_like(x)  # of the size and the dtype that it returns",
        )
    )


def _parameters(op: OpOverload) -> str:
    found, star = [], False
    for argument in arguments_of(op):
        if argument.keyword_only and not star:
            star = True
            found.append("*")
        default = f"={argument.default!r}" if argument.has_default else ""
        found.append(f"{argument.name}{default}")
    return ", ".join(found)
