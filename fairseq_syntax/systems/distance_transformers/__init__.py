"""Transformers that attend by tree distance M: ours, each after a paper and no paper's own system.

    dasa_transformer:   softmax(QKᵀ/√d + λ_h exp(-M² / 2σ²)) V in the encoder, λ_h learned (after Chi et al. 2026);
                        --dasa-mode multiply: softmax(W · QKᵀ/√d) V, W = 1 / (M + ε), rows normalised; log: with
                        λ log W as the bias
    sdatt_transformer:  softmax(e_j - M[p][j]² / 2σ²) over M[p][j] ≤ n, in heads of the decoder's attention to the
                        source, around a predicted position p (after Chen et al., AAAI 2018; see `systems.sdatt`)

Needs: `distances`, to train and to translate; a sentence without a parse is attended to as in a plain Transformer.
Architectures: `dasa_transformer` and `sdatt_transformer`, each also `_tiny`, `_iwslt_de_en`, `_wmt_en_de`,
`_wmt_en_de_big`.
"""

from .cross_attention import SyntaxCrossAttention
from .dasa import DistanceBiasAttention, DistanceBiasTransformerModel
from .sdatt_transformer import SyntaxDirectedTransformerModel

__all__ = [
    "DistanceBiasAttention",
    "DistanceBiasTransformerModel",
    "SyntaxCrossAttention",
    "SyntaxDirectedTransformerModel",
]
