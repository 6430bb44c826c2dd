"""An inspection as text: styled lines, as a report has them. What the file says goes through `visible` when printed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from trueport.inspection.found import FilePort, Inspection, OperatorCount, SubgraphNode
from trueport.report.frame import Line

MOST = 20
"""Lines of a part that are shown; JSON has all."""
_UNITS = ("bytes", "kB", "MB", "GB", "TB")


def inspection_lines(found: Inspection) -> Iterator[Line]:
    yield ((found.file, "strong"), (f"  {human(found.bytes)}, by {found.producer or 'an unknown exporter'}", ""))
    opsets = ", ".join(f"{domain} {version}" for domain, version in found.opsets.items())
    yield ((f"IR version {found.ir_version}, opset {opsets}", ""),)
    yield from _part("inputs", [_port(given) for given in found.inputs])
    yield from _part("outputs", [_port(out) for out in found.outputs])
    names = [size for size in found.sizes if not size.is_formula]
    yield from _part("free sizes", [(size.text, ", ".join(size.axes)) for size in names])
    formulas = [size for size in found.sizes if size.is_formula]
    yield from _part("sizes that follow", [(size.text, ", ".join(size.axes)) for size in formulas])
    kinds = f"operators: {_many(found.nodes, 'node')}, {_many(len(found.operators), 'kind')}"
    yield from _part(kinds, [(str(one.count), one.name) for one in found.operators], right=True)
    yield from _part("by line of source", [(line.line, _listed(line.operators)) for line in found.lines])
    total = sum(weight.bytes for weight in found.weights)
    rows = [(human(one.bytes), f"{one.name}  {one.type}{list(one.shape)}") for one in found.weights]
    yield from _part(f"weights: {len(rows)}, {human(total)}", rows, right=True)
    for file in found.data_files:
        yield ((f"  {file.weights} of them in {file.path}: {_where(file.outside, file.bytes)}", ""),)
    if found.control_flow:
        yield ()
        yield (("control flow", "strong"),)
        yield from _control_flow(found.control_flow, 1)
    functions = [(_many(one.calls, "call"), f"{one.name}  {_many(one.nodes, 'node')}") for one in found.functions]
    yield from _part("functions", functions)
    yield from _part("removed by passes", [(str(count), name) for name, count in found.passes.items()], right=True)
    yield from _part("metadata", [(key, "") for key in found.metadata])


def human(size: int) -> str:
    """`1.2 MB`."""
    value, unit = float(size), 0
    while value >= 1000 and unit < len(_UNITS) - 1:
        value, unit = value / 1000, unit + 1
    return f"{size} bytes" if unit == 0 else f"{value:.1f} {_UNITS[unit]}"


def _many(count: int, what: str) -> str:
    return f"{count} {what}{'s' * (count != 1)}"


def _part(title: str, rows: Sequence[tuple[str, str]], right: bool = False) -> Iterator[Line]:
    """A head, and rows of two columns below it; nothing where there is nothing."""
    if not rows:
        return
    yield ()
    yield ((title, "strong"),)
    shown = rows[:MOST]
    width = min(40, max(len(first) for first, _ in shown))
    for first, second in shown:
        yield ((f"  {first.rjust(width) if right else first.ljust(width)}", ""), (f"  {second}", "faint"))
    if len(rows) > MOST:
        yield ((f"  … {len(rows) - MOST} more: --output-format json", "faint"),)


def _port(port: FilePort) -> tuple[str, str]:
    shape = "" if port.shape is None else f"[{', '.join('?' if size is None else str(size) for size in port.shape)}]"
    return port.name, f"{port.type}{shape}"


def _listed(operators: Iterable[OperatorCount]) -> str:
    return ", ".join(one.name if one.count == 1 else f"{one.count} {one.name}" for one in operators)


def _where(outside: bool, size: int | None) -> str:
    if outside:
        return "outside of the model's folder; no runtime should follow that"
    return "which is not there" if size is None else human(size)


def _control_flow(nodes: Iterable[SubgraphNode], depth: int) -> Iterator[Line]:
    for node in nodes:
        place = "  ".join(part for part in (node.line, node.module) if part)
        yield (("  " * depth + node.operator, ""), (f"  {place or node.name}", "faint"))
        for body in node.bodies:
            yield (("  " * (depth + 1) + f"{body.name}: {_many(body.nodes, 'node')}", ""),)
            yield from _control_flow(body.control_flow, depth + 2)
