"""A Transformer that attends by tree distance M: ours, after a paper and no paper's own system.

    dasa_transformer:   softmax(QKᵀ/√d + λ_h exp(-M² / 2σ²)) V in the encoder, λ_h learned (after Chi et al. 2026);
                        --dasa-mode multiply: softmax(W · QKᵀ/√d) V, W = 1 / (M + ε), rows normalised; log: with
                        λ log W as the bias

Needs: `distances`, to train and to translate; a sentence without a parse is attended to as in a plain Transformer.
Architectures: `dasa_transformer`, also `_tiny`, `_iwslt_de_en`, `_wmt_en_de`, `_wmt_en_de_big`.
"""

from .dasa import DistanceBiasAttention, DistanceBiasTransformerModel

__all__ = ["DistanceBiasAttention", "DistanceBiasTransformerModel"]
