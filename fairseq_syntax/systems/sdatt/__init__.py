"""SDAtt: syntax-directed attention, and the attentions it is compared with (Chen et al., AAAI 2018).

    p_i = J σ(v_pᵀ tanh(W_p h'_i)),    α_ij = softmax_j(e_ij exp(-M[p_i][j]² / 2σ²)) over M[p_i][j] ≤ n

where `M[p][j]` is the number of arcs of the tree between two source words (eqs. 5, 10-12); with a second context of
plain attention, the double context (eqs. 13-14). The decoder is Nematus' conditional GRU.

Needs: `distances` for `sdatt`, `parent_pieces` and `word_starts` for the units of `chen17`, to train and to translate;
nothing for the others.
Architectures: `sdatt`, `global_plus_sdatt`; `global_att`; `local_att`, `global_plus_local`; `flexible_att`,
`global_plus_flexible`; `chen17`, `global_plus_chen17` (dependency units of Chen et al., EMNLP 2017); each also `_tiny`.
"""

from .model import SyntaxDirectedModel

__all__ = ["SyntaxDirectedModel"]
