"""Models by name, without network: `transformers:llama`, `transformers:LlamaForCausalLM`, `timm:resnet50`.

A name alone says no weights and no inputs. Here it gets both: the library's own configuration, made small, weights that
are noise, inputs as the signature of `forward` asks for them, and the sizes that eager lets move. What eager does not run
is no model of ours, and is said so.
"""

from __future__ import annotations

from trueport.zoo.specimens import Specimen, build, is_named

__all__ = ["Specimen", "build", "is_named"]
