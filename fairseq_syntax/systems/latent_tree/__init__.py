"""Latent-tree RNNG: both sides are recurrent neural network grammars whose trees are latent (Bradbury & Socher, 2017).

    p(y, b | x, a) = Π_k p(action_k | stack, buffer of what is open, attention to the constituents of the source)

Trees a and b of source and target are sampled, and learned by REINFORCE with a reward on their shape (eqs. 1-4).
Encoder and decoder are stack LSTMs over unlabelled constituents of characters.

Needs: text of characters (`fairseq-syntax characters`), no parse.
Architectures: `latent_tree_rnng`, `latent_tree_rnng_tiny`. Task: `tree_translation`. Criterion: `reinforce_tree`.
"""

from . import task  # noqa: F401  registered
from .model import LatentTreeRNNG
from .reinforce import ReinforceTreeCriterion
from .rnng import RNNG
from .transitions import Action, Limits, Transitions

__all__ = ["RNNG", "Action", "LatentTreeRNNG", "Limits", "ReinforceTreeCriterion", "Transitions"]
