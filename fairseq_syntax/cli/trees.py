"""fairseq-syntax trees: the trees that a translation model has found by itself, as CoNLL-U or as a picture."""

import argparse
import dataclasses
import logging
import sys
from collections.abc import Iterable, Iterator
from itertools import islice

import numpy as np
from fairseq import utils
from tqdm import tqdm

from ..data.arrays import ArrayReader, split_prefix
from ..inspection.checkpoints import Loaded
from ..inspection.induction import (
    CutSentence,
    Cutter,
    TreeInducer,
    add_tree_arguments,
    check_tree_arguments,
    load_with_trees,
)
from ..pictures.dependency_trees import draw_tree
from ..pictures.figures import save_figure
from ..trees.conllu import UNPARSED, Sentence, TreeFormatError, find_cycle, format_sentence, read_conllu
from ..trees.universal import universal_labels
from .inputs import input_lines, input_name
from .outputs import STDIO, exit_status, picture, refuse_existing, written

_EPILOG = """\
Text has one sentence a line, its tokens separated by spaces, and a tree comes out for every line, also for empty ones.
Without --bpe, tokens are what the model reads: pieces that are joined to words as --subword-type says. Of CoNLL-U, the
words are used, and comments, multi-word ranges and UPOS are kept; the trees have no labels but root and dep (unknown).

examples:
  fairseq-syntax trees data-bin --path checkpoint_best.pt --input test.en --bpe subword_nmt --bpe-codes codes.en \\
      --output test.en.conllu
  fairseq-syntax trees data-bin --path checkpoint_best.pt --subset test --draw tree.svg --sentence 3
  fairseq-syntax trees --input treebank.conllu --draw tree.svg --sentence 3"""


def build_parser() -> argparse.ArgumentParser:
    """The program's options."""
    parser = argparse.ArgumentParser(
        prog="fairseq-syntax trees",
        description="Latent dependency trees of any text, as CoNLL-U; or one sentence's tree as a picture.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_tree_arguments(parser)
    add = parser.add_argument
    add("--input", metavar="FILE", help="text, or CoNLL-U if it ends in .conllu; also .gz; - is text from stdin")
    add("--subset", help="take a split of DATA instead of --input")
    add("--output", metavar="FILE", help="CoNLL-U, also .gz; - is stdout (default: stdout, or nothing with --draw)")
    add(
        "--collapse-ranges",
        action="store_true",
        help='make each multi-word token of CoNLL-U one word ("im" for "in" and "dem"), as models read it',
    )
    add(
        "--draw",
        type=picture,
        metavar="PICTURE",
        help="draw the tree of one sentence (.svg, .png or .pdf), with that of the CoNLL-U, if it has one, below the "
        "words. Without a model, the tree of the CoNLL-U is drawn",
    )
    add("--sentence", type=int, metavar="N", help="number of the sentence to draw, from 0 (default: 0)")
    add("--overwrite", action="store_true", help="replace the output if it exists")
    return parser


def main(argv: list[str] | None = None) -> int:
    """Entry point. Exit status: 0, 1 for bad data, 2 for bad usage."""
    parser = build_parser()
    args = parser.parse_args(argv)
    logging.basicConfig(level="WARNING", force=True)
    check_tree_arguments(parser, args)
    if (args.input is None) == (args.subset is None):
        parser.error("give --input or --subset")
    if args.sentence is not None and not args.draw:
        parser.error("--sentence is of use with --draw only")
    if not args.path and not (args.draw and args.input and _is_conllu(args.input) and not args.output):
        parser.error("give DATA and --path; without a model there is only --input FILE.conllu --draw PICTURE")
    if args.subset and args.bpe:
        parser.error("--bpe: a --subset is cut already")
    return exit_status(parser.prog, lambda: run(args))


def run(args: argparse.Namespace) -> None:
    """Find the trees and write them.

    Raises:
        ValueError: the model has no trees, or the text does not fit it.
        OSError: a file is missing.
    """
    refuse_existing([args.output, args.draw], args.overwrite)
    if not args.path:
        tree = nth(_read_trees(args), args.sentence or 0)
        if not tree.is_parsed:
            raise TreeFormatError(f"{args.input}:{tree.line}: the sentence has no tree (HEAD is _)")
        _draw(args, tree, tree.heads, labels=tree.deprels)
        return
    loaded = load_with_trees(args)
    inducer = TreeInducer(loaded, args.decoder, args.evidence, args.batch_size)
    sentences = read_text(args, loaded)
    if args.draw:
        # the one sentence first: a number that does not exist should not take long
        if args.output:
            sentences = list(sentences)
        sentence, source = nth(sentences, args.sentence or 0)
        given = {}
        if sentence.is_parsed and len(sentence):
            given = {"gold": sentence.heads, "gold_labels": sentence.deprels}
        _draw(args, sentence, inducer([source])[0], f"{loaded.name}: ", **given)
    if args.output or not args.draw:
        _write(args, sentences, inducer)
    if inducer.note(args):
        print(f"fairseq-syntax trees: {inducer.note(args)}", file=sys.stderr)


def _write(args: argparse.Namespace, sentences, inducer: TreeInducer) -> None:
    cyclic = total = 0
    sentences = iter(sentences)
    # many batches at once, so that sentences of one length meet
    with written(args.output or STDIO) as out, tqdm(unit="sent") as bar:
        while chunk := list(islice(sentences, 64 * args.batch_size)):
            trees = inducer([source for _, source in chunk], bar)
            for (sentence, _), heads in zip(chunk, trees, strict=True):
                cyclic += find_cycle(heads) is not None
                labels = universal_labels(heads, ["dep"] * len(heads))
                out.write(format_sentence(dataclasses.replace(sentence, heads=heads, deprels=labels)))
            total += len(chunk)
    if cyclic:
        print(
            f"fairseq-syntax trees: {cyclic} of {total} sentences have cycles, so that programs which demand trees "
            "will refuse them; --decoder mst has none",
            file=sys.stderr,
        )


def _draw(args: argparse.Namespace, sentence: Sentence, heads, name: str = "", **trees) -> None:
    if not len(sentence):
        raise ValueError(f"--sentence {args.sentence or 0}: has no words; give another")
    title = f"{name}{args.subset or args.input} {args.sentence or 0}"
    if "gold" in trees:
        title += "  (below: the given tree; dashed: not in it)"
    tags = sentence.upos if any(tag != "_" for tag in sentence.upos) else None
    save_figure(draw_tree(sentence.forms, heads, tags=tags, title=title, **trees), args.draw)
    print(args.draw, file=sys.stderr)


# --- what to parse ------------------------------------------------------------------------------------------------


def _is_conllu(path: str) -> bool:
    return path.removesuffix(".gz").endswith(".conllu")


def nth(items: Iterable, number: int):
    """The item of this number, from 0; ValueError if there are not so many."""
    count = 0
    for count, item in enumerate(items, 1):
        if count == number + 1:
            return item
    raise ValueError(f"--sentence {number}: there are {count} sentences, numbered from 0")


def _read_trees(args: argparse.Namespace) -> Iterator[Sentence]:
    for sentence in read_conllu(args.input):
        yield sentence.collapse_ranges() if args.collapse_ranges else sentence


def read_text(args: argparse.Namespace, loaded: Loaded) -> Iterator[tuple[Sentence, CutSentence]]:
    """Sentences to write, with what is shown to the model."""
    cutter = Cutter(args, loaded)
    if args.subset:
        yield from _read_split(loaded, args.subset, cutter)
    elif _is_conllu(args.input):
        for sentence in _read_trees(args):
            yield sentence, cutter.of_words(sentence.forms, f"{args.input}:{sentence.line}")
    else:
        name = input_name(args.input)
        for number, line in enumerate(input_lines(args.input), 1):
            words, source = cutter.of_tokens(line.split(), f"{name}:{number}")
            yield _plain(words), source


def _plain(words: list[str]) -> Sentence:
    blank = ["_"] * len(words)
    return Sentence(words, [UNPARSED] * len(words), blank, blank)


def _read_split(loaded: Loaded, subset: str, cutter: Cutter) -> Iterator[tuple[Sentence, CutSentence]]:
    """The source side of a split. Its unknown pieces are written as `<unk>`.

    Where words end is taken from the stored syntax, if the split has it: a piece that is unknown hides that.
    """
    split = loaded.load_split(subset)
    cfg = loaded.task.cfg
    prefix = split_prefix(utils.split_paths(cfg.data)[0], subset, cfg.source_lang, cfg.target_lang)
    stored = None if prefix is None else ArrayReader(f"{prefix}.words")
    dictionary = loaded.task.source_dictionary
    for i in range(len(split)):
        ids = [token for token in split.src[i].tolist() if token not in (dictionary.eos(), dictionary.bos())]
        pieces = [dictionary[token] for token in ids]
        place = f"{subset}, sentence {i}"
        if stored is not None and len(stored[i]) == len(pieces) + 1:
            of_token = stored[i][:-1].astype(np.int64).tolist()
            words = [
                "".join(_text(piece) for piece, word in zip(pieces, of_token, strict=True) if word == number)
                for number in range(int(stored[i][-1]))
            ]
            yield _plain(words), CutSentence(pieces, of_token, len(words), place)
        else:
            words, source = cutter.of_tokens(pieces, place)
            yield _plain(words), source


def _text(piece: str) -> str:
    """A piece without the marks of either way to cut."""
    return piece.removesuffix("@@").removeprefix("\u2581")


if __name__ == "__main__":
    sys.exit(main())
