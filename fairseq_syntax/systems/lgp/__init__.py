"""LGP-NMT: translation with a latent graph parser of the source (Hashimoto & Tsuruoka, EMNLP 2017), and its rivals.

    dep(w_i) = tanh(W [h_i; Σ_j p(H_i = j) h_j; p(label | i)]),    attention to words and to dep (eqs. 1-9)

The parser of `systems.parser` is the lower part of the encoder: its soft heads and labels are learned with the
translation, from nothing or from a treebank.

Needs: text of words; `parent_pieces` and `deprels` for `--lgp-graph dep`, to train and to translate; a trained
`lgp_parser` for LGP-NMT+ (`--lgp-parser-path`).
Architectures: `lgp_nmt` (= `lgp_small`), `lgp_medium`, `lgp_large`, `lgp_tiny`; `--lgp-graph latent|seq|dep|uni`.
Optimizer: `lgp_sgd`. Schedule of the learning rate: `halve_on_drop`.
"""

from . import decayed_sgd, halve_on_drop  # noqa: F401  registered
from .model import GraphAttention, LatentGraphModel

__all__ = ["GraphAttention", "LatentGraphModel"]
