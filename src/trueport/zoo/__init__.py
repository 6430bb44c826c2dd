"""Models by name, without network: `transformers:llama`, `transformers:LlamaForCausalLM`, `timm:resnet50`.

A name alone says no weights and no inputs. Here it gets both: the library's own configuration, made small, weights
that are noise, inputs as the signature of `forward` asks for them, and the sizes that eager lets move. What eager does
not run is refused.
"""

from __future__ import annotations

from trueport.zoo.naming import build, is_named
from trueport.zoo.specimens import Specimen

__all__ = ["Specimen", "build", "is_named"]
