"""Attention of a recurrent decoder to the source sentence: one interface for all kinds, and the plain kind.

An attention has two halves, because a sentence is encoded once and attended to at every step, by every hypothesis:
a `SourceMemory` in the encoder depends on the source alone, and a `SourceAttention` in the decoder on the step, too.
"""

from abc import abstractmethod
from typing import Dict, NamedTuple, Optional, Tuple

import torch
from torch import Tensor, nn

from ...data.collating import SourceSyntax, StrictSyntax
from .rotation import Rotation

Memory = Dict[str, Tensor]


class SourceBatch(NamedTuple):
    """The source sentences of a batch: input of every `SourceMemory`."""

    tokens: Tensor  # (B, T) ids
    padding_mask: Tensor  # (B, T), True at padding
    word_mask: Tensor  # (B, T), True at pieces of words: neither padding nor EOS
    # trees of the batch, name -> tensor aligned to `tokens`, see `fairseq_syntax.data.collating`
    syntax: SourceSyntax = StrictSyntax()
    rotation: Optional[Rotation] = None  # of `padding_mask`


class SourceMemory(nn.Module):
    """Memory of a source sentence, computed once; attention to it returns vectors of `context_size`."""

    context_size: int

    @abstractmethod
    def forward(self, states: Tensor, source: SourceBatch) -> Memory:
        """name -> tensor (B, …) of annotations (B, T, C); rows belong to sentences, so beam search can reorder them."""


class SourceAttention(nn.Module):
    """One step of attention over a memory."""

    def initial_state(self, memory: Memory) -> Dict[str, Tensor]:
        """Initial state of the attention, name -> (B, …); most kinds have none."""
        return {}

    @abstractmethod
    def forward(
        self, query: Tensor, memory: Memory, state: Dict[str, Tensor]
    ) -> Tuple[Tensor, Dict[str, Tensor], Dict[str, Tensor]]:
        """Attend once, from a state of the decoder (B, H), to the memory that belongs to this class.

        Returns (context (B, context size); extra: "attn" (B, T), the weights of the source positions, and other results
        of this kind of attention, (B, …) each; the new state).
        """


def attention_bias(padding_mask: Tensor, like: Tensor) -> Tensor:
    """Bias (B, 1, T) of attention scores: minus infinity at padding, else 0; in the type of `like`."""
    bias = torch.zeros(padding_mask.shape, dtype=like.dtype, device=like.device)
    return bias.masked_fill_(padding_mask, float("-inf")).unsqueeze(1)


def attend(query: Tensor, keys: Tensor, bias: Tensor) -> Tensor:
    """(B, 1, T) weights softmax(query . keys + bias), of the type of `keys`; the softmax is taken in float32 at least.

    `query` is (B, C), `keys` (B, T, C), `bias` (B, 1, T), see `attention_bias`.
    """
    # a row times a matrix: on a CPU twice as fast as a matrix times a column
    scores = torch.baddbmm(bias, query.unsqueeze(1), keys.transpose(1, 2))
    wide = torch.promote_types(scores.dtype, torch.float32)
    return torch.softmax(scores, dim=2, dtype=wide).to(keys.dtype)


class GlobalMemory(SourceMemory):
    """Keys W_a s_i and values s_i of the "general" attention (Luong et al. 2015; Tran & Bisk eq. 3)."""

    def __init__(self, source_size: int, query_size: int):
        super().__init__()
        self.context_size = source_size
        self.keys = nn.Linear(source_size, query_size, bias=False)

    def forward(self, states, source):
        return {"keys": self.keys(states), "values": states, "bias": attention_bias(source.padding_mask, states)}


class GlobalAttention(SourceAttention):
    """softmax(h W_a S) over the whole sentence (Luong et al. 2015; Tran & Bisk eqs. 3-4)."""

    def forward(self, query, memory, state):
        weights = attend(query, memory["keys"], memory["bias"])
        context = torch.bmm(weights, memory["values"]).squeeze(1)
        return context, {"attn": weights.squeeze(1)}, state
