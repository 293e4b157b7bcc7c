"""PASCAL: parent-scaled self-attention (Bugliarello & Okazaki, ACL 2020).

    softmax(QKᵀ/√d ∘ D) V,    D[t, j] = exp(-(j - p_t)² / 2σ²) / √(2πσ²)

in some heads of the first encoder layer, where p_t is the middle position of token t's parent (eqs. 1-3). No parameter
is added: checkpoints of fairseq's `transformer` load.

Needs: `parents`, to train and to translate; a sentence without a parse is attended to as in a plain Transformer.
Architectures: `pascal_transformer`, `_tiny`, `_iwslt_de_en`, `_wmt_en_de`, `_wmt_en_de_big`.
"""

from .attention import ParentScaledAttention
from .model import PascalTransformerModel
from .parent_kernel import ParentKernel, parent_weights

__all__ = ["ParentKernel", "ParentScaledAttention", "PascalTransformerModel", "parent_weights"]
