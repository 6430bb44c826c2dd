"""What kind of operator a call is: how its operands are drawn, which of its sizes may be others, how exact it is.

Everything here is by the operator's name in ATen and the names of its arguments. An operator that is in no list is run
with the sizes of the model on moderate values, and compared as something that rounds.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Any

import torch

from trueport.graph.regions import Node, Value
from trueport.torch_internals import OpOverload
from trueport.torch_internals.schemas import arguments_of


class OperatorKind(Enum):
    """What is done to the elements."""

    POINTWISE = "each by itself"
    ALONG = "along an axis"  # reductions, running totals, orders, softmax
    MOVING = "moved"
    PRODUCT = "multiplied and summed"
    OTHER = "otherwise"


class Exactness(Enum):
    """What the two may differ by."""

    EXACT = "not at all"
    ARITHMETIC = "the last digits of the result"
    SUMS = "the last digits of the sum of magnitudes"
    SMOOTH = "what the dtype allows"


def names(text: str) -> frozenset[str]:
    return frozenset(text.split())


_POINTWISE = names(
    "floor_divide _to_copy to clone contiguous alias detach lift_fresh_copy type_as fill masked_fill where pow "
    "float_power isclose dropout alpha_dropout feature_dropout relu relu6 prelu _prelu_kernel hardtanh threshold "
    "gelu silu mish selu celu elu leaky_relu hardswish hardsigmoid softplus softshrink hardshrink tanhshrink "
    "softsign logsigmoid log_sigmoid square rsub true_divide divide multiply subtract clip nan_to_num logit "
    "xlogy special_xlog1py frac ldexp __and__ __or__ __xor__ __lshift__ __rshift__ bitwise_left_shift "
    "bitwise_right_shift greater greater_equal less less_equal not_equal isreal isfinite isinf isnan isposinf "
    "isneginf rrelu zeros_like ones_like full_like"
)
"""Those that torch does not tag as pointwise, too."""
_ALONG = names(
    "sum mean prod amax amin aminmax max min argmax argmin any all var std var_mean std_mean cumsum cumprod "
    "cummax cummin logcumsumexp logsumexp softmax _softmax log_softmax _log_softmax _safe_softmax norm "
    "linalg_vector_norm median nanmedian sort argsort msort topk kthvalue mode nansum nanmean count_nonzero "
    "softmin"
)
_MOVING = names(
    "view reshape _unsafe_view _reshape_copy view_as reshape_as flatten unflatten transpose t permute movedim "
    "swapaxes swapdims unsqueeze squeeze expand expand_as broadcast_to slice select narrow cat concat "
    "concatenate stack hstack vstack dstack split split_with_sizes chunk unbind tensor_split flip fliplr flipud "
    "roll rot90 repeat tile pad constant_pad_nd reflection_pad1d reflection_pad2d reflection_pad3d "
    "replication_pad1d replication_pad2d replication_pad3d _pad_circular index_select gather scatter index "
    "index_put _unsafe_index _unsafe_index_put index_copy index_fill masked_scatter masked_select embedding take "
    "take_along_dim put unfold tril triu diagonal diag_embed diag diagonal_copy diagonal_scatter select_scatter "
    "slice_scatter as_strided pixel_shuffle pixel_unshuffle channel_shuffle im2col nonzero argwhere meshgrid "
    "cartesian_prod block_diag atleast_1d atleast_2d atleast_3d ravel repeat_interleave one_hot "
    "unique_consecutive unique_dim _unique2 split_copy unbind_copy scalar_tensor full zeros ones new_zeros "
    "new_ones new_full arange nonzero_static where _local_scalar_dense item combinations tril_indices "
    "triu_indices expand_copy squeeze_copy unsqueeze_copy permute_copy transpose_copy t_copy view_copy "
    "slice_copy select_copy alias_copy upsample_nearest1d upsample_nearest2d upsample_nearest3d "
    "_upsample_nearest_exact1d _upsample_nearest_exact2d _upsample_nearest_exact3d max_pool1d max_pool2d "
    "max_pool3d max_pool1d_with_indices max_pool2d_with_indices max_pool3d_with_indices adaptive_max_pool1d "
    "adaptive_max_pool2d adaptive_max_pool3d isin bincount searchsorted bucketize"
)
"""What gives elements of its operands, counts them, or says where they are."""
_PRODUCT = names(
    "mm bmm matmul linear addmm addbmm baddbmm addmv mv dot vdot inner outer ger addr einsum tensordot bilinear "
    "convolution _convolution conv1d conv2d conv3d conv_transpose1d conv_transpose2d conv_transpose3d index_add "
    "scatter_add cumulative_trapezoid trapezoid trace avg_pool1d avg_pool2d avg_pool3d adaptive_avg_pool1d "
    "adaptive_avg_pool2d _adaptive_avg_pool2d _adaptive_avg_pool3d adaptive_avg_pool3d chain_matmul kron "
    "diff col2im embedding_bag"
)
_LINEAR_SUMS = _PRODUCT | names("sum mean nansum nanmean cumsum add sub rsub addcmul lerp")
"""Operators whose error is to be held against the same operator on the magnitudes of its operands."""

_EXACT = names(
    "eq ne lt le gt ge greater greater_equal less less_equal not_equal logical_and logical_or logical_not "
    "logical_xor bitwise_and bitwise_or bitwise_not bitwise_xor __and__ __or__ __xor__ __lshift__ __rshift__ "
    "bitwise_left_shift bitwise_right_shift where masked_fill fill maximum minimum fmax fmin clamp clamp_min "
    "clamp_max clip relu relu6 hardtanh threshold sign sgn floor ceil round trunc fix abs absolute neg negative "
    "positive isnan isinf isfinite isposinf isneginf signbit copysign heaviside clone alias detach contiguous "
    "lift_fresh_copy nan_to_num gcd lcm floor_divide zeros_like ones_like full_like dropout _to_copy to type_as "
    "amax amin max min aminmax argmax argmin any all cummax cummin sort argsort msort topk kthvalue mode median "
    "nanmedian count_nonzero hardshrink"
)
_INEXACT_OF_COMPLEX = names("abs absolute sgn")
"""A length is a root, and no change of a sign."""
_ADDING = names("index_put _unsafe_index_put put")
"""Those that move elements, or are told to add them (`accumulate`)."""
_ARITHMETIC = names(
    "mul div square sqrt reciprocal rsqrt true_divide divide multiply fmod remainder leaky_relu prelu "
    "_prelu_kernel frac nextafter ldexp"
)

_FREE_SIZES = names(
    "mm bmm matmul linear addmm addbmm baddbmm addmv mv dot vdot inner outer ger addr embedding gather "
    "index_select transpose t permute movedim swapaxes swapdims unsqueeze squeeze cat concat concatenate stack "
    "flip tril triu scaled_dot_product_attention batch_norm _native_batch_norm_legit_no_training "
    "native_batch_norm cudnn_batch_norm instance_norm atleast_1d atleast_2d atleast_3d ravel flatten "
    "diagonal nonzero argwhere masked_select"
)
"""Besides pointwise operators and those along an axis: none of their arguments is tied to a size of their tensors."""
_ARGUMENT_SIZES = names(
    "layer_norm native_layer_norm rms_norm _fused_rms_norm avg_pool1d avg_pool2d avg_pool3d max_pool1d "
    "max_pool2d max_pool3d max_pool1d_with_indices max_pool2d_with_indices max_pool3d_with_indices select"
)
"""The sizes that stand among their arguments are kept, the others are free."""
_CONVOLUTIONS = names(
    "convolution _convolution conv1d conv2d conv3d conv_transpose1d conv_transpose2d conv_transpose3d"
)

_CONTENT = names("self input tensors src value values other weight tensor exponent zero_point zero_points")
INDICES = names("index indices target")
_PLACES = INDICES | names("offsets")

UNINITIALISED = names("empty empty_like new_empty empty_strided new_empty_strided empty_permuted")
LINEAR_ALGEBRA = names(
    "cholesky cholesky_solve cholesky_inverse lu_solve lu_unpack lu triangular_solve ormqr geqrf qr svd inverse det "
    "logdet slogdet pinverse lstsq orgqr matrix_exp cdist _cdist_forward linalg_matrix_exp ctc_loss _ctc_loss"
)
"""Besides those called `linalg_…`: how exact they can be depends on their operands, and some have several right
answers. The check of the whole model measures it."""
MASKED = names("softmax _softmax log_softmax _log_softmax _safe_softmax logsumexp scaled_dot_product_attention softmin")
"""Operators to which models give masked scores: -1e9, the lowest float or -inf in all of a row is nothing unusual."""
_BETWEEN_PLACES = names("upsample_linear1d upsample_bilinear2d upsample_trilinear3d upsample_bicubic2d")
_ANY_OF_TIES = names("topk kthvalue median nanmedian mode")


@functools.cache
def base_name(op: OpOverload) -> str:
    """`add` of aten::add.Tensor."""
    return str(op.name()).split("::")[-1].split(".")[0]


def is_conditioned(op: OpOverload) -> bool:
    name = base_name(op).lstrip("_")
    free = name in LINEAR_ALGEBRA or name.startswith("linalg_")
    return free and name not in ("linalg_vector_norm", "linalg_cross")


def is_aten(op: OpOverload) -> bool:
    return str(op.name()).startswith(("aten::", "prims::"))


def reads_by_integers(node: Node) -> bool:
    """Whether integers other than its content and its indices tell the call where to read: the `batch_sizes` of a
    packed sequence. Eager does not look whether they are right, so that others may end the user's process."""
    assert isinstance(node.op, OpOverload)
    if kind_of(node.op) is not OperatorKind.OTHER:
        return False
    return any(
        isinstance(item, Value)
        and not (item.dtype.is_floating_point or item.dtype.is_complex)
        and item.dtype is not torch.bool
        for name, content in named_arguments(node).items()
        if name not in _CONTENT | _PLACES
        for item in (content if isinstance(content, tuple | list) else (content,))
    )


@functools.cache
def kind_of(op: OpOverload) -> OperatorKind:
    name = base_name(op)
    if name in _ALONG and not _is_elementwise_overload(op):
        return OperatorKind.ALONG
    if name in _MOVING and name not in _POINTWISE:
        return OperatorKind.MOVING
    if name in _POINTWISE or torch.Tag.pointwise in op.tags or _is_elementwise_overload(op):
        return OperatorKind.POINTWISE
    return OperatorKind.PRODUCT if name in _PRODUCT else OperatorKind.OTHER


def _is_elementwise_overload(op: OpOverload) -> bool:
    """`max(Tensor, Tensor)` is `maximum`."""
    return base_name(op) in ("max", "min") and str(op.name()).endswith(".other")


def exactness_of(node: Node, result: Value) -> Exactness:
    """What the result of a call may be off."""
    assert isinstance(node.op, OpOverload)
    name, kind = base_name(node.op), kind_of(node.op)
    if not result.dtype.is_floating_point and not result.dtype.is_complex:
        return Exactness.EXACT
    if name in ("div", "divide") and (node.kwargs.get("rounding_mode") or len(node.args) > 2):
        return Exactness.EXACT
    if name == "round" and (node.kwargs.get("decimals") or len(node.args) > 1):
        return Exactness.ARITHMETIC
    if name in _ADDING and named_arguments(node).get("accumulate"):
        return Exactness.SUMS
    of_complex = any(isinstance(each, Value) and each.dtype.is_complex for each in named_arguments(node).values())
    if of_complex and name in _INEXACT_OF_COMPLEX:
        return Exactness.SMOOTH
    if name in _EXACT or kind is OperatorKind.MOVING:
        return Exactness.EXACT
    if name in _LINEAR_SUMS:
        return Exactness.SUMS
    if of_complex:  # a product of two is four products and a difference
        return Exactness.SMOOTH
    return Exactness.ARITHMETIC if name in _ARITHMETIC else Exactness.SMOOTH


def kept_sizes(node: Node, operands: Mapping[str, Any]) -> frozenset[int] | None:
    """The sizes of the tensors that cannot be others without changing the call; None: none of them can."""
    assert isinstance(node.op, OpOverload)
    name, kind = base_name(node.op), kind_of(node.op)
    if kind in (OperatorKind.POINTWISE, OperatorKind.ALONG) or name in _FREE_SIZES:
        return frozenset()
    if name in _ARGUMENT_SIZES:
        return frozenset(_integers((node.args, tuple(node.kwargs.values()))))
    if name in _CONVOLUTIONS:
        weight = operands.get("weight")
        if not isinstance(weight, Value):
            return None
        kept = {size for size in weight.shape[2:] if isinstance(size, int)}
        if operands.get("groups", 1) != 1:
            given = operands.get("input")
            channels = (
                *weight.shape[:2],
                *(given.shape[-len(weight.shape) + 1 :][:1] if isinstance(given, Value) else ()),
            )
            kept |= {size for size in channels if isinstance(size, int)}
        return frozenset(kept)
    return None


def is_spatial(node: Node) -> bool:
    assert isinstance(node.op, OpOverload)
    return base_name(node.op) in _CONVOLUTIONS or "pool" in base_name(node.op)


def _integers(argument: Any) -> set[int]:
    if isinstance(argument, tuple | list):
        return {number for item in argument for number in _integers(item)}
    return {argument} if isinstance(argument, int) and not isinstance(argument, bool) else set()


def named_arguments(node: Node) -> dict[str, Any]:
    """The arguments of a call by their names in the schema; what was not given has its default."""
    assert isinstance(node.op, OpOverload)
    found: dict[str, Any] = {}
    for at, each in enumerate(arguments_of(node.op)):
        if at < len(node.args):
            found[each.name] = node.args[at]
        elif each.name in node.kwargs:
            found[each.name] = node.kwargs[each.name]
        elif each.has_default:
            found[each.name] = each.default
    return found


def gives_any_of_ties(node: Node, at: int) -> bool:
    """Whether a result is an index of which torch does not say whose it is where several values are equal."""
    assert isinstance(node.op, OpOverload)
    name = base_name(node.op)
    if name in ("sort", "argsort"):
        return at == (1 if name == "sort" else 0) and not named_arguments(node).get("stable")
    return at == 1 and name in _ANY_OF_TIES


def position_error(node: Node, operands: Sequence[torch.Tensor]) -> float:
    """How far a result may be off because both sides round the places between which they read: a place among n has
    its last digits n times as far apart, and the result moves by that part of what its neighbours are apart."""
    assert isinstance(node.op, OpOverload)
    image = operands[0] if operands and base_name(node.op) in _BETWEEN_PLACES else None
    if image is None or not image.is_floating_point() or not image.numel():
        return 0.0
    heights = image.abs()[image.isfinite()]
    highest = float(heights.max()) if heights.numel() else 0.0
    return 4 * torch.finfo(image.dtype).eps * max(image.shape[2:], default=1) * highest


def axis_in_any_order(node: Node) -> int | None:
    """The axis along which torch leaves the order of a result open: `topk(sorted=False)`."""
    assert isinstance(node.op, OpOverload)
    given = named_arguments(node) if base_name(node.op) == "topk" else {}
    return None if given.get("sorted", True) else int(given.get("dim", -1))


def draws_random(node: Node) -> bool:
    """Whether the call throws dice. Dropout does not, outside training."""
    assert isinstance(node.op, OpOverload)
    if torch.Tag.nondeterministic_seeded not in node.op.tags:
        return False
    given = named_arguments(node)
    if "train" in given or "training" in given:
        return bool(given.get("train", given.get("training")))
    return bool(given.get("dropout_p", 1.0) != 0.0)
