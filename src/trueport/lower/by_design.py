"""Where an exported model knowingly gives something else than eager, and why it stays so.

Each is a choice: the right answer would cost more than it is worth, or eager's own answer is an accident of its
kernels. `docs/operators.md` shows this list; whoever compares calls at the edges can look an operator up here.
"""

from __future__ import annotations

from dataclasses import dataclass

NAN, INFINITY, ZERO_SIGN, OVERFLOW, TINY, TIES, OUT_OF_RANGE, MEMORY = (
    "NaN",
    "infinity",
    "sign of zero",
    "overflow on the way",
    "tiny results",
    "equal values",
    "out of range",
    "layout in memory",
)
"""Kinds of operands."""


@dataclass(frozen=True, slots=True)
class ByDesign:
    """One difference: of these operators, on such operands."""

    operators: tuple[str, ...]
    """Names of ATen operators, without overloads."""
    operands: str
    differs: str
    why: str


_POOLS = ("max_pool1d", "max_pool2d", "max_pool3d", "adaptive_max_pool1d", "adaptive_max_pool2d", "adaptive_max_pool3d")

BY_DESIGN: tuple[ByDesign, ...] = (
    ByDesign(
        ("amax", "amin", "aminmax", "max", "min", "argmax", "argmin", "linalg_vector_norm"),
        NAN,
        "eager gives NaN and its place; ONNX Runtime passes over it. So it is where NaN only comes from the input; "
        "where the model may make it itself (log, sqrt, a quotient, what a loop carries) it is looked for (nan.py)",
        "a check reads everything again: a maximum took 3 to 6 times as long (0.14 and 0.83 ms on 2 million floats), "
        "argmax 1.6 to 5 times",
    ),
    ByDesign(
        _POOLS,
        NAN,
        "eager gives NaN; ONNX Runtime passes over it",
        "a right one took 3 to 4.5 times as long in 2-d (with an average of absolute values beside it), 1.4 to 3.7 "
        "times in 1-d (as a maximum of slices), and a pool between convolutions could not be fused any more",
    ),
    ByDesign(
        _POOLS,
        INFINITY,
        "a window of nothing but -inf gives the lowest finite number",
        "as above; and that number itself cannot be told from -inf afterwards",
    ),
    ByDesign(
        ("scatter_reduce", "index_reduce", "embedding_bag", "mode"),
        NAN,
        "the largest or smallest passes over NaN, or depends on its place",
        "ONNX's ScatterElements compares so; a second scatter of marks would double it",
    ),
    ByDesign(
        ("sigmoid", "silu", "glu", "lstm", "gru"),
        TINY,
        "float32 below about -16 gives 0, where eager gives 1e-7 and less; the error is below 2e-7",
        "ONNX Runtime's kernel cuts its argument off; 1 / (1 + exp(-x)) is four nodes in the hottest of gates. For a "
        "logarithm, write logsigmoid",
    ),
    ByDesign(
        ("where", "masked_fill", "clamp", "maximum", "minimum", "floor_divide", "log1p", "selu", "celu"),
        ZERO_SIGN,
        "0.0 where eager gives -0.0, or the other way",
        "ONNX Runtime's Where, Max and Min do not keep the sign of a zero",
    ),
    ByDesign(
        ("addcmul", "add", "sub", "rsub", "hardswish", "lerp", "var", "std", "native_layer_norm"),
        OVERFLOW,
        "one of them overflows near the largest number, and the other does not; last digits after cancellation",
        "eager multiplies and adds in one rounding (fma) on some processors, ONNX in two; the variance is computed "
        "from the mean here, by a running update there",
    ),
    ByDesign(
        ("fmod", "remainder"),
        OVERFLOW,
        "eager gives NaN where the quotient itself overflows; ONNX the exact remainder",
        "an accident of eager's vector code: of few elements eager gives the remainder, too",
    ),
    ByDesign(
        ("cosh", "sinh", "i0", "special_i1", "special_modified_bessel_i0", "special_modified_bessel_i1"),
        OVERFLOW,
        "float32 and integers: where the exponential overflows (from 88.73 on) eager may be infinite, though the "
        "result is still a number; ONNX gives the number",
        "eager multiplies by that exponential, for hyperbolic functions where there are many elements",
    ),
    ByDesign(
        ("upsample_nearest2d",),
        MEMORY,
        "by a scale of 1 to 3 that leaves an axis as long as it was, or doubles it: images of more than 128 rows and "
        "columns together, with their channels in the last place and more than three of them, are sampled as eager "
        "samples others",
        "eager has two kernels that differ there; ONNX has no layouts by which to choose",
    ),
    ByDesign(
        ("div", "floor_divide"),
        MEMORY,
        "half precision, rounded down or towards zero, by a tensor whose only element is one when the model runs: the "
        "last digit",
        "by one number eager rounds at the end, by a tensor at every step; a free size is taken for a tensor",
    ),
    ByDesign(
        ("_to_copy", "to"),
        OUT_OF_RANGE,
        "a float that is too large for the integer dtype, or NaN",
        "C++ leaves the conversion undefined; it depends on dtypes and processor in eager, too",
    ),
    ByDesign(
        ("sort", "topk", "argsort", "kthvalue", "median"),
        INFINITY,
        "in float64 an infinity counts as equal to the largest number, where a row has both",
        "NaN is put in order above infinity, and float64 has no number between",
    ),
    ByDesign(
        ("topk",),
        TIES,
        "of equal values the first are taken",
        "eager takes any: its order of equals is not documented, and changes with the number of elements",
    ),
    ByDesign(
        ("pow", "ldexp", "gelu"),
        INFINITY,
        "float16: pow(-inf, 0.5) is NaN, in eager inf; bfloat16: gelu(inf) is inf, in eager NaN",
        "accidents of eager's kernels for narrow floats; ONNX Runtime computes float16 in float32 on the CPU",
    ),
)
