"""The latent graph parser, on its own: a dependency parser trained on a treebank (Hashimoto & Tsuruoka, EMNLP 2017).

    p(H_i = j) = softmax_j(h_j · W_dp h_i),    p(label | i) = softmax(W_l [h_i; Σ_j p(H_i = j) h_j])

over words and ROOT (eq. 1, Sec. 2.2-2.3), with tags predicted below, after the joint many-task model (Hashimoto et al.,
EMNLP 2017). `systems.lgp` translates with the same network; trained alone, it parses raw text for any system.

Needs: a treebank in CoNLL-U to train; text to parse.
Architectures: `lgp_parser`, `lgp_parser_tiny`. Task: `dependency_parsing`. Criterion: `joint_parsing`.
Schedule of the learning rate: `inverse_epoch`.
"""

from . import task  # noqa: F401  registered
from .criterion import JointParsingCriterion
from .model import LatentGraphParserModel
from .network import Graph, GraphKind, LatentGraphParser
from .parse import OwnParser
from .words import WordRepresentation

__all__ = [
    "Graph",
    "GraphKind",
    "JointParsingCriterion",
    "LatentGraphParser",
    "LatentGraphParserModel",
    "OwnParser",
    "WordRepresentation",
]
