"""Base of the Transformers with syntax: fairseq's Transformer, with room for encoder layers that look at a tree.

No architecture of its own: without a special layer it is fairseq's `transformer`, to the last bit.
"""

from .encoder import SyntaxEncoder, SyntaxEncoderLayer
from .headwise_attention import HeadwiseAttention, masked_softmax
from .model import SyntaxTransformerModel, register_sizes

__all__ = [
    "HeadwiseAttention",
    "SyntaxEncoder",
    "SyntaxEncoderLayer",
    "SyntaxTransformerModel",
    "masked_softmax",
    "register_sizes",
]
