"""One distribution of attention over two sequences of annotations of a sentence (Chen et al., EMNLP 2017)."""

from typing import Dict, Tuple

import torch
from torch import Tensor, nn

from ..recurrent.source_attention import Memory
from .additive_attention import AdditiveAttention, global_weights


class TwoSequenceAttention(nn.Module):
    """softmax(λ e(s, h) + (1 - λ) e(s', d)): both scores are additive, with parameters of their own; `share` is λ."""

    def __init__(self, query_size: int, attention_size: int, share: float = 0.5):
        super().__init__()
        self.words = AdditiveAttention(query_size, attention_size)
        self.units = AdditiveAttention(query_size, attention_size)
        self.share = share

    def forward(self, words: Tensor, units: Tensor, memory: Dict[str, Memory]) -> Tuple[Tensor, Dict[str, Tensor]]:
        """Attend by (B, H) states to "words" and "units", each of an `AdditiveMemory`.

        Returns ([context of words; context of units] (B, 2C); found: "attn" (B, T)).
        """
        scores = self.share * self.words.scores(words, memory["words"])
        scores = scores + (1 - self.share) * self.units.scores(units, memory["units"])
        weights = global_weights(scores, memory["words"]["keep"])
        rows = weights.unsqueeze(1).to(memory["words"]["values"].dtype)
        contexts = [torch.bmm(rows, memory[name]["values"]).squeeze(1) for name in ("words", "units")]
        return torch.cat(contexts, dim=1), {"attn": weights}
