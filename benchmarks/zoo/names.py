"""Who is in the zoo: each model folder of transformers, each file of timm and torchvision, what transformers skips."""

from __future__ import annotations

import importlib
import importlib.util
import re
from collections import defaultdict
from collections.abc import Callable, Mapping
from pathlib import Path

from benchmarks.zoo.models import LIBRARY, ZOO, shared_names

SMALL = "pico atto femto nano xxtiny xxs xtiny tiny ti t xs small s 18 b0 m0 26ts 50".split()
"""Parts of the names of vision models, the smallest first."""

SKIPPED = """
VideoMAEForPreTraining OpenAIPrivacyFilterModel OpenAIPrivacyFilterForTokenClassification GlmImageModel
GlmImageForConditionalGeneration Blip2ForConditionalGeneration InstructBlipForConditionalGeneration
InstructBlipVideoForConditionalGeneration Kosmos2ForConditionalGeneration RecurrentGemmaForCausalLM
MoshiForConditionalGeneration UdopForConditionalGeneration VoxtralRealtimeForConditionalGeneration
Gemma3nForConditionalGeneration Sam2Model SeamlessM4TForSpeechToSpeech SeamlessM4TForSpeechToText
SeamlessM4Tv2ForSpeechToSpeech SeamlessM4Tv2ForSpeechToText MllamaForConditionalGeneration ReformerModelWithLMHead
CHMv2ForDepthEstimation PixioModel PixioBackbone GroundingDinoModel GroundingDinoForObjectDetection MMGroundingDinoModel
MMGroundingDinoForObjectDetection Sam2VisionModel BigBirdModel BigBirdForCausalLM BigBirdForMaskedLM
BigBirdForMultipleChoice BigBirdForPreTraining BigBirdForQuestionAnswering BigBirdForSequenceClassification
BigBirdForTokenClassification DonutSwinModel DonutSwinForImageClassification MaskFormerSwinModel MaskFormerSwinBackbone
Mask2FormerModel Mask2FormerForUniversalSegmentation SwinModel SwinBackbone SwinForImageClassification
SwinForMaskedImageModeling Swinv2Model Swinv2Backbone Swinv2ForImageClassification Swinv2ForMaskedImageModeling
""".split()
"""EXPORT_SKIPS of tests/exporters/test_export.py in transformers (d56c55bf564), the scopes that hold for ONNX."""


def hand_made() -> list[str]:
    return [*ZOO, *shared_names()]


def of_transformers() -> list[str]:
    """One model type for each folder that has a configuration."""
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING_NAMES, model_type_to_module_name

    by_folder: dict[str, list[str]] = defaultdict(list)
    for kind in CONFIG_MAPPING_NAMES:
        by_folder[model_type_to_module_name(kind)].append(kind)
    return [f"transformers:{_main(folder, kinds)}" for folder, kinds in sorted(by_folder.items())]


def folders_without_model() -> list[str]:
    """Of `transformers.models`: no file in them defines a network."""
    folders = [entry for entry in Path(LIBRARY, "models").iterdir() if entry.is_dir() and entry.name[0] != "_"]
    return sorted(entry.name for entry in folders if not [*entry.glob("modeling_*.py")])


def of_timm() -> list[str]:
    """One model of each file."""
    if importlib.util.find_spec("timm") is None:
        return []
    registry = importlib.import_module("timm.models._registry")
    importlib.import_module("timm")
    return [f"timm:{_smallest(list(names))}" for _, names in sorted(registry._module_to_models.items())]


def of_torchvision() -> list[str]:
    """One model of each file. Those that detect take lists of pictures, and are in `../shared/zoo`."""
    if importlib.util.find_spec("torchvision") is None:
        return []
    models = importlib.import_module("torchvision").models
    by_file: dict[str, list[str]] = defaultdict(list)
    for name in models.list_models():
        file = models.get_model_builder(name).__module__
        if ".detection" not in file and ".quantization" not in file:
            by_file[file].append(name)
    return [f"torchvision:{_smallest(names)}" for _, names in sorted(by_file.items())]


def skipped() -> list[str]:
    return [f"transformers:{name}" for name in SKIPPED]


PARTS: Mapping[str, Callable[[], list[str]]] = {
    "hand": hand_made,
    "transformers": of_transformers,
    "timm": of_timm,
    "torchvision": of_torchvision,
    "skipped": skipped,
}


def _main(folder: str, kinds: list[str]) -> str:
    """The type that is called like the folder; else the one whose name is shortest."""
    exact = [kind for kind in kinds if kind.replace("-", "_") == folder]
    return min(exact or kinds, key=len)


def _smallest(names: list[str]) -> str:
    def rank(name: str) -> tuple[int, int, str]:
        words = re.split(r"[_\W]|(?<=[a-z])(?=\d)", name)
        return next((place for place, word in enumerate(SMALL) if word in words), len(SMALL)), len(name), name

    return min(names, key=rank)
