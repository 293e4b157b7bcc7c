"""S&H: tags as input features (Sennrich & Haddow, WMT 2016), in a Transformer (Bugliarello & Okazaki, ACL 2020).

    x_t = [E_word(t); E_tag(t)],    widths D - d and d

The embedding of a token gives up d of its D components to that of its word's relation, or part of speech, or both.

Needs: `deprels` and/or `upos`, to train and to translate.
Architectures: `tag_transformer`, `_tiny`, `_iwslt_de_en`, `_wmt_en_de`, `_wmt_en_de_big`.
"""

from .model import TaggedEmbedding, TagTransformerModel

__all__ = ["TagTransformerModel", "TaggedEmbedding"]
