"""Planted heads: stock heads that learn to look at the parent (after Yoshida et al. 2024); ours.

    loss = translation loss + λ mean_{t, h} CE(uniform over the pieces of t's parent, a_h[t])

Yoshida et al. plant trees in language models. The method is close to supervised self-attention (Deguchi et
al. 2019; Strubell et al. 2018 train a separate head, see `systems.lisa`). Roots and EOS attend to themselves.

Needs: `parent_pieces` and `word_starts` to train; nothing to translate. Parameters and translations are those of
fairseq's `transformer`.
Architectures: `planted_transformer`, `_tiny`, `_iwslt_de_en`, `_wmt_en_de`, `_wmt_en_de_big`.
Criterion: `label_smoothed_cross_entropy_with_planted_heads`.
"""

from .criterion import PlantedHeadsCriterion, planting_loss
from .model import PlantedTransformerModel

__all__ = ["PlantedHeadsCriterion", "PlantedTransformerModel", "planting_loss"]
