"""LISA: an encoder head that parses (Strubell et al., EMNLP 2018), for translation (Bugliarello & Okazaki, ACL 2020).

    A = softmax([Q'; 1] U K'ᵀ),    loss = translation loss + λ Σ_t -log A[t, head of t]

The first head of one encoder layer attends with A, which is trained to be the parse: p(head of t) over first pieces.

Needs: `parent_pieces` to train, nothing to translate; `--lisa-gold-parses` takes given heads instead of its own.
Architectures: `lisa_transformer`, `_tiny`, `_iwslt_de_en`, `_wmt_en_de`, `_wmt_en_de_big`.
Criterion: `label_smoothed_cross_entropy_with_heads`.
"""

from .attention import BiaffineParser, ParserAttention
from .criterion import LabelSmoothedCrossEntropyWithHeadsCriterion, parse_loss
from .model import LisaTransformerModel

__all__ = [
    "BiaffineParser",
    "LabelSmoothedCrossEntropyWithHeadsCriterion",
    "LisaTransformerModel",
    "ParserAttention",
    "parse_loss",
]
