"""fairseq-syntax attention: a picture of what a model attends to in one sentence.

--kind heads (the default)
    the source side: the parent-scaled heads of PASCAL and the parsing head of LISA with the parent of every token
    framed; of models with latent trees (fa_nmt, sa_nmt and their kin), the probability of every head for every
    dependent, the root first
--kind annotations
    M of these: the syntactic annotation of every source token, as it is
and, of a decoder that is given the reference translation:
--kind translation
    which source tokens it looks at when it predicts each token
--kind syntax
    the same of its attention to syntax: of sa_nmt and fa_nmt (those called shared attend to content with the same
    weights), and of SDAtt beside global attention (global_plus_sdatt and its kin)
--kind gate
    how much syntax it asks for: the tokens coloured by the norm of the gate (sa_nmt, fa_nmt); of many sentences, and as
    numbers: fairseq-syntax gates
--kind position
    the position that SDAtt and local attention predict, over the attention around it; of sdatt_transformer, that of
    each syntax-directed head of the last layer that has some

examples:
  fairseq-syntax attention data-bin --path checkpoints/pascal/checkpoint_best.pt \\
    --subset test --sentence 3 --draw map.png
  fairseq-syntax attention data-bin --path checkpoints/pascal/checkpoint_best.pt --kind translation --draw map.svg
"""

import argparse

from .common.arguments import add_checkpoint_arguments, picture
from .common.verb import Verb

KINDS = ["heads", "annotations", "translation", "syntax", "gate", "position"]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_checkpoint_arguments(parser)
    parser.add_argument("--subset", default="test", help="split (default: test)")
    parser.add_argument("--sentence", type=int, default=0, help="number of the sentence, from 0 (default: 0)")
    parser.add_argument("--kind", choices=KINDS, default="heads", help="what to draw (default: heads)")
    parser.add_argument("--draw", type=picture, required=True, help="picture to write (.png, .svg or .pdf)")


def run(args: argparse.Namespace) -> None:
    """Load the model, run it on the sentence, draw its weights."""
    from ..inspection import attention

    attention.run(args)


main = Verb(__doc__, add_arguments, run)
