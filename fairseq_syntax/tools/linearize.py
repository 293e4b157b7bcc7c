"""fairseq-syntax linearize: make a multi-task corpus, to learn translation and parsing together.

One Transformer learns from two kinds of pairs (Currey & Heafield 2019),
  <translate> source <translate>  ->  target
  <parse> source <parse>          ->  parse of the source, as brackets without words
and translates text between two <translate>. Every line pair of the input gives one <translate> pair, in the same
order, and one <parse> pair, unless the line is empty or has no parse.

examples:
  fairseq-syntax linearize --input bpe/train --output multi/train --source-lang en --target-lang de
  for set in valid test; do
    fairseq-syntax linearize --input bpe/$set --output multi/$set --source-lang en \\
      --target-lang de --translate-only
  done

The first one reads bpe/train.en, bpe/train.de and bpe/train.en.conllu or bpe/train.en.conllu.gz, and writes
multi/train.en and multi/train.de.
"""

import argparse
import os
import sys
from collections.abc import Iterator
from itertools import zip_longest
from pathlib import Path

from ..files import refuse_existing, staged
from ..trees.alignment import explain_misfit, find_trees, fit_tree, pair_examples
from ..trees.conllu import TreeFormatError, parse_block
from ..trees.linearization import linearize
from ..trees.subwords import SubwordType, split_words
from ..trees.text import read_lines
from .verb import Verb, add_shared

TRANSLATE = "<translate>"
PARSE = "<parse>"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--input", required=True, metavar="PREFIX", help="text is in PREFIX.SOURCE and PREFIX.TARGET")
    add("--source-lang", required=True, metavar="SOURCE", help="suffix of the source text")
    add("--target-lang", required=True, metavar="TARGET", help="suffix of the target text")
    add("--output", required=True, metavar="PREFIX", help="prefix of the output, likewise")
    add(
        "--parses", metavar="FILE", help="linearised parses instead of trees, one per line, such as constituency parses"
    )
    add(
        "--symbol",
        choices=["both", "start"],
        default="both",
        help="the task is named at both ends of a source, as by Bugliarello & Okazaki (2020), or at its start "
        "(default: both)",
    )
    add("--translate-only", action="store_true", help="write no <parse> pairs: for validation and test sets")
    add_shared(parser, "--overwrite")
    help = "segmentation of the source, to match the trees (default: subword_nmt, which also fits plain words)"
    add_shared(parser, "--subword-type", default=str(SubwordType.subword_nmt), help=help)


def check(parser: argparse.ArgumentParser, args: argparse.Namespace) -> None:
    if args.source_lang == args.target_lang:
        parser.error(f"--source-lang and --target-lang are both {args.source_lang!r}")
    if args.translate_only and args.parses:
        parser.error("--parses cannot be combined with --translate-only")
    if Path(args.input).resolve() == Path(args.output).resolve():
        parser.error(f"--input and --output are both {args.input!r}")


def linearize_corpus(
    prefix: str,
    output: str,
    languages: tuple[str, str],
    parses: str | None = None,
    translate_only: bool = False,
    subword_type: str = SubwordType.subword_nmt,
    symbol: str = "both",
) -> dict[str, int]:
    """Write both sides of a multi-task corpus, or nothing if that fails; see --help for the arguments.

    Returns `TRANSLATE` and `PARSE` -> number of pairs. Raises TreeFormatError: files do not match, or a tree is
    invalid.
    """
    source, target = (f"{prefix}.{language}" for language in languages)
    streams = {source: ((line, "") for line in read_lines(source)), target: read_lines(target)}
    if parses:
        streams[parses] = read_lines(parses)
    elif not translate_only:
        streams[source] = _parsed_lines(source, subword_type)
    outputs = [Path(f"{output}.{language}") for language in languages]
    counts = {TRANSLATE: 0, PARSE: 0}
    with staged(outputs[0]) as sources, staged(outputs[1]) as targets:
        with (
            open(sources, "w", encoding="utf-8", newline="\n") as first,
            open(targets, "w", encoding="utf-8", newline="\n") as second,
        ):
            for task, source_text, target_text in _pairs(streams):
                ends = [task, source_text, task if symbol == "both" else ""]
                first.write(" ".join(filter(None, ends)) + "\n")
                second.write(target_text + "\n")
                counts[task] += 1
        # a new file must never be next to an old one, even if the program is killed here
        for path in outputs:
            Path(os.path.realpath(path)).unlink(missing_ok=True)
    return counts


def _pairs(streams: dict[str, Iterator]) -> Iterator[tuple[str, str, str]]:
    """Yield (task, source, target) in the order of the output, from (source, parse), target and optional parses."""
    for number, row in enumerate(zip_longest(*streams.values()), 1):
        if None in row:
            shorter = list(streams)[row.index(None)]
            longer = next(name for name, item in zip(streams, row, strict=True) if item is not None)
            raise TreeFormatError(
                f"{shorter}: ends after {number - 1} sentences but {longer} goes on; make all files from the same "
                "text, one line per sentence"
            )
        (source, parse), target, *parses = row
        source, target, parse = (" ".join(text.split()) for text in (source, target, *parses, parse)[:3])
        yield TRANSLATE, source, target
        # an empty target would teach the model to stop at once
        if source and parse:
            yield PARSE, source, parse


def _parsed_lines(source_path: str, subword_type: str) -> Iterator[tuple[str, str]]:
    """Lines of the source, each with its linearised parse; that is empty without a parse."""
    advice = "parse the source with fairseq-syntax parse, or give --parses or --translate-only"
    trees = find_trees(f"{source_path}.conllu", advice)
    with explain_misfit(source_path):
        for line, text, tree_line, block in pair_examples(source_path, trees):
            place = f"{source_path}:{line}"
            words = split_words(text.split(), subword_type, place)[0]
            tree, _ = fit_tree(
                parse_block(block, str(trees), tree_line), words, f"{place} (tree at {trees}:{tree_line})"
            )
            yield text, " ".join(linearize(tree)) if tree.is_parsed else ""


def run(args: argparse.Namespace) -> None:
    languages = (args.source_lang, args.target_lang)
    outputs = [f"{args.output}.{language}" for language in languages]
    refuse_existing(outputs, args.overwrite)
    settings = (args.parses, args.translate_only, args.subword_type, args.symbol)
    counts = linearize_corpus(args.input, args.output, languages, *settings)
    print(
        f"fairseq-syntax linearize: {', '.join(outputs)}: {counts[TRANSLATE]} sentences to "
        f"translate, {counts[PARSE]} to parse",
        file=sys.stderr,
    )


main = Verb(__doc__, add_arguments, run, check)
