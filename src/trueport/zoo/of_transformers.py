"""`transformers:llama` and `transformers:LlamaForCausalLM`."""

from __future__ import annotations

import contextlib
import importlib
import logging
import re
import warnings
from collections.abc import Iterator, Mapping, Sequence
from types import ModuleType
from typing import Any

import torch

from trueport.load.faults import close_to, usage_error
from trueport.zoo.noise import add_noise
from trueport.zoo.overrides import CONFIGS, PLANS
from trueport.zoo.plans import plans
from trueport.zoo.shrinking import DEGREES, shrunk
from trueport.zoo.sizing import run, sized
from trueport.zoo.specimens import Specimen

MOST_PARAMETERS = 80_000_000
TASKS = """
IMAGE_TEXT_TO_TEXT SPEECH_SEQ_2_SEQ SEQ_TO_SEQ_CAUSAL_LM CAUSAL_LM CTC OBJECT_DETECTION
ZERO_SHOT_OBJECT_DETECTION UNIVERSAL_SEGMENTATION SEMANTIC_SEGMENTATION ZERO_SHOT_IMAGE_CLASSIFICATION
DEPTH_ESTIMATION IMAGE_CLASSIFICATION VIDEO_CLASSIFICATION AUDIO_CLASSIFICATION MASKED_LM
TIME_SERIES_PREDICTION MASK_GENERATION IMAGE_TO_IMAGE KEYPOINT_DETECTION KEYPOINT_MATCHING MULTIMODAL_LM
TEXT_TO_WAVEFORM TEXT_TO_SPECTROGRAM RETRIEVAL PRETRAINING MODEL BACKBONE TEXT_ENCODING IMAGE
""".split()
"""Where the class of a model type is looked for: what people export first, the bare model last."""


def specimen(name: str) -> Specimen:
    """The first class, degree and plan that eager runs."""
    failed: list[str] = []
    with _quiet():
        for model_class, said in _classes(name):
            for degree in DEGREES:
                try:
                    model = _model(model_class, degree, said)
                except Exception as wrong:  # noqa: BLE001 the next degree may do; the last reason is told
                    failed.append(f"{model_class.__name__}, degree {degree}: {_brief(wrong)}")
                    continue
                given = PLANS.get(model_class.__name__) or PLANS.get(name)
                for plan in (given(model),) if given else plans(model):
                    try:
                        run(model, plan.inputs(0))
                    except Exception as wrong:  # noqa: BLE001 as above
                        failed.append(
                            f"{model_class.__name__}, degree {degree}, {', '.join(plan.arguments)}: {_brief(wrong)}"
                        )
                        continue
                    return sized(model, plan, f"{model_class.__name__}, degree {degree}")
    raise usage_error(
        f"no small transformers:{name} runs in eager: {_telling(failed)}",
        fix="write a function that makes the model, and name it: file.py:make",
        seen=failed,
    )


def _telling(failed: Sequence[str]) -> str:
    """Which failure to show: of the smallest model that was made, if one was."""
    made = (each for each in failed if not each.split(": ")[1].startswith(MemoryError.__name__))
    return next(made, failed[-1] if failed else "it has no model class")


def _classes(name: str) -> Iterator[tuple[Any, Mapping[str, Any]]]:
    """By the name of a class, or all of a model type."""
    import transformers
    from transformers.models.auto import modeling_auto

    auto: Any = importlib.import_module("transformers.models.auto.configuration_auto")
    kinds: Mapping[str, str] = auto.CONFIG_MAPPING_NAMES

    if name not in kinds:
        found: Any = getattr(transformers, name, None)
        if getattr(found, "config_class", None) is None:
            raise usage_error(f"transformers has no model {name!r}", fix=close_to(name, [*kinds]))
        yield found, CONFIGS.get(name) or CONFIGS.get(found.config_class.model_type, {})
        return
    module = importlib.import_module(f"transformers.models.{auto.model_type_to_module_name(name)}")
    mappings = [f"MODEL_FOR_{task}_MAPPING_NAMES".replace("FOR_MODEL_", "") for task in TASKS]
    mappings += [each for each in vars(modeling_auto) if re.fullmatch(r"MODEL_\w+_MAPPING_NAMES", each)]
    named = [getattr(modeling_auto, each, {}).get(name) for each in mappings]
    wanted = [each for names in named if names for each in (names if isinstance(names, tuple) else (names,))]
    for each in dict.fromkeys(wanted):
        found = getattr(module, each, None) or getattr(transformers, each, None)
        if found is not None:
            yield found, CONFIGS.get(each) or CONFIGS.get(name, {})
    if not wanted:
        for found in _parts(module, kinds[name]):
            yield found, CONFIGS.get(name, {})


def _parts(module: ModuleType, config_name: str) -> list[Any]:
    """Classes that no task of the library names: parts of another model."""
    try:
        defined = importlib.import_module(f"{module.__name__}.modeling_{module.__name__.rpartition('.')[2]}")
    except ImportError:
        return []
    return [
        value
        for name, value in vars(defined).items()
        if isinstance(value, type)
        and getattr(getattr(value, "config_class", None), "__name__", "") == config_name
        and not name.endswith("PreTrainedModel")
    ]


def _model(model_class: Any, degree: int, said: Mapping[str, Any]) -> Any:
    config = shrunk(model_class.config_class, degree, said)
    with torch.device("meta"):
        count = sum(weight.numel() for weight in model_class(config).parameters())
    if count > MOST_PARAMETERS:
        raise MemoryError(f"{count // 1_000_000} million parameters")
    torch.manual_seed(0)
    model = model_class(shrunk(model_class.config_class, degree, said)).eval().float()
    add_noise(model)
    return model.requires_grad_(False)


def _brief(wrong: BaseException) -> str:
    return f"{type(wrong).__name__}: {' '.join(str(wrong).split())[:160]}"


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """The library warns of each number that we made small."""
    logger = logging.getLogger("transformers")
    before = logger.level
    logger.setLevel(logging.ERROR)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            yield
        finally:
            logger.setLevel(before)
