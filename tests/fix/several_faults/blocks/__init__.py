from .attn import Attn
