"""What numpy calls by another name than torch, and what both call alike."""

from __future__ import annotations

_ALIKE = (
    "abs absolute add all any arange arccos arccosh arcsin arcsinh arctan arctan2 arctanh argmax argmin argsort "
    "broadcast_to ceil clip column_stack cos cosh cumprod cumsum deg2rad diag diff divide dot einsum empty_like equal "
    "exp exp2 expm1 eye flip fliplr flipud floor floor_divide fmax fmin fmod full full_like gradient greater "
    "greater_equal hstack hypot inner isclose isfinite isinf isnan kron less less_equal linalg.det linalg.inv "
    "linalg.norm linalg.solve linspace log log10 log1p log2 logaddexp logical_and logical_not logical_or logical_xor "
    "matmul maximum mean meshgrid minimum multiply nanmean nansum negative not_equal ones ones_like outer prod rad2deg "
    "ravel reciprocal remainder reshape roll rot90 round sign sin sinh split sqrt square squeeze stack subtract sum "
    "take tan tanh tensordot tile trace tril triu true_divide trunc unique vstack where zeros zeros_like fft.fft "
    "fft.ifft fft.rfft fft.irfft"
).split()

FUNCTIONS: dict[str, tuple[str, str]] = {name: (name, "") for name in _ALIKE} | {
    "concatenate": ("cat", ""),
    "power": ("pow", ""),
    "amax": ("amax", ""),
    "amin": ("amin", ""),
    "max": ("amax", ""),
    "min": ("amin", ""),
    "sort": ("sort", ".values"),
    "expand_dims": ("unsqueeze", ""),
    "swapaxes": ("transpose", ""),
    "transpose": ("permute", ""),
    "nan_to_num": ("nan_to_num", ""),
    "ascontiguousarray": ("clone", ""),
    "copy": ("clone", ""),
    "invert": ("bitwise_not", ""),
}
"""numpy's function, torch's, and what follows the call. What differs in more than the name is not here: `median`
averages the two middle ones in numpy, and `std` divides by another count."""

ARRAY = frozenset({"array", "asarray", "asanyarray"})
"""Make an array of what is one already."""

DTYPES = {name: name for name in "float16 float32 float64 int8 int16 int32 int64 uint8".split()} | {
    "bool_": "bool",
    "double": "float64",
    "single": "float32",
    "half": "float16",
}
CONSTANTS = frozenset({"pi", "e", "inf", "nan", "newaxis", "ndarray", "euler_gamma"})
"""Plain numbers and names, which torch takes as well."""
KEYWORDS = {"axis": "dim", "keepdims": "keepdim"}
