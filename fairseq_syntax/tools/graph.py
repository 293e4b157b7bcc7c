"""fairseq-syntax graph: describe, draw or write a model's latent graphs (Hashimoto & Tsuruoka 2017, Sec. 6.2).

The graph has a distribution over heads for every word: the other words and ROOT. Over subwords, probabilities are
averaged for the dependent and summed for the head; an arc inside a word counts as ROOT.

--gold prints, over the sentences with trees:
  entropy       mean entropy of a word's heads, in nats; 0 is certainty
  % of log N    the same, as a percentage of its maximum in a sentence of N words
  max p         mean probability of the most probable head
  % trees       graphs whose most probable heads form a tree
  UAS           % of words with the right head, after --decoder
  UAS no punct  the same without punctuation (UPOS PUNCT)
and, for each gold relation, without punctuation: its words, how many of them have the right head, their percentage of
all right words (share), and of the words of the relation (recall).

--output writes tab-separated columns: sentence, from 0; number of the word, from 1; word; number of the head, 0 for
ROOT; head; probability.

examples:
  fairseq-syntax graph data-bin --path checkpoint_best.pt --gold en_ewt.dev.conllu.gz --lowercase --decoder eisner
  fairseq-syntax graph data-bin --path checkpoint_best.pt --input en_ewt.dev.conllu.gz --lowercase --sentence 3 \\
      --draw graph.svg
  fairseq-syntax graph data-bin --path checkpoint_best.pt --subset test --output edges.tsv --threshold 0.05
"""

import argparse
import sys
from collections.abc import Iterable
from itertools import islice

from tqdm import tqdm

from ..files import refuse_existing, written
from ..trees.conllu import Sentence, read_conllu
from .verb import (
    Verb,
    add_format,
    add_input_arguments,
    add_overwrite,
    add_tree_arguments,
    check_input_arguments,
    check_tree_arguments,
    number,
    picture,
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_tree_arguments(parser)
    add = parser.add_argument
    add("--gold", metavar="FILE", help="treebank (CoNLL-U, plain or .gz): describe the graphs of its sentences")
    add(
        "--min-share",
        type=_percentage,
        default=3.0,
        metavar="PERCENT",
        help="leave out relations with a lower share of the right words (default: 3, as in the paper)",
    )
    add_format(parser)
    add_input_arguments(parser)
    add(
        "--draw",
        type=picture,
        metavar="PICTURE",
        help="draw the graph of one sentence (.svg, .png or .pdf), with the tree of the CoNLL-U, if it has one, below "
        "the words; graphs of a parser have labels",
    )
    add("--output", metavar="FILE", help="arcs of all sentences, tab-separated, gzipped if it ends in .gz; - is stdout")
    add(
        "--threshold",
        type=_probability,
        default=0.1,
        metavar="P",
        help="draw and write arcs that are more probable (default: 0.1)",
    )
    add_overwrite(parser)
    # to tell whether they are given
    parser.set_defaults(decoder=None, evidence=None)


def _percentage(text: str) -> float:
    return number(text, 100, "percentage from 0 to 100")


def _probability(text: str) -> float:
    return number(text, 1, "probability from 0 to 1")


def check(parser: argparse.ArgumentParser, args: argparse.Namespace) -> None:
    check_tree_arguments(parser, args)
    check_input_arguments(parser, args)
    if not args.path:
        parser.error("give DATA and --path")
    if sum(text is not None for text in (args.gold, args.input, args.subset)) != 1:
        parser.error("give one of --gold, --input and --subset")
    if args.gold and (args.draw or args.output):
        parser.error("--draw and --output need --input or --subset")
    if not args.gold and not (args.draw or args.output):
        parser.error("--input and --subset need --draw or --output")
    if not args.gold and (args.decoder or args.evidence):
        parser.error("--decoder and --evidence need --gold; without it, all arcs are drawn and written")


def run(args: argparse.Namespace) -> None:
    """Print the tables, or draw and write the arcs."""
    from ..systems.parser.task import DependencyParsingTask
    from .latent_trees import TreeInducer, load_with_trees
    from .model_input import nth, read_text

    refuse_existing([args.draw, args.output], args.overwrite)
    loaded = load_with_trees(args)
    if args.subset and isinstance(loaded.task, DependencyParsingTask):
        raise ValueError(f"--subset {args.subset}: the data of {loaded.name} are treebanks; give --input FILE.conllu")
    inducer = TreeInducer(loaded, args.decoder or "mst", args.evidence or "scores", args.batch_size)
    if args.gold:
        _describe(args, loaded, inducer)
    else:
        sentences = read_text(args, loaded)
        if args.draw:
            # the one sentence first: a number that does not exist should not take long
            if args.output:
                sentences = list(sentences)
            _draw(args, *nth(sentences, args.sentence or 0), inducer)
        if args.output:
            _write(args, sentences, inducer)
    if inducer.note(args):
        print(f"fairseq-syntax graph: {inducer.note(args)}", file=sys.stderr)


def _describe(args: argparse.Namespace, loaded, inducer) -> None:
    from ..evaluate.tables import format_table
    from .latent_graphs import Scores, sharpness
    from .latent_trees import Cutter
    from .treebank import Treebank

    gold = list(read_conllu(args.gold))
    if args.collapse_ranges:
        gold = [sentence.collapse_ranges() for sentence in gold]
    # the sentences that fairseq-syntax attachment scores
    kept = [sentence for sentence, keep in zip(gold, Treebank(gold).kept, strict=True) if keep]
    if not kept:
        raise ValueError(f"{args.gold}: no sentence with a tree; give a treebank")
    cutter = Cutter(args, loaded)
    with tqdm(total=len(kept), unit="sent") as bar:
        graphs = inducer.graphs([cutter.of_words(s.forms, f"{args.gold}:{s.line}") for s in kept], bar)
    found = sharpness([graph.probabilities for graph in graphs])
    scores = Scores(kept, [graph.heads for graph in graphs])
    header = ["system", "entropy", "% of log N", "max p", "% trees", "UAS", "UAS no punct"]
    row = [loaded.architecture, f"{found.entropy:.3f}", found.share, f"{found.top:.3f}", found.trees]
    print(format_table(header, [[*row, scores.uas, scores.uas_without_punctuation]], args.format))
    relations = scores.relations()
    rows = [
        (relation.name, relation.words, relation.right, relation.share, relation.recall)
        for relation in relations
        if relation.share >= args.min_share
    ]
    print()
    print(format_table(["relation", "words", "right", "share", "recall"], rows, args.format))
    print(
        f"{len(kept)} sentences, {sum(map(len, kept))} words, {sum(relation.words for relation in relations)} of them "
        f"not punctuation; {len(gold) - len(kept)} sentences left out (no tree, or no word but punctuation)",
        file=sys.stderr,
    )


def _draw(args: argparse.Namespace, sentence: Sentence, source, inducer) -> None:
    from ..pictures.figures import save_figure
    from .graph_drawing import draw_graph
    from .latent_graphs import own_labels

    if not len(sentence):
        raise ValueError(f"--sentence {args.sentence or 0}: has no words; give another")
    (graph,) = inducer.graphs([source])
    gold = sentence.heads if sentence.is_parsed else None
    title = f"{inducer.loaded.name}: {args.subset or args.input} {args.sentence or 0}, p > {args.threshold:g}"
    if gold is not None:
        title += "  (below: the given tree; dashed: not in it)"
    tags = sentence.upos if any(tag != "_" for tag in sentence.upos) else None
    figure = draw_graph(
        sentence.forms,
        graph.probabilities,
        threshold=args.threshold,
        tags=tags,
        labels=own_labels(inducer, source),
        gold=gold,
        gold_labels=None if gold is None else sentence.deprels,
        title=title,
    )
    save_figure(figure, args.draw)
    print(args.draw, file=sys.stderr)


def _write(args: argparse.Namespace, sentences: Iterable, inducer) -> None:
    sentences = iter(sentences)
    number = 0
    with written(args.output) as out, tqdm(unit="sent") as bar:
        print("sentence", "number", "word", "head_number", "head", "probability", sep="\t", file=out)
        # many batches at once, so that sentences of one length meet
        while chunk := list(islice(sentences, 64 * args.batch_size)):
            graphs = inducer.graphs([source for _, source in chunk], bar)
            for (sentence, _), graph in zip(chunk, graphs, strict=True):
                out.writelines(_rows(number, sentence.forms, graph, args.threshold))
                number += 1


def _rows(number: int, words: list[str], graph, threshold: float) -> list[str]:
    from .latent_graphs import edges

    names = ["ROOT", *words]
    return [
        f"{number}\t{word + 1}\t{words[word]}\t{head}\t{names[head]}\t{graph.probabilities[word, head]:.4f}\n"
        for word, head in edges(graph.probabilities, threshold).tolist()
    ]


main = Verb(__doc__, add_arguments, run, check)
