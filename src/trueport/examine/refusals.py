"""Why eager refused: torch's message, with the module, the sizes and the dtypes that it leaves out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch

from trueport.diagnostics.rules.tp002_eager_refuses import EagerRefuses
from trueport.diagnostics.spelling import Option, told
from trueport.examine.places import running_module, user_place
from trueport.load.job import Job
from trueport.torch_internals import messages

_LONGEST = 300


@dataclass(frozen=True)
class _Failure:
    """What is known about the call that raised."""

    job: Job
    text: str
    path: str
    module: torch.nn.Module | None
    given: tuple[torch.Tensor, ...]

    @property
    def name(self) -> str:
        """The module as the user would point at it: `fc1`, or the model itself."""
        kind = type(self.module).__name__
        return f"{self.path} ({kind})" if self.path else f"the model ({kind})"

    def input_with(self, tensor: torch.Tensor) -> str | None:
        """The example input that this tensor most likely is."""
        for leaf in self.job.inputs:
            value = leaf.value
            if isinstance(value, torch.Tensor) and value.shape == tensor.shape and value.dtype == tensor.dtype:
                return leaf.path
        return None


def refusal(
    job: Job, error: BaseException, runs_with: Mapping[str, int] | None = None, as_ones: Sequence[str] = ()
) -> EagerRefuses:
    """The diagnostic for a model that raised `error` on its example.

    `runs_with` are other sizes that it accepts, and `as_ones` inputs with which it runs where they hold ones only.
    """
    running = running_module(error, job.model)
    path, module, given = running if running else ("", None, ())
    failure = _Failure(job, shortened(error), path, module, given)
    features, dtypes = _wrong_features(failure), _wrong_dtype(failure)
    message, fix = features or dtypes or (failure.text, "")
    seen = [] if message == failure.text else [failure.text]
    seen += [f"inputs: {_listed_inputs(job)}"]
    if module is not None and given:
        seen.append(f"{failure.name} got {', '.join(map(_tensor, given))}")
    if isinstance(error, IndexError):
        fix = fix or _fitting_indices(job, failure.text)
    elif as_ones:
        names = " and ".join(as_ones)
        seen.append(f"eager does run with nothing but 1 in {names}")
        example = Option("torch.randint(1, n, ...)", f"-i {as_ones[0]}:…:i64@1..n")
        fix = fix or told(f"give {names} numbers that fit the other inputs: ", example)
    elif runs_with:
        sizes = " and ".join(f"{name} = {size}" for name, size in runs_with.items())
        seen.append(f"eager does run with {sizes}")
        fix = (
            fix or f"where a number in the code means a size, write the size (x.shape[0]); or give {sizes} as a number"
        )
    return EagerRefuses(
        message=message,
        place=user_place(error, job.model),
        label=f"{type(error).__name__} here",
        seen=tuple(seen),
        fix=fix or "run model(*args) yourself: it raises the same error",
        facts=_of_features(failure) if features else _of_layer(failure) if dtypes else _of_text(failure),
    )


def _fitting_indices(job: Job, text: str) -> str:
    """Whole numbers among the inputs are most likely the indices that did not fit."""
    whole = [
        leaf.path
        for leaf in job.inputs
        if isinstance(leaf.value, torch.Tensor)
        and leaf.value.dtype in (torch.int64, torch.int32)
        and leaf.value.numel()
    ]
    if not whole:
        return ""
    size = messages.size_indexed(text)
    largest = size - 1 if size else 9
    example = Option(f"torch.randint(0, {largest + 1}, ...)", f"-i {whole[0]}:…:i64@0..{largest}")
    return told(f"give {' and '.join(whole)} numbers that fit as indices: ", example)


def shortened(error: BaseException) -> str:
    """The first paragraph of a message."""
    text = " ".join(messages.first_paragraph(str(error)).split())
    text = f"{text[:_LONGEST]}…" if len(text) > _LONGEST else text
    name = type(error).__name__
    return f"{name}: {text}" if text else name


def _wrong_features(failure: _Failure) -> tuple[str, str] | None:
    """A layer made for another number of features or channels than it got."""
    module = failure.module
    wanted, axis, word = None, -1, "features"
    if isinstance(module, torch.nn.Linear):
        wanted = module.in_features
    elif isinstance(module, torch.nn.RNNBase):
        wanted = module.input_size
    elif isinstance(module, torch.nn.LayerNorm):
        wanted = module.normalized_shape[-1]
    elif isinstance(module, (torch.nn.modules.batchnorm.BatchNorm1d, torch.nn.BatchNorm2d, torch.nn.BatchNorm3d)):
        wanted, axis, word = module.num_features, 1, "channels"
    elif isinstance(module, (torch.nn.Conv1d, torch.nn.Conv2d, torch.nn.Conv3d)):
        wanted, axis, word = module.in_channels, -(len(module.kernel_size) + 1), "channels"
    if wanted is None or not failure.given:
        return None
    tensor = failure.given[0]
    if not -tensor.dim() <= axis < tensor.dim() or tensor.shape[axis] == wanted:
        return None
    got = tensor.shape[axis]
    return (
        f"{failure.name} is made for {wanted} {word}, but got {got} (a tensor of shape {list(tensor.shape)})",
        f"give it {wanted} {word}, or make the layer for {got}",
    )


def _wrong_dtype(failure: _Failure) -> tuple[str, str] | None:
    """Tensors of another dtype than the weights they meet, or floats where indices are needed."""
    if failure.module is None or not messages.is_about_dtypes(failure.text):
        return None
    if isinstance(failure.module, (torch.nn.Embedding, torch.nn.EmbeddingBag)):
        floats = [tensor for tensor in failure.given if tensor.is_floating_point()]
        if floats:
            who = failure.input_with(floats[0]) or "its argument"
            return (f"{failure.name} looks up whole numbers, but got {_dtype(floats[0].dtype)}", f"{who}.long()")
    weights = {
        name: weight.dtype
        for name, weight in failure.module.named_parameters(recurse=False)
        if weight.is_floating_point()
    }
    other = [tensor for tensor in failure.given if weights and tensor.dtype not in weights.values()]
    if not other:
        return None
    tensor, wanted = other[0], next(iter(weights.values()))
    named = ", ".join(f"{name} {_dtype(dtype)}" for name, dtype in weights.items())
    message = f"{failure.name} has weights of {_dtype(wanted)} ({named}), but got a tensor of {_dtype(tensor.dtype)}"
    source = failure.input_with(tensor)
    cast = f".to({wanted})"
    if source is None:
        return message, f"cast it before the call at this line: {cast}"
    if tensor.is_floating_point():
        return message, f"{source}{cast}, or bring the model to the input: model.to({tensor.dtype})"
    return message, f"{source}{cast}"


def _of_features(failure: _Failure) -> dict[str, str]:
    """The numbers that did not fit."""
    numbers = [*messages.numbers_named(failure.text), *failure.given[0].shape]
    return {"numbers": " ".join(map(str, numbers))}


def _of_text(failure: _Failure) -> dict[str, str]:
    """What torch's own message is about, and the numbers in it."""
    facts = {"numbers": " ".join(map(str, messages.numbers_named(failure.text)))}
    if messages.is_about_indices(failure.text):
        return facts | {"about": "indices"}
    return facts | ({"about": "dtypes"} if messages.is_about_dtypes(failure.text) else {})


def _of_layer(failure: _Failure) -> dict[str, str]:
    """The layer, the dtype that it takes, and the input that has another."""
    module = failure.module
    facts = {"about": "dtypes", "module": failure.path}
    if isinstance(module, (torch.nn.Embedding, torch.nn.EmbeddingBag)):
        facts |= {"dtype": str(torch.int64), "rows": str(module.num_embeddings)}
    elif module is not None:
        weights = [weight.dtype for weight in module.parameters(recurse=False) if weight.is_floating_point()]
        facts |= {"dtype": str(weights[0])} if weights else {}
    sources = [source for tensor in failure.given if (source := failure.input_with(tensor))]
    return facts | ({"input": sources[0]} if sources else {})


def _listed_inputs(job: Job) -> str:
    listed = [
        f"{leaf.path} {_tensor(leaf.value) if isinstance(leaf.value, torch.Tensor) else repr(leaf.value)}"
        for leaf in job.inputs
    ]
    return ", ".join(listed[:6]) + (f" and {len(listed) - 6} more" if len(listed) > 6 else "") or "none"


def _tensor(value: torch.Tensor) -> str:
    return f"{_dtype(value.dtype)}{list(value.shape)}"


def _dtype(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")
