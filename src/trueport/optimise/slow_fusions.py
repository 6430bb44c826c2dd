"""What a runtime would join at load, and is slower for it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import onnx_ir as ir

from trueport.optimise.base import NodeByNode, Rule
from trueport.optimise.edits import become, maker, rank_of


class SlowFusions(NodeByNode):
    """Keeps apart what ONNX Runtime joins to something slower.

    1. `Add` that only a `LayerNormalization` reads. ONNX Runtime makes a `SkipLayerNormalization` of both, whose kernel
       on the CPU takes eight times as long as the two (1.31: 370 against 47 us for 128 rows of 768). As a `Sum` of two
       things, which is the same number to the last bit, the `Add` is not seen.
    2. The same before a norm that is written by its definition, as before opset 17: a `Sub` of the mean.

    Only what that fusion takes: three axes, single precision, no other reader. It is a matter of time only. Who runs
    the file on a GPU, where the joined kernel is the quicker one, leaves this pass out.
    """

    name: ClassVar[str] = "slow_fusions"

    @property
    def rules(self) -> Mapping[str, Rule]:
        return {"Add": self._add}

    def _add(self, node: ir.Node) -> bool:
        out = node.outputs[0]
        dtype = next((x.dtype for x in (out, *node.inputs) if x is not None and x.dtype is not None), None)
        if dtype != ir.DataType.FLOAT or 3 not in map(rank_of, (out, *node.inputs)) or out.is_graph_output():
            return False
        readers = [reader for reader, _ in out.uses()]
        kinds = sorted(reader.op_type for reader in readers if not reader.domain)
        if kinds == ["LayerNormalization"]:  # case 1
            return readers[0].inputs[0] is out and become(node, "Sum", node.inputs)
        if kinds != ["ReduceMean", "Sub"] or len(readers) > len(kinds):
            return False
        less = next(reader for reader in readers if reader.op_type == "Sub")
        mean = maker(less.inputs[1], "ReduceMean")  # case 2
        return less.inputs[0] is out and mean is not None and mean.inputs[0] is out and become(node, "Sum", node.inputs)
