"""`transformers:llama` and `transformers:LlamaForCausalLM`."""

from __future__ import annotations

import contextlib
import importlib
import logging
import warnings
from collections.abc import Iterator, Mapping
from typing import Any

import torch

from trueport.load.faults import close_to, usage_error
from trueport.zoo.noise import add_noise
from trueport.zoo.overrides import CONFIGS, PLANS
from trueport.zoo.plans import plans
from trueport.zoo.shrinking import DEGREES, shrunk
from trueport.zoo.sizing import run, sized
from trueport.zoo.specimens import Specimen

MOST_PARAMETERS = 150_000_000
TASKS = (
    "MODEL_FOR_IMAGE_TEXT_TO_TEXT", "MODEL_FOR_SPEECH_SEQ_2_SEQ", "MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM", "MODEL_FOR_CAUSAL_LM",
    "MODEL_FOR_CTC", "MODEL_FOR_OBJECT_DETECTION", "MODEL_FOR_ZERO_SHOT_OBJECT_DETECTION", "MODEL_FOR_UNIVERSAL_SEGMENTATION",
    "MODEL_FOR_SEMANTIC_SEGMENTATION", "MODEL_FOR_ZERO_SHOT_IMAGE_CLASSIFICATION", "MODEL_FOR_DEPTH_ESTIMATION", "MODEL_FOR_IMAGE_CLASSIFICATION", "MODEL_FOR_VIDEO_CLASSIFICATION",
    "MODEL_FOR_AUDIO_CLASSIFICATION", "MODEL_FOR_MASKED_LM", "MODEL_FOR_TIME_SERIES_PREDICTION", "MODEL_FOR_MASK_GENERATION",
    "MODEL_FOR_IMAGE_TO_IMAGE", "MODEL_FOR_KEYPOINT_DETECTION", "MODEL_FOR_KEYPOINT_MATCHING", "MODEL_FOR_MULTIMODAL_LM",
    "MODEL_FOR_TEXT_TO_WAVEFORM", "MODEL_FOR_TEXT_TO_SPECTROGRAM", "MODEL_FOR_RETRIEVAL", "MODEL_FOR_PRETRAINING", "MODEL",
    "MODEL_FOR_BACKBONE", "MODEL_FOR_TEXT_ENCODING", "MODEL_FOR_IMAGE",
)  # fmt: skip
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
        f"no small transformers:{name} runs in eager: {failed[-1] if failed else 'it has no model class'}",
        fix="write a function that makes the model, and name it: file.py:make",
        seen=failed,
    )


def _classes(name: str) -> Iterator[tuple[type, Mapping[str, Any]]]:
    """By the name of a class, or all of a model type."""
    import transformers
    from transformers.models.auto import modeling_auto
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING_NAMES, model_type_to_module_name

    if name not in CONFIG_MAPPING_NAMES:
        found = getattr(transformers, name, None)
        if not isinstance(found, type) or getattr(found, "config_class", None) is None:
            raise usage_error(f"transformers has no model {name!r}", fix=close_to(name, [*CONFIG_MAPPING_NAMES]))
        yield found, CONFIGS.get(name) or CONFIGS.get(found.config_class.model_type, {})
        return
    module = importlib.import_module(f"transformers.models.{model_type_to_module_name(name)}")
    mappings = [f"{task}_MAPPING_NAMES" for task in TASKS]
    mappings += [each for each in vars(modeling_auto) if each.endswith("_MAPPING_NAMES") and each not in mappings]
    named = [getattr(modeling_auto, each, {}).get(name) for each in mappings]
    wanted = [each for names in named if names for each in (names if isinstance(names, tuple) else (names,))]
    wanted += [each for each in dir(module) if _is_model_of(getattr(module, each), CONFIG_MAPPING_NAMES[name])]
    for each in dict.fromkeys(wanted):
        found = getattr(module, each, None) or getattr(transformers, each, None)
        if found is not None:
            yield found, CONFIGS.get(each) or CONFIGS.get(name, {})


def _is_model_of(value: Any, config_name: str) -> bool:
    """A class that no task of the library names: a part of another model."""
    return isinstance(value, type) and getattr(getattr(value, "config_class", None), "__name__", "") == config_name


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
    import transformers

    logger = logging.getLogger("transformers")
    before = logger.level
    transformers.logging.set_verbosity_error()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            yield
        finally:
            logger.setLevel(before)
