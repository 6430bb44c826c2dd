"""Operators by what they are for."""

from __future__ import annotations

from benchmarks.ops.samples import database

_BY_WORD = (
    ("conv", "convolutions"),
    ("pool", "pools"),
    ("loss", "losses"),
    ("cross_entropy", "losses"),
    ("norm", "normalisations"),
    ("pad", "resizing, padding, sampling"),
    ("interpolate", "resizing, padding, sampling"),
    ("upsample", "resizing, padding, sampling"),
    ("grid_sample", "resizing, padding, sampling"),
    ("embedding", "embeddings and attention"),
    ("attention", "embeddings and attention"),
)
_BY_PREFIX = (
    ("linalg.", "linear algebra"),
    ("fft.", "Fourier transforms"),
    ("special.", "special functions"),
    ("masked.", "masked reductions"),
    ("signal.windows", "windows"),
)
_BY_CLASS = {
    "UnaryUfuncInfo": "elementwise, of one tensor",
    "BinaryUfuncInfo": "elementwise, of several tensors",
    "ReductionOpInfo": "reductions",
    "SpectralFuncInfo": "Fourier transforms",
    "ShapeFuncInfo": "shapes and joining",
    "ForeachFuncInfo": "lists of tensors",
}
_LINEAR_ALGEBRA = frozenset(
    "addbmm addmm addmv addr baddbmm bmm cdist cholesky cholesky_inverse cholesky_solve cov corrcoef dot einsum geqrf "
    "inner logdet lu lu_solve lu_unpack matmul mm mv ormqr outer pca_lowrank pinverse qr svd svd_lowrank tensordot "
    "triangular_solve vdot __rmatmul__".split()
)
_INDEXING = frozenset(
    "gather scatter scatter_add scatter_reduce index_add index_copy index_fill index_put index_reduce index_select "
    "masked_fill masked_scatter masked_select put select select_scatter slice slice_scatter take take_along_dim "
    "nonzero nonzero_static argwhere where __getitem__ diagonal_scatter as_strided_scatter".split()
)
_ORDER = frozenset(
    "sort argsort msort topk kthvalue median nanmedian mode quantile nanquantile unique unique_consecutive bucketize "
    "searchsorted isin histc histogram histogramdd bincount cummax cummin cumsum cumprod logcumsumexp "
    "cumulative_trapezoid".split()
)


def family_of(name: str) -> str:
    """The family that docs/operators.md counts an operator in."""
    base = name.split("/")[0]
    for prefix, family in _BY_PREFIX:
        if base.startswith(prefix):
            return family
    if base in _LINEAR_ALGEBRA:
        return "linear algebra"
    if base in _INDEXING:
        return "indexing"
    if base in _ORDER:
        return "order and running totals"
    if base.startswith("nn.functional."):
        for word, family in _BY_WORD:
            if word in base:
                return family
    kind = type(database()[name]).__name__
    if base.startswith("nn.functional."):
        return "activations and other layers"
    return _BY_CLASS.get(kind, "shapes, making tensors, others")
