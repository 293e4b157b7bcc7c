"""fairseq-syntax attachment: score latent trees against a treebank (Tran & Bisk 2018, Table 3).

For DA and UA, punctuation (UPOS PUNCT) is removed from both trees: a word whose head is punctuation moves to its
nearest ancestor that is not, or becomes a root if there is no such ancestor.
  DA   directed: % of words with the right head; a root is right if it is predicted to be one
  UA   undirected: % of words whose arc is right in either direction; roots as in DA
  UAS  % of all words, punctuation included, with the right head
  L    baseline: the head of each word is the next one, and the last is the root
  R    baseline: the head of each word is the previous one, and the first is the root
Without a model or --predicted, only the baselines are scored.

--grammar adds a table of the tags of heads and dependents (Table 4): the row VERB NOUN gives the percentage of nouns
among the dependents of verbs. --sharpness shows how certain a model is about heads (Hashimoto & Tsuruoka 2017, Sec.
6.2):
  entropy     mean entropy of a word's heads, in nats; 0 is certainty
  % of log N  the same, as a percentage of its maximum in a sentence of N words
  max p       mean probability of the most probable head
  % trees     graphs whose most probable heads form a tree

examples:
  fairseq-syntax attachment data-bin --path checkpoint_best.pt --gold en_ewt.test.conllu.gz
  fairseq-syntax attachment --predicted trees.conllu --gold en_ewt.test.conllu.gz --by deprel --grammar
"""

import argparse
import sys
from collections.abc import Iterable

from ..evaluate.tables import format_table
from ..files import written
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
    add(
        "--grammar",
        type=verb.positive,
        nargs="?",
        const=20,
        metavar="N",
        help="also show the N most frequent pairs of tags of a head and its dependent (without a value: 20)",
    )
    add("--sharpness", action="store_true", help="also show how certain a model is about the heads of words")
    verb.add_format(parser)
    add("--output", metavar="FILE", help="record of the scores, as JSON; - is stdout, instead of the tables")
    verb.add_shared(parser, "--overwrite")


def check(parser: argparse.ArgumentParser, args: argparse.Namespace) -> None:
    verb.check_checkpoint_arguments(parser, args, required=False)
    if args.path and args.predicted:
        parser.error("give DATA and --path, or --predicted, not both")
    if args.sharpness and not args.path:
        parser.error("--sharpness: needs a model; give DATA and --path")
    if args.output and not (args.path or args.predicted):
        parser.error("--output: a record needs trees; give DATA and --path, or --predicted")


def read_predicted(path: str, gold: list[Sentence], gold_path: str) -> list[list[int]]:
    """Heads from a file of trees. Raises TreeFormatError unless they are over the words of the treebank."""
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
    """Tables of attachment scores of predicted trees, if any, and of the baselines; optionally also by relation."""
    from ..evaluate.treebank import TREES

    scores_of = {name if key == TREES else key: scores for key, scores in treebank.scores(predicted).items()}
    rows = [(system, *(scores[key] for key in ("DA", "UA", "UAS"))) for system, scores in scores_of.items()]
    tables = [format_table(["system", "DA", "UA", "UAS"], rows, form)]
    if by_relation:
        header = ["relation", "words", *(f"{score} {system}" for system in scores_of for score in ("DA", "UA"))]
        columns = [scores["relations"] for scores in scores_of.values()]
        rows = [
            (relation, first["words"], *(of[relation][score] for of in columns for score in ("DA", "UA")))
            for relation, first in columns[0].items()
        ]
        tables.append(format_table(header, rows, form))
    return tables


def grammar_table(treebank, name: str, predicted: list[list[int]] | None, most: int, form: str) -> str:
    """The most frequent pairs of head and child tags of a treebank, with their percentages there and in other trees."""
    from ..evaluate.treebank import Grammar

    heads = {"gold": treebank.heads, **treebank.baselines()}
    if predicted is not None:
        heads[name] = treebank.without_punctuation(predicted)
    grammars = {system: Grammar.of(of_system, treebank.upos) for system, of_system in heads.items()}
    rules = grammars["gold"].frequent(most)
    rows = [(*rule, *(grammar.share(*rule) for grammar in grammars.values())) for rule in rules]
    return format_table(["head", "child", *grammars], rows, form)


def sharpness_table(treebank, name: str, graphs: list, form: str) -> str:
    """The table of a model's `sharpness` on the scored sentences."""
    from ..evaluate.treebank import sharpness

    measures = sharpness([graph.probabilities for graph, kept in zip(graphs, treebank.kept, strict=True) if kept])
    row = [name, f"{measures.entropy:.3f}", measures.share, f"{measures.top:.3f}", measures.trees]
    return format_table(["system", "entropy", "% of log N", "max p", "% trees"], [row], form)


def run(args: argparse.Namespace) -> None:
    from ..evaluate.treebank import Treebank

    gold = list(read_conllu(args.gold))
    if args.collapse_ranges:
        gold = [sentence.collapse_ranges() for sentence in gold]
    name, predicted, graphs, note = args.predicted, None, [], ""
    if args.predicted:
        predicted = read_predicted(args.predicted, gold, args.gold)
    elif args.path:
        from .latent_trees import Cutter, TreeInducer
        from .models import load

        loaded = load(args.path, args.data, args.cpu)
        inducer = TreeInducer(loaded, args.decoder, args.evidence, args.batch_size)
        cutter = Cutter(loaded, args.subword_type)
        with progress_bar(total=len(gold), unit="sent") as bar:
            graphs = inducer.graphs([cutter.of_words(s.forms, f"{args.gold}:{s.line}") for s in gold], bar)
        name, predicted, note = loaded.architecture, [graph.heads for graph in graphs], inducer.note()
    treebank = Treebank(gold, args.min_words)
    if not treebank.scored:
        raise ValueError(f"{args.gold}: no sentence with a tree and {args.min_words} or more words; give a treebank")
    if args.output:
        with written(args.output) as out:
            out.write(treebank.record(predicted, f"{args.decoder} {args.evidence}" if args.path else "given"))
    if args.output != "-":
        tables = attachment_tables(treebank, name, predicted, args.by == "deprel", args.format)
        tables += [grammar_table(treebank, name, predicted, args.grammar, args.format)] if args.grammar else []
        tables += [sharpness_table(treebank, name, graphs, args.format)] if args.sharpness else []
        print("\n\n".join(tables))
    kept = int(treebank.kept.sum())
    short = f"fewer than {args.min_words} words" if args.min_words > 1 else "only punctuation"
    print(
        f"{kept} sentences, {treebank.words} words, {treebank.scored} of them not punctuation; "
        f"{len(gold) - kept} sentences left out (no tree, or {short})",
        file=sys.stderr,
    )
    if note:
        print(f"fairseq-syntax attachment: {note}", file=sys.stderr)


main = verb.Verb(
    __doc__, add_arguments, run, check, outputs=("output",), inputs=lambda args: [args.gold, args.predicted]
)
