"""Base of the recurrent systems: a bidirectional encoder and an input-feeding decoder with attention.

    u_t = tanh(W_u [h_t; c_t]),    c_t = Σ_j α_tj s_j,    α_t = softmax(h_tᵀ W_a S)

(Luong et al., EMNLP 2015, as in Tran & Bisk, WNMT 2018, eqs. 1-5.) Systems change the memory that the encoder makes
of a sentence, and the attention to it: `SourceMemory`, `SourceAttention`.

Needs: nothing beside the text.
Architectures: `nmt_lstm`, `nmt_lstm_tiny`; `char_lstm`, the size of Bradbury & Socher (2017) for characters.
"""

from .cells import GRUCell, LSTMCell
from .decoder import RecurrentDecoder
from .encoder import RecurrentEncoder
from .model import TINY, RecurrentModel, RecurrentOptions
from .source_attention import GlobalAttention, GlobalMemory, SourceAttention, SourceBatch, SourceMemory, attend

__all__ = [
    "TINY",
    "GRUCell",
    "GlobalAttention",
    "GlobalMemory",
    "LSTMCell",
    "RecurrentDecoder",
    "RecurrentEncoder",
    "RecurrentModel",
    "RecurrentOptions",
    "SourceAttention",
    "SourceBatch",
    "SourceMemory",
    "attend",
]
