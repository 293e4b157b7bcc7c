"""fairseq-syntax gates: how much the decoder draws on syntax, token by token (Tran & Bisk 2018, eq. 23, Figure 6).

The model reads the reference translation (teacher forcing). For every token that it predicts, the end of the sentence
(</s>) included, the norm of its gate is written: how much syntax goes into the prediction.

With --target-conllu, a table shows how often each tag has the highest norm in its sentence, beside its share of all
tokens, which is what a gate that ignores tags would give. Every subword has the tag of its word; </s> is a tag of its
own.

example:
  fairseq-syntax gates data-bin --path checkpoint_best.pt --subset test --output gates.tsv --html gates.html \\
      --target-conllu test.de.conllu
"""

import argparse
import sys

from ..files import STDIO, refuse_existing, written
from ..trees.conllu import TreeFormatError, read_conllu
from ..trees.subwords import SubwordType
from .verb import Verb, add_batch_size, add_checkpoint_arguments, add_format, add_overwrite, picture


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_checkpoint_arguments(parser)
    add = parser.add_argument
    add("--subset", default="test", help="split of DATA (default: test)")
    add(
        "--output",
        metavar="FILE",
        help="norms as TSV (sentence, position, token, norm), gzipped if it ends in .gz; - is stdout",
    )
    add("--html", metavar="FILE", help="HTML page of the sentences, coloured by norm; - is stdout")
    add("--draw", type=picture, metavar="PICTURE", help="the same as a picture (.svg, .png or .pdf)")
    add(
        "--sentence",
        type=int,
        nargs="+",
        metavar="N",
        help="sentences on the page and in the picture, from 0 (default: all on the page, the first 10 in the picture)",
    )
    add("--target-conllu", metavar="FILE", help="CoNLL-U with the tags (UPOS) of the target words, plain or .gz")
    add(
        "--subword-type",
        choices=[str(kind) for kind in SubwordType],
        help="segmentation of the target (default: that of the source in DATA, else subword_nmt)",
    )
    add_batch_size(parser)
    add_format(parser)
    add_overwrite(parser)


def check(parser: argparse.ArgumentParser, args: argparse.Namespace) -> None:
    if not (args.output or args.html or args.draw or args.target_conllu):
        parser.error("give --output, --html, --draw or --target-conllu: there is nothing to make")
    if args.sentence and not (args.html or args.draw):
        parser.error("--sentence needs --html or --draw")


def run(args: argparse.Namespace) -> None:
    """Compute the norms and write what is asked for."""
    from ..pictures.figures import save_figure
    from .gate_drawing import draw_gates, gates_page
    from .gate_norms import gate_norms, tag_table
    from .loaded_model import load

    refuse_existing([args.output, args.html, args.draw], args.overwrite)
    loaded = load(args.path, args.data, args.cpu)
    split = loaded.load_split(args.subset)
    for number in args.sentence or ():
        if not 0 <= number < len(split):
            raise ValueError(f"--sentence {number}: {args.subset} has sentences 0 to {len(split) - 1}")
    trees = list(read_conllu(args.target_conllu)) if args.target_conllu else None
    if trees is not None and len(trees) != len(split):
        raise TreeFormatError(
            f"{args.target_conllu}: {len(trees)} sentences, but {args.subset} has {len(split)}; tag the target side of "
            "this very split"
        )
    sentences = gate_norms(loaded, split, args.subset, args.batch_size)
    # before anything is written: the tags may not fit
    table = None
    if trees is not None:
        table = tag_table(sentences, trees, loaded.subword_type(args.subword_type), args)
    if args.output:
        with written(args.output) as out:
            out.write("sentence\tposition\ttoken\tnorm\n")
            for sentence in sentences:
                for position, (token, norm) in enumerate(zip(sentence.tokens, sentence.norms.tolist(), strict=True)):
                    out.write(f"{sentence.number}\t{position}\t{token}\t{norm:.6f}\n")
    title = f"Gate norms: {loaded.name}, {args.subset}"
    if args.html:
        with written(args.html) as out:
            out.write(gates_page([sentences[i] for i in args.sentence or range(len(sentences))], title))
    if args.draw:
        chosen = args.sentence or range(min(10, len(sentences)))
        save_figure(draw_gates([sentences[i] for i in chosen], title), args.draw)
    if table is not None:
        # not among TSV or HTML
        print(table, file=sys.stderr if STDIO in (args.output, args.html) else sys.stdout)


main = Verb(__doc__, add_arguments, run, check)
