"""fairseq-syntax attachment: score latent trees against a treebank (Tran & Bisk 2018, Table 3).

For DA and UA, punctuation (UPOS PUNCT) is removed from both trees: a word whose head is punctuation moves to its
nearest ancestor that is not, or becomes a root if there is no such ancestor.
  DA   directed: % of words with the right head; a root is right if it is predicted to be one
  UA   undirected: % of words whose arc is right in either direction; roots as in DA
  UAS  % of all words, punctuation included, with the right head
  L    baseline: the head of each word is the next one, and the last is the root
  R    baseline: the head of each word is the previous one, and the first is the root
Without a model or --predicted, only the baselines are scored.

examples:
  fairseq-syntax attachment data-bin --path checkpoint_best.pt --gold en_ewt.test.conllu.gz
  fairseq-syntax attachment --predicted trees.conllu --gold en_ewt.test.conllu.gz --by deprel
"""

import argparse
import sys
from collections.abc import Iterable

from ..evaluate.tables import format_table
from ..progress import progress_bar
from ..trees.conllu import Sentence, TreeFormatError, quoted, read_conllu
from . import verb


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    verb.add_checkpoint_arguments(parser)
    verb.add_shared(parser, "--subword-type")
    verb.add_tree_arguments(parser)
    add("--gold", required=True, metavar="FILE", help="treebank (CoNLL-U, plain or .gz)")
    add("--predicted", metavar="FILE", help="trees of the same words (CoNLL-U), instead of DATA and --path")
    verb.add_shared(parser, "--collapse-ranges")
    add(
        "--min-words",
        type=verb.positive,
        default=1,
        metavar="N",
        help="leave out sentences with fewer words, not counting punctuation; one-word sentences are always right "
        "(default: 1)",
    )
    add("--by", choices=["deprel"], help="also show the recall of each gold relation")
    verb.add_format(parser)


def check(parser: argparse.ArgumentParser, args: argparse.Namespace) -> None:
    verb.check_checkpoint_arguments(parser, args, required=False)
    if args.path and args.predicted:
        parser.error("give DATA and --path, or --predicted, not both")


def read_predicted(path: str, gold: list[Sentence], gold_path: str) -> list[list[int]]:
    """Read heads from a file of trees. Raises TreeFormatError unless they are over the words of the treebank."""
    trees = list(read_conllu(path))
    if len(trees) != len(gold):
        raise TreeFormatError(
            f"{path}: {len(trees)} sentences, but {gold_path} has {len(gold)}; parse exactly this text"
        )
    heads = []
    for parse, sentence in zip(trees, gold, strict=True):
        candidates = (parse, parse.collapse_ranges())
        tree = next((tree for tree in candidates if _lower(tree.forms) == _lower(sentence.forms)), None)
        if tree is None:
            raise TreeFormatError(
                f"{path}:{parse.line}: the words are {quoted(' '.join(parse.forms))}, but at "
                f"{gold_path}:{sentence.line} {quoted(' '.join(sentence.forms))}; parse the words of the treebank"
            )
        if sentence.is_parsed and not tree.is_parsed:
            raise TreeFormatError(f"{path}:{tree.line}: the sentence has no tree (HEAD is _); parse it")
        heads.append(tree.heads)
    return heads


def _lower(words: Iterable[str]) -> list[str]:
    return [word.lower() for word in words]


def attachment_tables(
    treebank, name: str, predicted: list[list[int]] | None, by_relation: bool, form: str
) -> list[str]:
    """Tables of attachment scores of the baselines and of predicted trees, if any; optionally also by relation."""
    from ..evaluate.treebank import TREES

    by_system = {name if key == TREES else key: scores for key, scores in treebank.scores(predicted).items()}
    rows = [(system, *(scores[key] for key in ("DA", "UA", "UAS"))) for system, scores in by_system.items()]
    tables = [format_table(["system", "DA", "UA", "UAS"], rows, form)]
    if by_relation:
        header = ["relation", "words", *(f"{score} {system}" for system in by_system for score in ("DA", "UA"))]
        columns = [scores["relations"] for scores in by_system.values()]
        rows = [
            (relation, first["words"], *(column[relation][score] for column in columns for score in ("DA", "UA")))
            for relation, first in columns[0].items()
        ]
        tables.append(format_table(header, rows, form))
    return tables


def run(args: argparse.Namespace) -> None:
    from ..evaluate.treebank import Treebank

    gold = list(read_conllu(args.gold))
    if args.collapse_ranges:
        gold = [sentence.collapse_ranges() for sentence in gold]
    name, predicted, note = args.predicted, None, ""
    if args.predicted:
        predicted = read_predicted(args.predicted, gold, args.gold)
    elif args.path:
        from .latent_trees import Cutter, TreeInducer
        from .loaded_model import load_model

        loaded = load_model(args.path, args.data, args.cpu)
        inducer = TreeInducer(loaded, args.decoder, args.evidence, args.batch_size)
        cutter = Cutter(loaded, args.subword_type)
        with progress_bar(total=len(gold), unit="sent") as bar:
            graphs = inducer.graphs([cutter.cut_words(s.forms, f"{args.gold}:{s.line}") for s in gold], bar)
        name, predicted, note = loaded.architecture, [graph.heads for graph in graphs], inducer.note()
    treebank = Treebank(gold, args.min_words)
    if not treebank.scored:
        raise ValueError(f"{args.gold}: no sentence with a tree and {args.min_words} or more words; give a treebank")
    print("\n\n".join(attachment_tables(treebank, name, predicted, args.by == "deprel", args.format)))
    kept = int(treebank.kept.sum())
    short = f"fewer than {args.min_words} words" if args.min_words > 1 else "only punctuation"
    print(
        f"{kept} sentences, {treebank.words} words, {treebank.scored} of them not punctuation; "
        f"{len(gold) - kept} sentences left out (no tree, or {short})",
        file=sys.stderr,
    )
    if note:
        print(f"fairseq-syntax attachment: {note}", file=sys.stderr)


main = verb.Verb(__doc__, add_arguments, run, check, inputs=lambda args: [args.gold, args.predicted])
