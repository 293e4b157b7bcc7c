"""Attention to content and to latent syntax of the source (Tran & Bisk, Sec. 3.2 and 4.2)."""

import torch
from torch import nn

from ..recurrent.source_attention import GlobalMemory, SourceAttention, attend
from .head_selection import HeadSelection


class SharedSyntaxMemory(GlobalMemory):
    """Keys W_a S, and content S and syntax M side by side: one set of weights attends to both (eq. 16)."""

    def __init__(self, source_size: int, query_size: int, head_selection: HeadSelection):
        super().__init__(source_size, query_size)
        self.context_size = 2 * source_size
        self.head_selection = head_selection

    def forward(self, states, source):
        syntax = self.head_selection(states, source)
        return super().forward(states, source) | {"values": torch.cat((states, syntax), dim=2)}


class SeparateSyntaxMemory(SharedSyntaxMemory):
    """As the base class, with keys W_m M for separate attention to syntax (eq. 19)."""

    def __init__(self, source_size, query_size, head_selection):
        super().__init__(source_size, query_size, head_selection)
        self.syntax_keys = nn.Linear(source_size, query_size, bias=False)

    def forward(self, states, source):
        syntax = self.head_selection(states, source)
        memory = GlobalMemory.forward(self, states, source)
        return memory | {"syntax_keys": self.syntax_keys(syntax), "syntax_values": syntax}


class OneSetMemory(GlobalMemory):
    """Syntax added to the annotations through a gate, s_i + sigmoid(W_g s_i) * m_i (eq. 22); plain attention then."""

    def __init__(self, source_size, query_size, head_selection):
        super().__init__(source_size, query_size)
        self.head_selection = head_selection
        self.gate = nn.Linear(source_size, source_size, bias=False)

    def forward(self, states, source):
        syntax = self.head_selection(states, source)
        states = states + torch.sigmoid(self.gate(states)) * syntax
        return super().forward(states, source)


class SharedSyntaxAttention(SourceAttention):
    """Context [c; d * sigmoid(W_g h)], where c and d are averages by the same weights (eqs. 3, 4, 16, 17).

    Returned besides the weights: "gate_norm" (B,), the Euclidean norm of the gate (eq. 23).
    """

    def __init__(self, source_size: int, query_size: int):
        super().__init__()
        self.source_size = source_size
        self.gate = nn.Linear(query_size, source_size, bias=False)

    def _average(self, query, memory):
        """(extra, with the weights "attn" (B, T); averages c and d (B, C) of content and syntax)."""
        weights = attend(query, memory["keys"], memory["bias"])
        content, syntax = torch.bmm(weights, memory["values"]).squeeze(1).split(self.source_size, dim=1)
        return {"attn": weights.squeeze(1)}, content, syntax

    def forward(self, query, memory, state):
        extra, content, syntax = self._average(query, memory)
        gate = torch.sigmoid(self.gate(query))
        if not self.training:
            extra["gate_norm"] = gate.float().norm(dim=1)
        return torch.cat((content, syntax * gate), dim=1), extra, state


class SeparateSyntaxAttention(SharedSyntaxAttention):
    """As the base class, with separate weights of syntax, softmax(h W_m M) (eqs. 19-20), returned as "syntax_attn"."""

    def _average(self, query, memory):
        weights = attend(query, memory["keys"], memory["bias"])
        syntax_weights = attend(query, memory["syntax_keys"], memory["bias"])
        extra = {"attn": weights.squeeze(1), "syntax_attn": syntax_weights.squeeze(1)}
        content = torch.bmm(weights, memory["values"]).squeeze(1)
        return extra, content, torch.bmm(syntax_weights, memory["syntax_values"]).squeeze(1)
