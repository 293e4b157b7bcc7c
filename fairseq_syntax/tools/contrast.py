"""fairseq-syntax contrast: measure how often a model prefers the right translation to one with a single mistake.

The model scores both translations of a source, as fairseq-generate --score-reference does; it is right if the correct
one scores higher, and wrong on a tie. Accuracies have Wilson's 95 % intervals, and systems are compared with the first
one by McNemar's exact test. Further tables are broken down by distance, attractors and other columns of the details. If
the model needs trees, the source is parsed; --parser conllu --parser-model FILE reads its trees from a file.

A folder of pairs has src.LANGUAGE, tgt.correct.LANGUAGE and tgt.incorrect.LANGUAGE, one sentence per line, as in
DistilLingEval, and optionally details.tsv: a header, then one row per pair.

With --both-trees, each source has two trees (trees.LANGUAGE.conllu and other.LANGUAGE.conllu in the folder), and the
incorrect translation is the right one under the other tree. The model translates and scores under both (models with
latent trees take the tree instead of their own), and the program counts how often the translation under a tree is its
reference, and how often the model prefers this reference.

examples:
  fairseq-syntax contrast data-bin --path pascal.pt --pairs pairs/agreement --parser conllu \\
      --parser-model pairs/agreement/trees.en.conllu --output pascal.json
  fairseq-syntax contrast data-bin --path lisa.pt --pairs pairs/agreement --beside pascal.json
  fairseq-syntax contrast data-bin --path transformer.pt --pairs lingeval/np_agreement
  fairseq-syntax contrast data-bin --path pascal.pt --pairs pairs/attachment --both-trees --output trees.json
  fairseq-syntax contrast --pairs pairs/agreement --beside transformer.json pascal.json --format markdown
"""

import argparse
import sys
from pathlib import Path

from ..files import written
from ..trees.alignment import align_tree
from ..trees.conllu import Sentence, TreeFormatError, read_conllu
from . import verb

_TREES = "trees", "other"
"""Names of the files of trees in a folder of pairs, for the correct and for the incorrect translation."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    verb.add_checkpoint_arguments(parser)
    add = parser.add_argument
    add("--pairs", metavar="FOLDER", required=True, help="folder of minimal pairs")
    add("--name", help="name of the system (default: file and architecture)")
    add("--score", choices=["sum", "mean"], default="sum", help="sum or mean of token log-probabilities (default: sum)")
    add("--beside", nargs="+", default=[], metavar="FILE", help="records of other systems, the baseline first")
    add("--output", metavar="FILE", help="record of this system, as JSON; - is stdout, instead of the tables")
    add("--source-prefix", default="", metavar="TOKENS", help="tokens to put before every source, such as <translate>")
    add("--source-suffix", default="", metavar="TOKENS", help="tokens to put after every source")
    add("--both-trees", action="store_true", help="score and translate every source under the two trees of the folder")
    verb.add_parsers(parser)
    verb.add_search(parser)
    verb.add_shared(parser, "--max-tokens")
    verb.add_format(parser)
    verb.add_shared(parser, "--overwrite")


def check(parser: argparse.ArgumentParser, args: argparse.Namespace) -> None:
    verb.check_checkpoint_arguments(parser, args, required=False)
    if not args.path and (not args.beside or args.output):
        parser.error("give DATA and --path, or only --beside with existing records")
    if args.both_trees and (args.beside or not args.path):
        parser.error("--both-trees: give a model, without --beside")
    if args.both_trees and (args.score != "sum" or args.source_prefix or args.source_suffix or args.parser):
        parser.error("--both-trees: leave out --score, --parser, --source-prefix and --source-suffix")


def contrast(
    loaded,
    pairs,
    name: str | None = None,
    score: str = "sum",
    source_prefix: str = "",
    source_suffix: str = "",
    max_tokens: int = 4000,
):
    """Score minimal pairs with a model; returns `evaluate.contrast.PairScores`.

    Args:
        loaded: model from `loaded_model.load_model`.
        pairs: pairs from `evaluate.minimal_pairs.read_pairs`.
        name: name of the system.
        score: `sum` or `mean` of token log-probabilities.
        source_prefix, source_suffix: tokens to put before and after every source.
        max_tokens: largest batch, in tokens.

    Raises ValueError: the model does not translate, or a sentence is too long or cannot be parsed.
    """
    from ..evaluate.contrast import PairScores

    if loaded.task.target_dictionary is None:
        raise ValueError(
            f"{loaded.path}: {loaded.architecture} does not score translations; give a model that translates"
        )
    forced = loaded.forced_scores(
        [" ".join(filter(None, (source_prefix, loaded.pieces(source), source_suffix))) for source in pairs.sources],
        [
            [loaded.pieces(text, target=True) for text in pair]
            for pair in zip(pairs.correct, pairs.incorrect, strict=True)
        ],
        [f"{pairs.source_path}:{number}" for number in range(1, len(pairs) + 1)],
        max_tokens,
    )
    scores = (forced.total if score == "sum" else forced.mean).tolist()
    record = PairScores(name or loaded.name, pairs.digest, score, scores[::2], scores[1::2], pairs.details)
    # unknown words can make both members of a pair equal to the model
    notes = (
        [f"{forced.unknown.sum() / forced.tokens.sum():.1%} of the tokens are unknown"] if forced.unknown.any() else []
    )
    if record.ties:
        notes.append(f"{record.ties} pairs are tied, and count as wrong")
    if notes:
        print(f"fairseq-syntax contrast: {loaded.name}: {'; '.join(notes)}", file=sys.stderr)
    return record


def contrast_trees(model, folder: str, name: str | None = None, max_tokens: int = 4000, **search):
    """Translate and score pairs under both trees of each; returns `evaluate.tree_pairs.TreePairs` and the pairs.

    Args:
        model: a `whatif.GivenTrees`.
        folder: folder of pairs, see `evaluate.minimal_pairs.read_pairs`, and of their trees.
        name, max_tokens: see `contrast`.
        search: options of fairseq-generate: `beam`, `max_len_a`, `max_len_b`.

    Raises ValueError: files do not match, or do not fit the model.
    """
    from ..evaluate.minimal_pairs import read_pairs
    from ..evaluate.tree_pairs import TreePairs
    from .latent_trees import Cutter
    from .loaded_model import encode_line, join_words, to_pieces

    loaded, pairs = model.loaded, read_pairs(folder)
    places = [f"{pairs.source_path}:{number}" for number in range(1, len(pairs) + 1)]
    cutter, dictionary = Cutter(loaded), loaded.task.target_dictionary
    cut = [cutter.cut_line(text, place) for text, place in zip(pairs.sources, places, strict=True)]
    both = zip(*(_read_trees(folder, kind, [words for words, _ in cut], places) for kind in _TREES), strict=True)
    encoded = [model.encode(source, tree) for (_, source), trees in zip(cut, both, strict=True) for tree in trees]
    members = [
        [loaded.pieces(text, target=True) for text in texts]
        for texts in zip(pairs.correct, pairs.incorrect, strict=True)
    ]
    # both references under both trees; the four scores of a pair share a batch
    sources = [ids for ids in encoded for _ in range(2)]
    targets = [encode_line(dictionary, text) for texts in members for _ in _TREES for text in texts]
    loaded.check_lengths(
        [(len(s), len(t)) for s, t in zip(sources, targets, strict=True)], [p for p in places for _ in range(4)]
    )
    scores = loaded.total_scores(sources, targets, max_tokens, 4).reshape(-1, 2, 2)
    best = loaded.translate(loaded.as_dataset(encoded), [len(ids) for ids in encoded], max_tokens, **search)
    outputs = [to_pieces(dictionary, hyp["tokens"]) for hyp in best]
    pieces = [text.split() for texts in members for text in texts]
    refs, hyps = (
        [" ".join(join_words(row, loaded.subword_type(None, target=True))[0]) for row in side]
        for side in (pieces, outputs)
    )
    refs, hyps = ([side[i : i + 2] for i in range(0, len(side), 2)] for side in (refs, hyps))
    return TreePairs(name or loaded.name, pairs.digest, refs, hyps, scores.tolist(), pairs.details), pairs


def _read_trees(folder: str, kind: str, words: list[list[str]], places: list[str]) -> list[Sentence]:
    """Read the trees of one kind, for sources with these words and places.

    Raises TreeFormatError: the file is missing, has other words, or has a sentence without a parse.
    """
    files = sorted(Path(folder).glob(f"{kind}.*.conllu*"))
    if len(files) != 1:
        raise TreeFormatError(
            f"{folder}: {len(files)} files {kind}.*.conllu; each pair needs both trees, as "
            "examples/agreement/pairs.py writes them for attachment"
        )
    trees = list(read_conllu(files[0]))
    if len(trees) != len(words):
        raise TreeFormatError(f"{files[0]}: {len(trees)} trees, but there are {len(words)} pairs; give one per pair")
    for tree in trees:
        if not tree.is_parsed:
            raise TreeFormatError(f"{files[0]}:{tree.line}: the sentence has no parse (HEAD is _); parse it")
    return [
        align_tree(tree, forms, f"{place} ({files[0]}:{tree.line})")
        for tree, forms, place in zip(trees, words, places, strict=True)
    ]


def _report(args: argparse.Namespace, record, tables) -> None:
    """Write the record to --output, and print the tables unless that is stdout."""
    if args.output:
        with written(args.output) as out:
            out.write(record.as_json())
    if args.output != "-":
        print(tables())


def run(args: argparse.Namespace) -> None:
    from ..evaluate.contrast import PairScores, check_records, pair_columns, read_record, tables

    if args.both_trees:
        from ..evaluate.tree_pairs import tables as tree_tables
        from .whatif import GivenTrees

        model = GivenTrees(args.path, args.data, args.cpu)
        record, pairs = contrast_trees(model, args.pairs, args.name, args.max_tokens, **verb.search_options(args))
        _report(args, record, lambda: tree_tables(record, pair_columns(pairs), args.format))
        return
    from ..evaluate.minimal_pairs import read_pairs

    pairs = read_pairs(args.pairs)
    records = [read_record(path) for path in args.beside]
    check_records(records)
    if records and records[0].digest != pairs.digest:
        raise ValueError(f"{args.beside[0]}: scores other pairs than {pairs.source_path}; give the same pairs")
    if args.path:
        from .loaded_model import load_model

        loaded = load_model(args.path, args.data, args.cpu)
        name = args.name or loaded.name
        # refuses equal names before anything is scored
        check_records([*records, PairScores(name, pairs.digest, args.score, [], [], pairs.details)])
        loaded.choose_parser(args.parser, verb.parser_options(args))
        ends = args.source_prefix, args.source_suffix
        records.append(contrast(loaded, pairs, name, args.score, *ends, args.max_tokens))
    _report(args, records[-1], lambda: tables(records, pairs, args.format))


main = verb.Verb(__doc__, add_arguments, run, check, outputs=("output",), inputs=lambda args: [args.pairs])
