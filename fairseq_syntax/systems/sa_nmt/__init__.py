"""SA-NMT: attention to latent dependency trees of the source, and FA-NMT, its flat twin (Tran & Bisk, WNMT 2018).

    β = marginals of arcs by the Matrix-Tree theorem,    m_i = Σ_k β[k, i] s_k,    d_t = Σ_i α_ti m_i,
    d̂_t = d_t ∘ σ(W_g h_t)

The decoder attends to the syntactic annotations M beside the words S, through a gate (eqs. 12-17; 19-22 for the kinds).

Needs: nothing beside the text; trees are induced.
Architectures: `sa_nmt` (weights of its own for M), `sa_nmt_shared` (the words'), `sa_nmt_hard` (arg max of heads),
`sa_nmt_1set` (M added to S); `fa_nmt`, `fa_nmt_shared` (β is a softmax); each also `_tiny`.
"""

from .model import SyntaxAttentionModel

__all__ = ["SyntaxAttentionModel"]
