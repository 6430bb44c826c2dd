"""What the check found, in the words of a diagnostic."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from trueport.diagnostics.base import Diagnostic, Severity
from trueport.diagnostics.rules.tp801_runtime_cannot_load import RuntimeCannotLoad
from trueport.diagnostics.rules.tp802_runtime_refuses_input import RuntimeRefusesInput
from trueport.diagnostics.rules.tp803_wrong_shape import WrongShape
from trueport.diagnostics.rules.tp804_wrong_dtype import WrongDtype
from trueport.diagnostics.rules.tp805_wrong_values import WrongValues
from trueport.diagnostics.rules.tp806_runtime_hang import RuntimeHang
from trueport.diagnostics.rules.tp807_runtime_crash import RuntimeCrash
from trueport.diagnostics.rules.tp808_runtime_out_of_memory import RuntimeOutOfMemory
from trueport.diagnostics.rules.tp809_not_verified import NotVerified
from trueport.diagnostics.spelling import EXPORT, VALUES, option, size_range, told
from trueport.source import Place
from trueport.verify.judging.compare import Difference, DifferenceKind
from trueport.verify.runtime.sandbox import FailureKind, WorkerFailure

EXAMPLE = "the example"
LOADING = "loading the model"
_REPORT = "mend the translation if it is your own; otherwise please report it with the model"
_WAYS_OUT = {
    FailureKind.CANNOT_LOAD: told(
        "write it with operators that the runtime has; if yours brings this one: ", option("verify", False)
    ),
    FailureKind.REFUSES_INPUT: "if such inputs never come, declare the range of the size; otherwise please report it",
    FailureKind.HANG: "declare smaller sizes if the model is that slow; otherwise try another onnxruntime",
    FailureKind.CRASH: "write the line in another way, or try another onnxruntime, where this should be reported",
    FailureKind.OUT_OF_MEMORY: "declare a maximum for the free sizes, or make no such large tensor here",
}


def input_words(sizes: Mapping[str, int], family: str) -> str:
    """`batch=3, time=5, values: zeros`, or the example."""
    if family == EXAMPLE:
        return EXAMPLE
    named = ", ".join(f"{name}={size}" for name, size in sizes.items())
    return f"{named}, values: {family}" if named else f"values: {family}"


def failure_found(
    failure: WorkerFailure, on: str, seen: tuple[str, ...] = (), place: Place | None = None
) -> Diagnostic:
    """A run or a load that gave no result. `on` is LOADING, or an input in words; `place` is of the node at fault."""
    reason = _runtime_reason(failure.detail)
    while_doing = on if on == LOADING else f"running {on}"
    rule, message = {
        FailureKind.CANNOT_LOAD: (RuntimeCannotLoad, f"ONNX Runtime cannot load the model: {reason}"),
        FailureKind.REFUSES_INPUT: (
            RuntimeRefusesInput,
            f"ONNX Runtime refuses an input that eager accepts ({on}): {reason}",
        ),
        FailureKind.HANG: (RuntimeHang, f"ONNX Runtime gave {reason} while {while_doing}"),
        FailureKind.CRASH: (RuntimeCrash, f"ONNX Runtime crashed ({reason}) while {while_doing}"),
        FailureKind.OUT_OF_MEMORY: (
            RuntimeOutOfMemory,
            f"ONNX Runtime went beyond its memory limit while {while_doing}: {reason}",
        ),
    }[failure.kind]
    fix = _WAYS_OUT[failure.kind]
    if "is not a registered function/op" in reason:
        fix = told("a runtime that has this operator must check the model; export it with ", option("verify", False))
    return rule(message=message, seen=seen, place=place, fix=fix)


def empty_refused(
    failure: WorkerFailure, sizes: Sequence[str], seen: tuple[str, ...], place: Place | None
) -> Diagnostic:
    """The runtime cannot run an empty input that eager accepts. It says so, so nobody gets a wrong result unawares."""
    names = " or ".join(f"{name}=0" for name in sizes)
    rule = RuntimeCrash if failure.kind is FailureKind.CRASH else RuntimeRefusesInput
    return rule(
        message=f"ONNX Runtime cannot run {names}, which eager accepts: {_runtime_reason(failure.detail)}",
        seen=seen,
        place=place,
        fix=told("declare that it is never empty: ", size_range(sizes[0], 1)),
        facts={"empty": sizes[0]},
        severity=Severity.WARNING,
    )


def below_promised(finding: Diagnostic, sizes: Sequence[str], promised: int) -> Diagnostic:
    """A difference at sizes for which nobody promised anything: a warning, which says so."""
    names = " and ".join(f"`{name}`" for name in sizes)
    return replace(
        finding,
        seen=(
            *finding.seen[:1],
            f"torch.export takes {names} to be {promised} or more, and so this is a warning",
            *finding.seen[1:],
        ),
        fix=told("if smaller sizes come, export with ", EXPORT, "; ", size_range(sizes[0], 1), " makes this an error"),
        severity=Severity.WARNING,
    )


def empty_differs(found: Diagnostic, sizes: Sequence[str]) -> Diagnostic:
    """A difference of two results that have no element, in their shape."""
    fix = told("declare that it is never empty: ", size_range(sizes[0], 1))
    return replace(found, severity=Severity.WARNING, fix=fix, facts={"empty": sizes[0]})


def untyped_nothing(found: Diagnostic) -> Diagnostic:
    """A difference of two results that have no element, in their dtype."""
    fix = "say which dtype it is, also where it is empty: torch.tensor(items, dtype=torch.int64)"
    return replace(found, severity=Severity.WARNING, fix=fix)


def difference_found(
    name: str,
    difference: Difference,
    on: str,
    seen: tuple[str, ...],
    place: Place | None = None,
    fix: str | None = None,
) -> Diagnostic:
    """An output that is not eager's. `place` is where the difference begins."""
    facts = (f"input: {on}", *seen)
    output = f"output `{name}`" if difference.item is None else f"item {difference.item} of output `{name}`"
    match difference.kind:
        case DifferenceKind.SHAPE:
            return WrongShape(
                message=f"{output} has shape {difference.got}, eager gives {difference.expected}",
                seen=facts,
                place=place,
                fix=fix or _REPORT,
            )
        case DifferenceKind.DTYPE:
            return WrongDtype(
                message=f"{output} is {difference.got}, eager gives {difference.expected}",
                seen=facts,
                place=place,
                fix=fix or _REPORT,
            )
        case DifferenceKind.STRUCTURE:
            return WrongShape(
                message=f"{output} is {difference.got}, eager gives {difference.expected}",
                seen=facts,
                place=place,
                fix=fix or _REPORT,
            )
        case DifferenceKind.VALUES:
            spread = f"{difference.wrong} of {difference.count} elements differ"
            return WrongValues(
                message=_values_message(output, difference),
                seen=(facts[0], spread, *facts[1:]),
                place=place,
                fix=fix or _REPORT,
            )


def structure_found(told: str, on: str, place: Place | None) -> Diagnostic:
    return WrongShape(message=f"{told}, on another input", seen=(f"input: {on}",), place=place)


def example_undecided(why: str, share: float) -> Diagnostic:
    """The example is what the user goes by. Where rounding decides over much of it, there is no verdict to give."""
    return NotVerified(
        message=f"on the example itself, {share:.1%} of an output cannot be told right from wrong: {why}",
        fix=told(
            "give an example on which eager's own answer is firm; or say how far an output may be off: ",
            option("rtol", ...),
            ", ",
            option("atol", ...),
        ),
        severity=Severity.ERROR if share > _MUCH else Severity.WARNING,
    )


_MUCH = 0.1


def equal_with_autograd(inputs: int) -> Diagnostic:
    """An exporter may have traced the path that torch takes then; but inference takes the other one."""
    return NotVerified(
        message=f"on {inputs} inputs the file gives what eager gives with autograd on; without it, torch takes another"
        " path and gives something else",
        fix=told("export with ", EXPORT, ", which follows eager as inference runs it: under torch.no_grad()"),
    )


def cut_short(why: str, compared: int) -> Diagnostic:
    """Not all that was planned was compared, and so the verdict is about less than it usually is."""
    return NotVerified(
        message=f"the check ended before its time, after {compared} inputs: {why}",
        fix="check on a machine that is less busy, or a smaller model of the same kind",
    )


def mostly_undecided(undecided: int, decided: int) -> Diagnostic:
    """The inputs that agree are the exception, and say little of the others."""
    return NotVerified(
        message=f"{decided} inputs agree; on {undecided} others rounding alone may explain the difference, which"
        " proves nothing",
        fix=told("declare the range of values that the inputs take: ", VALUES),
    )


def hardly_checked(refused: int, undecided: tuple[str, ...], tried: int, *, example_agrees: bool) -> Diagnostic:
    """Too little could be compared for the rest to be believed."""
    return NotVerified(
        message="the model agrees with eager on the example, and could be compared on no other input"
        if example_agrees
        else "the model could be compared in full on no more than one input, and not on the example",
        seen=(f"eager refused {refused} of {tried} other inputs", *undecided[:3]),
        fix=told("declare the range of values that the inputs take: ", VALUES),
    )


def size_not_moved(name: str, values: tuple[int, ...]) -> Diagnostic:
    tried = ", ".join(map(str, values))
    return NotVerified(
        message=f"`{name}` is declared free, but eager accepted no size other than {tried} among those tried",
        fix=f"if `{name}` is always {tried}, do not declare it free; otherwise declare its range",
        facts={"size": name, "value": tried} if len(values) == 1 else {},
    )


def _values_message(output: str, difference: Difference) -> str:
    at = f" at {list(difference.index)}" if difference.index else ""
    both = f"eager {difference.expected}, ONNX {difference.got}"
    if difference.error == float("inf"):
        return f"{output} differs from eager{at}: {both}"
    return f"{output} differs from eager by {difference.error:.3g} (allowed {difference.allowed:.2g}){at}: {both}"


def _runtime_reason(detail: str) -> str:
    """onnxruntime's message on one line, without its own sources and assertions, and where our copy of the file is."""
    line = " ".join(detail.split())
    if line.startswith("[ONNXRuntimeError]"):
        line = line.split(" : ", 3)[-1]
    for noise, said in _NOISE:
        line = noise.sub(said, line)
    return line


_NOISE = (
    (re.compile(r"^Load model from \S+ failed: ?"), ""),
    (
        re.compile(r"Non-zero status code returned while running (\w+) node\. Name:'([^']*)' Status Message: "),
        r"\1 (\2): ",
    ),
    # `/onnxruntime_src/.../reshape_helper.h:84 onnxruntime::ReshapeHelper(...) size != 0 was false. What it means`
    (re.compile(r"/\S*onnxruntime\S*:\d+ .*? was false\. ?(?=\S)"), ""),
    (re.compile(r"/\S*onnxruntime\S*:\d+ (?=\S)"), ""),
    (re.compile(r"\b\w+\.(?:h|cc):\d+ \w+ (?=\S)"), ""),
)
