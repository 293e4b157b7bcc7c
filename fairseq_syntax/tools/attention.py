"""fairseq-syntax attention: draw what a model attends to in one sentence.

--kind heads (the default)
    the source side: parent-scaled heads of PASCAL and the parsing head of LISA, with the parent of every token framed;
    for models with latent trees (fa_nmt, sa_nmt, …), the probability of every head for every dependent, root first
--kind annotations
    for these models, M: the syntactic annotation of every source token
The other kinds show the decoder, which is given the reference translation:
--kind translation
    the source tokens that it attends to when it predicts each token
--kind syntax
    the same for its attention to syntax: sa_nmt and fa_nmt (the _shared ones attend to content with the same weights),
    and SDAtt beside global attention (global_plus_sdatt, …)
--kind gate
    how much it draws on syntax: tokens coloured by the norm of the gate (sa_nmt, fa_nmt); for many sentences, or as
    numbers, see fairseq-syntax gates
--kind position
    the position that SDAtt and local attention predict, over the attention around it; for sdatt_transformer, one per
    syntax-directed head, in the last layer that has such heads

examples:
  fairseq-syntax attention data-bin --path checkpoints/pascal/checkpoint_best.pt \\
    --subset test --sentence 3 --draw map.png
  fairseq-syntax attention data-bin --path checkpoints/pascal/checkpoint_best.pt --kind translation --draw map.svg
"""

import argparse

from ..files import refuse_existing
from .verb import Verb, add_checkpoint_arguments, add_overwrite, picture

KINDS = ["heads", "annotations", "translation", "syntax", "gate", "position"]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_checkpoint_arguments(parser)
    parser.add_argument("--subset", default="test", help="split of DATA (default: test)")
    parser.add_argument("--sentence", type=int, default=0, metavar="N", help="sentence to draw, from 0 (default: 0)")
    parser.add_argument("--kind", choices=KINDS, default="heads", help="what to draw (default: heads)")
    parser.add_argument(
        "--draw", type=picture, required=True, metavar="PICTURE", help="picture to write (.svg, .png or .pdf)"
    )
    add_overwrite(parser)


def run(args: argparse.Namespace) -> None:
    """Load the model, run it on the sentence, draw its weights."""
    from . import attention_figures as attention

    refuse_existing([args.draw], args.overwrite)
    attention.run(args)


main = Verb(__doc__, add_arguments, run)
