"""Scaled dot-product attention, as eager computes it."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import onnx_ir as ir

from trueport.graph.regions import Size
from trueport.lower.builder import Builder
from trueport.lower.forms import reshaped
from trueport.lower.ops.linalg.products import product_apart
from trueport.lower.ops.random import dropout
from trueport.lower.table import op
from trueport.lower.tensor import Operand, Tensor

BOOL = ir.DataType.BOOL
_ONE_OPERATOR_SINCE = 23


@op("aten::scaled_dot_product_attention")
def attention(
    op: Builder,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    *,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Tensor:
    """scaled_dot_product_attention(Tensor query, Tensor key, Tensor value, Tensor? attn_mask=None, float dropout_p=0.0,
    bool is_causal=False, *, float? scale=None, bool enable_gqa=False) -> Tensor

    A query that every key is masked for gives zeros, in eager: softmax alone would give NaN. ONNX's own operator takes
    nothing empty, which what is selected by values may well be.

    Where heads of keys and values serve several heads of queries each, those queries are rows of one product: keys and
    values are as large as a cache, and are not repeated, also where the user did (`repeat_kv`).
    """
    if not enable_gqa and (shared := _before_repeating(key, value)) is not None:
        (key, value), enable_gqa = shared, True
    given = op.sizes.is_given((*query.known_sizes, *key.known_sizes))
    if op.opset >= _ONE_OPERATOR_SINCE and query.rank == 4 and not dropout_p and given:
        mask = None if attn_mask is None else _for_each_query(op, attn_mask, query, key)
        return op.Attention(query, key, value, mask, is_causal=int(is_causal), scale=scale)
    if query.dtype == ir.DataType.BFLOAT16:
        # Eager rounds the result and nothing before it: scores are too large for numbers of eight bits.
        wide_query, wide_key, wide_value = (op.cast(each, ir.DataType.FLOAT) for each in (query, key, value))
        mask = attn_mask if attn_mask is None or attn_mask.dtype == BOOL else op.cast(attn_mask, ir.DataType.FLOAT)
        out = attention(
            op, wide_query, wide_key, wide_value, mask, dropout_p, is_causal, scale=scale, enable_gqa=enable_gqa
        )
        return op.cast(out, query.element)
    rows = query.known_sizes[:-1]
    grouped = _grouped(rows, key) if enable_gqa else rows
    factor, asked = _factor(op, query, scale), query
    query = op.reshape(query, (*grouped, query.known_sizes[-1]))
    rank, keys = key.rank, key
    scaled = op.Mul(query, factor)
    scaled.settle(query.known_sizes)
    if not op.sizes.is_positive(query.known_sizes[-1]):
        # Where ONNX Runtime turns and multiplies at once, a product over nothing is whatever the memory held.
        scaled = op.Pad(scaled, op.ints(*[0] * (2 * query.rank - 1), 1))
        keys = op.Pad(key, op.ints(*[0] * (2 * rank - 1), 1))
    turned = op.transpose(keys, [*range(rank - 2), rank - 1, rank - 2])
    turned.settle((*key.known_sizes[:-2], key.known_sizes[-1], key.known_sizes[-2]) if keys is key else None)
    scores = product_apart(op, scaled, turned)
    looked = (*grouped, key.known_sizes[-2])
    times = 1
    if attn_mask is not None or is_causal:  # which speak of each query
        scores.settle(looked)
        if grouped == rows or not _is_for_all_heads(attn_mask, asked, key):
            looked = (*rows, key.known_sizes[-2])
            scores = op.reshape(scores, looked)
        else:
            times = asked.known_sizes[-3] // key.known_sizes[-3]
    if is_causal:
        scores = op.Add(scores, _for_each_row(op, _causal(op, asked, key), asked.known_sizes[-2], times))
    if attn_mask is not None:
        bias = _bias(op, attn_mask, query.element)
        scores = op.Add(scores, _for_each_row(op, bias, attn_mask.known_sizes[-2], times))
    weights = op.Softmax(scores, axis=-1)
    if attn_mask is not None:
        masked = _for_each_row(op, _all_masked(op, attn_mask, query.element), attn_mask.known_sizes[-2], times)
        weights = op.Where(masked, op.const(0, query.element), weights)
    weights.settle(looked)
    if dropout_p > 0:
        weights = dropout(op, weights, dropout_p, True)
        weights.settle(looked)
    if grouped == rows:
        return product_apart(op, weights, value)
    found = product_apart(op, op.reshape(weights, (*grouped, key.known_sizes[-2])), value)
    found.settle((*grouped, value.known_sizes[-1]))
    return op.reshape(found, (*rows, value.known_sizes[-1]))


def _factor(op: Builder, query: Tensor, scale: float | None) -> Operand:
    """What queries are multiplied by: one over the root of their width, unless it is given.

    ONNX Runtime makes a single factor an attribute of the product, in single precision; one per column stays.
    """
    width = query.known_sizes[-1]
    if scale is None:
        if not isinstance(width, int):
            return op.cast(op.Reciprocal(op.Sqrt(op.cast(op.sizes.length(width), ir.DataType.DOUBLE))), query.element)
        scale = 1 / math.sqrt(width) if width else math.inf
    if query.element != ir.DataType.DOUBLE or not isinstance(width, int) or width == 1:
        return scale
    return op.const(np.full(width, scale), ir.DataType.DOUBLE)


def _grouped(rows: tuple[Size, ...], shared: Tensor) -> tuple[Size, ...]:
    """Batch, heads and queries, with all queries of one head of keys together. Their heads stand side by side."""
    *lead, heads, queries = rows
    serving = shared.known_sizes[-3]
    times = heads // serving
    return rows if times == 1 else (*lead, serving, times * queries)


def _is_for_all_heads(mask: Tensor | None, query: Tensor, key: Tensor) -> bool:
    """Whether a mask says the same for all heads, so that it can be repeated for those whose queries are rows of one
    product. With a single head of keys it would be as large as all scores are."""
    if key.known_sizes[-3] == 1:
        return False
    if mask is None:
        return True
    *lead, queries, _ = (1, 1, *mask.known_sizes) if mask.rank < 3 else mask.known_sizes
    return lead[-1] == 1 and queries in (1, query.known_sizes[-2])


def _for_each_row(op: Builder, mask: Tensor, queries: Size, times: int) -> Tensor:
    """A mask for the queries of several heads, one head behind the other. One that speaks of no query fits as it is."""
    if times == 1 or queries == 1:
        return mask
    return op.shared("mask of rows", mask.name, times, make=lambda: op.Concat(*[mask] * times, axis=-2))


def _before_repeating(*repeated: Tensor) -> tuple[Tensor, ...] | None:
    """Keys and values before each head of theirs was repeated for the queries that it serves: given an axis behind the
    heads, broadcast along it, and taken together with the heads. None unless all were, and alike."""
    found = []
    for x in repeated:
        wide = reshaped(x)
        broadcast = None if wide is None else wide.producer()
        thin = broadcast.inputs[0] if broadcast is not None and broadcast.op_type == "Expand" else None
        given = None if thin is None else thin.producer()
        before = given.inputs[0] if given is not None and given.op_type == "Unsqueeze" else None
        if not all(isinstance(each, Tensor) and each.sizes is not None for each in (x, wide, thin, before)):
            return None
        assert isinstance(wide, Tensor) and isinstance(thin, Tensor) and isinstance(before, Tensor)
        if before.rank != 4 or wide.rank != 5:
            return None
        batch, heads, length, width = before.known_sizes
        times = wide.known_sizes[2]
        if not (isinstance(heads, int) and isinstance(times, int)):
            return None
        if (thin.sizes, wide.sizes, x.sizes) != (
            (batch, heads, 1, length, width),
            (batch, heads, times, length, width),
            (batch, heads * times, length, width),
        ):
            return None
        found.append(before)
    return tuple(found) if len({each.known_sizes[1] for each in found}) == 1 else None


def _for_each_query(op: Builder, mask: Tensor, query: Tensor, key: Tensor) -> Tensor:
    """A mask that speaks of each query and each key. ONNX lets both broadcast (`[batch, 1, 1, keys]`, as models for
    padded text have it); the kernel of ONNX Runtime lets batch and heads only."""
    *lead, queries, keys = mask.known_sizes
    queries, keys = (y.known_sizes[-2] if size == 1 else size for size, y in ((queries, query), (keys, key)))
    sizes = (*lead, queries, keys)  # a free size of the mask is that of the queries or keys, or eager would refuse it
    return op.shared("mask of queries and keys", mask.name, sizes, make=lambda: op.expand(mask, sizes))


def _causal(op: Builder, query: Tensor, key: Tensor) -> Tensor:
    """-inf above the diagonal that starts at the first query and the first key."""
    rows, columns = query.known_sizes[-2], key.known_sizes[-2]

    def make() -> Tensor:
        later = op.Less(op.Unsqueeze(op.range(rows), op.ints(1)), op.range(columns))
        return op.Where(later, op.const(-math.inf, query.element), op.const(0, query.element))

    return op.shared("causal", rows, columns, query.dtype, make=make)


def _bias(op: Builder, mask: Tensor, dtype: ir.DataType) -> Tensor:
    """A mask of truth says where to look; any other is added as it is."""
    if mask.dtype != BOOL:
        return op.cast(mask, dtype)
    look, away = op.const(0, dtype), op.const(-math.inf, dtype)
    return op.shared("attention bias", mask.name, dtype, make=lambda: op.Where(mask, look, away))


def _all_masked(op: Builder, mask: Tensor, dtype: ir.DataType) -> Tensor:
    def make() -> Tensor:
        top = op.ReduceMax(_bias(op, mask, dtype), op.ints(mask.rank - 1), keepdims=1)
        return op.IsInf(top, detect_positive=0)

    return op.shared("all masked", mask.name, dtype, make=make)


@op("aten::_scaled_dot_product_flash_attention_for_cpu")
def flash_attention(
    op: Builder,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    *,
    attn_mask: Tensor | None = None,
    scale: float | None = None,
) -> Sequence[Tensor | None]:
    """_scaled_dot_product_flash_attention_for_cpu(Tensor query, Tensor key, Tensor value, float dropout_p=0.0,
    bool is_causal=False, *, Tensor? attn_mask=None, float? scale=None) -> (Tensor output, Tensor logsumexp)"""
    return attention(op, query, key, value, attn_mask, dropout_p, is_causal, scale=scale), None


@op("aten::_scaled_dot_product_attention_math")
def attention_math(
    op: Builder,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    dropout_mask: Tensor | None = None,
    *,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Sequence[Tensor | None]:
    """_scaled_dot_product_attention_math(Tensor query, Tensor key, Tensor value, Tensor? attn_mask=None,
    float dropout_p=0.0, bool is_causal=False, Tensor? dropout_mask=None, *, float? scale=None,
    bool enable_gqa=False) -> (Tensor, Tensor)"""
    out = attention(op, query, key, value, attn_mask, dropout_p, is_causal, scale=scale, enable_gqa=enable_gqa)
    return out, None
