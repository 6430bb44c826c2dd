"""Two arms that leave a name with two dtypes."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from trueport.diagnostics.base import Label
from trueport.fix.base import Fix
from trueport.fix.case import Case, Proposal
from trueport.fix.edit import Edit
from trueport.fix.syntax import atom, imported_as

_ORDER = "bool uint8 int8 int16 int32 int64 bfloat16 float16 float32 float64".split()


class ArmsCast(Fix):
    """`y = x.long()` in one arm and `y = x` in the other: the narrower of the two gets `.to(torch.float32)`.

    A value of a graph has one dtype, whichever arm ran. So in one of the arms the dtype changes, towards the one that
    holds the values of both; the numbers stay.
    """

    codes = ("TP103",)

    def proposals(self, case: Case) -> Iterator[Proposal]:
        torch = imported_as(case.source, "torch")
        arms = [(label, _dtype(label)) for label in case.found.also]
        dtypes = {dtype for _, dtype in arms}
        if not torch or len(arms) != 2 or len(dtypes) != 2 or not dtypes <= set(_ORDER):
            return
        wide = max(dtypes, key=_ORDER.index)
        narrow = next(label for label, dtype in arms if dtype != wide)
        edit = _cast(case, narrow, f".to({torch}.{wide})")
        if edit is not None:
            yield Proposal(
                f"give both arms one dtype: .to({torch}.{wide})",
                (edit,),
                changes=f"where this arm runs, the result is {wide}",
            )


def _dtype(label: Label) -> str:
    found = re.search(r"tensor of (\w+)", label.text)
    return found[1] if found else ""


def _cast(case: Case, label: Label, cast: str) -> Edit | None:
    for node in ast.walk(case.source.tree):
        if isinstance(node, ast.Assign | ast.Return) and node.lineno == label.where.line and node.value is not None:
            return case.source.replace(node.value, f"{atom(case.source, node.value)}{cast}")
    return None
