"""Operators that trust the indices that they are given.

Eager checks most indices, and refuses those that are none. A few operators do not: given a label beyond the alphabet,
or a pivot beyond the matrix, they read memory that is not the tensor's, and what they answer is nobody's business. An
input on which one of them would is none that eager accepts; it is seen by running the captured graph first.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch

from trueport.graph.regions import Graph, Node
from trueport.verify.judging.reference import RunEager
from trueport.verify.replay import Replay

aten = torch.ops.aten


class ReadsBeyond(IndexError):
    """Eager would read beyond the end of a tensor, without a word."""


def with_indices_checked(
    run_eager: RunEager, graph: Graph, by_name: Callable[[Sequence[object]], Mapping[str, Any]]
) -> RunEager:
    """Eager, which refuses inputs on which it would read beyond a tensor."""
    if not any(node.op in _CONTRACTS for node in graph.root.walk()):
        return run_eager

    def run(values: Sequence[object]) -> object:
        try:
            _Careful().run(graph, by_name(values))
        except ReadsBeyond:
            raise
        except Exception:  # noqa: BLE001  the graph need not run where eager does: then eager's word counts
            pass
        return run_eager(values)

    return run


class _Careful(Replay):
    def node(self, node: Node) -> Sequence[Any]:
        keeps = _CONTRACTS.get(node.op)
        if keeps is not None and not keeps(*self.read(node.args), **{k: self.read(v) for k, v in node.kwargs.items()}):
            raise ReadsBeyond(f"{node.op} would read beyond the end")
        return super().node(node)


def _ctc_loss(log_probs: torch.Tensor, targets: torch.Tensor, _: Any, lengths: Any, *_options: Any) -> bool:
    """The labels that count are of the alphabet."""
    counted = torch.as_tensor(lengths).reshape(-1)
    if targets.dim() == 2:
        used = targets[torch.arange(targets.shape[1]) < counted.unsqueeze(1)]
    else:
        used = targets[: int(counted.sum())]
    return _all_within(used, 0, log_probs.shape[-1] - 1)


def _lu_unpack(lu: torch.Tensor, pivots: torch.Tensor, *_options: Any) -> bool:
    return pivots.shape[-1] == min(lu.shape[-2:]) and _all_within(pivots, 1, lu.shape[-2])


def _lu_solve(lu: torch.Tensor, pivots: torch.Tensor, *_others: Any, **_options: Any) -> bool:
    return _all_within(pivots, 1, lu.shape[-1])


def _all_within(indices: torch.Tensor, first: int, last: int) -> bool:
    return bool(((indices >= first) & (indices <= last)).all())


_CONTRACTS: dict[Any, Callable[..., bool]] = {
    aten._ctc_loss.default: _ctc_loss,
    aten._ctc_loss.Tensor: _ctc_loss,
    aten.lu_unpack.default: _lu_unpack,
    aten.linalg_lu_solve.default: _lu_solve,
}
"""Whether an operator stays within its tensors, by operator."""
