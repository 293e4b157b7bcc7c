"""fairseq-syntax look: draw the trees, heads, graphs, attention, gates or constituents of a model.

It draws every kind of picture that the model supports, or only those of --kind:
  tree         latent tree
  graph        latent graph: the arcs above a probability. Below the words of both is the tree of the input
  heads        source side: attention heads that learn from trees, in the first layer that has them; for models with
               latent trees, the probability of every head for every dependent, root first. If a tree is given or
               read, the parent of every word is framed
  annotations  the syntactic annotation of every source token
The other kinds show the decoder, with the reference of a split, or with its own translation of a text:
  translation  attention of each word of the translation to the source words
  syntax       the same for attention to syntax, where it has weights of its own
  gate         use of syntax: tokens coloured by the norm of the gate
  position     the predicted position, over the attention around it

Text is raw where the data say how it was segmented; otherwise, its tokens are separated by spaces, and are joined into
words by --subword-type. --output writes the latent trees of all sentences, and draws nothing unless --draw is given;
words, comments, multi-word ranges and UPOS of CoNLL-U input are kept; the only labels are root and dep. --tags counts
how often each tag has the highest gate of its sentence (Tran & Bisk 2018, Sec. 5), and draws nothing unless told.

The constituents of a latent_tree_rnng are in what fairseq-generate prints with --rnng-tree-output.

examples:
  fairseq-syntax look agreement-dasa --text "the dogs near the cat see the bird ."
  fairseq-syntax look data-bin --path checkpoint_best.pt --subset test --sentence 3 --kind heads --draw map.png
  fairseq-syntax look data-bin --path sa_nmt.pt --input test.en --output test.en.conllu
  fairseq-syntax look --constituents trees.txt --sentence 5 --draw pictures
"""

import argparse
import dataclasses
import logging
import sys
from collections.abc import Sequence
from itertools import islice
from pathlib import Path

from ..files import refuse_existing, written
from ..trees.conllu import Sentence, TreeFormatError, format_sentence
from ..trees.text import numbered_lines
from ..trees.universal_dependencies import universal_labels
from . import verb

logger = logging.getLogger(__name__)

KINDS = ("heads", "tree", "graph", "annotations", "translation", "syntax", "gate", "position")


def look(
    model,
    sentence: str | Sentence,
    kinds: Sequence[str] | None = None,
    decoder: str = "mst",
    evidence: str = "scores",
    threshold: float = 0.1,
    **search,
) -> dict:
    """Draw pictures of a model's analysis of a sentence; returns kind -> matplotlib figure.

    Args:
        model: model from `loaded_model.load_model`, or name of a bundled one, such as `agreement-dasa`.
        sentence: text as the model reads it, words with their tree, or a `Shown`, such as one from a split.
        kinds: names from `KINDS`; None for all that the model supports.
        decoder, evidence: decoder of the latent tree, see `latent_trees.TreeInducer`.
        threshold: lowest probability of arcs in the graph.
        search: options of fairseq-generate for the translation.

    Raises NothingToShow: the model does not support these kinds; ValueError: the sentence cannot be parsed, or is too
    long. If `kinds` is None, heat maps that are too large to read are left out, with a warning.
    """
    from ..pictures.attention_maps import TooLarge
    from .latent_trees import Cutter
    from .loaded_model import NothingToShow, load_model
    from .sentence_pictures import Shown, draw, show_sentence

    loaded = load_model(model) if isinstance(model, str) else model
    shown = sentence
    if not isinstance(sentence, Shown):
        shown = show_sentence(loaded, *Cutter(loaded).cut_sentence(sentence), **search)
    if not len(shown.sentence):
        raise ValueError("the sentence has no words; give another")
    figures, reasons = {}, []
    for kind in kinds or KINDS:
        try:
            figures[kind] = draw(loaded, shown, kind, decoder, evidence, threshold)
        except (NothingToShow, TooLarge) as error:
            if kinds:
                raise
            if isinstance(error, TooLarge):
                logger.warning("--kind %s: %s", kind, error)
            reasons.append(error)
    if not figures:
        raise next((reason for reason in reasons if isinstance(reason, TooLarge)), reasons[0])
    return figures


def write_trees(inducer, sentences, output: str) -> None:
    """Write the latent trees of sentences, pairs of `Sentence` and `CutSentence`, as CoNLL-U."""
    from ..progress import progress_bar

    sentences = iter(sentences)
    # many batches at a time, so that each batch has sentences of similar length
    with written(output) as out, progress_bar(unit="sent") as bar:
        while chunk := list(islice(sentences, 64 * inducer.batch_size)):
            trees = inducer([source for _, source in chunk], bar)
            for (sentence, _), heads in zip(chunk, trees, strict=True):
                labels = universal_labels(heads, ["dep"] * len(heads))
                out.write(format_sentence(dataclasses.replace(sentence, heads=heads, deprels=labels)))


# --- the verb -----------------------------------------------------------------------------------------------------


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    verb.add_checkpoint_arguments(parser)
    verb.add_system(parser)
    verb.add_sentences(parser)
    add("--constituents", metavar="FILE", help="what fairseq-generate has printed with --rnng-tree-output")
    add(
        "--sentence",
        type=int,
        nargs="+",
        metavar="N",
        help="numbers of the sentences to draw, from 0, or as in TS-N (default: 0)",
    )
    add("--kind", nargs="+", choices=KINDS, help="what to draw (default: all that the model supports)")
    add("--draw", metavar="PATH", help="one picture (.svg, .png or .pdf), or a folder for N-KIND.svg (default: look)")
    add("--output", metavar="FILE", help="latent trees of all sentences, CoNLL-U; - is stdout")
    add("--tags", metavar="FILE", help="CoNLL-U of the target side of --subset: which tags have the highest gates")
    add(
        "--threshold",
        type=lambda text: verb.number(text, 1, "probability from 0 to 1"),
        default=0.1,
        metavar="P",
        help="lowest probability of arcs in a graph (default: 0.1)",
    )
    verb.add_tree_arguments(parser)
    verb.add_parsers(parser)
    verb.add_search(parser)
    verb.add_shared(parser, "--overwrite")


def check(parser: argparse.ArgumentParser, args: argparse.Namespace) -> None:
    if sum(option is not None for option in (args.text, args.input, args.subset, args.constituents)) != 1:
        parser.error("give one of --text, --input, --subset and --constituents")
    if args.tags and not args.subset:
        parser.error("--tags: are those of a split; give --subset")
    verb.check_model_arguments(parser, args, required=not args.constituents)
    if _is_picture(args.draw) and max(len(args.sentence or ()), len(args.kind or ())) > 1:
        parser.error(f"--draw {args.draw}: holds one picture; give a folder for several")
    if args.draw and Path(args.draw).suffix and not _is_picture(args.draw):
        parser.error(f"--draw: {args.draw}: give a name that ends in .svg, .png or .pdf, or a folder")


def _is_picture(path: str | None) -> bool:
    return bool(path) and Path(path).suffix.lower() in verb.PICTURES


def run(args: argparse.Namespace) -> None:
    verb.find_model(args)
    if args.constituents:
        _run_constituents(args)
    else:
        _run_model(args)


def _run_model(args: argparse.Namespace) -> None:
    from .latent_trees import Cutter, TreeInducer, nth, read_input
    from .loaded_model import load_model
    from .sentence_pictures import Shown, highest_gates, show_sentence

    places = list(dict.fromkeys(args.sentence or [0]))
    drawn = args.draw or (None if args.output or args.tags else "look")
    pictures = [_path(drawn, place, kind) for place in places for kind in args.kind or KINDS] if drawn else []
    refuse_existing([args.output, *dict.fromkeys(pictures)], args.overwrite)
    verb.refuse_inputs([args.output, *pictures], [args.input])
    loaded = load_model(args.path, args.data, args.cpu)
    if args.subset and loaded.task.target_dictionary is None:
        raise ValueError(f"--subset {args.subset}: the data of {loaded.name} are treebanks; give --input FILE.conllu")
    if args.tags:
        print(highest_gates(loaded, args.subset, args.tags, "text"))
    inducer = TreeInducer(loaded, args.decoder, args.evidence, args.batch_size) if args.output else None
    cutter = Cutter(loaded, args.subword_type)
    sentences = read_input(loaded, cutter, args)
    if drawn:
        # read no more than necessary, so that a wrong number is refused early
        sentences = list(sentences if args.output else islice(sentences, max(0, *places) + 1))
        loaded.choose_parser(args.parser, verb.parser_options(args))
        for place in places:
            sentence, source = nth(sentences, place)
            if not len(sentence):
                raise ValueError(f"--sentence {place}: has no words; give another")
            if args.subset:
                dataset = loaded.load_split(args.subset)
                batch = loaded.to_device(dataset.collater([dataset[place]]))
                shown = Shown(sentence, source, batch, args.subword_type)
            else:
                shown = show_sentence(loaded, sentence, source, args.subword_type, **verb.search_options(args))
            default = ["heads" if loaded.task.target_dictionary is not None else "graph"]
            kinds = args.kind or (default if _is_picture(args.draw) else None)
            figures = look(loaded, shown, kinds, args.decoder, args.evidence, args.threshold)
            _save(figures, drawn, place, args.overwrite)
    if inducer:
        write_trees(inducer, sentences, args.output)
        if note := inducer.note():
            print(f"fairseq-syntax look: {note}", file=sys.stderr)


def _path(path: str, place: int, kind: str) -> str:
    """Path of a picture: `path` itself, or N-KIND.svg if that is a folder."""
    return path if _is_picture(path) else str(Path(path, f"{place}-{kind}.svg"))


def _save(figures: dict, path: str, place: int, overwrite: bool) -> None:
    """Save the pictures of a sentence."""
    from ..pictures.figures import save_figure

    paths = {kind: _path(path, place, kind) for kind in figures}
    refuse_existing(list(paths.values()), overwrite)
    for kind, figure in figures.items():
        save_figure(figure, paths[kind])
        print(paths[kind], file=sys.stderr)


def _run_constituents(args: argparse.Namespace) -> None:
    from ..pictures.attention_maps import TooLarge
    from ..systems.latent_tree.drawing import draw_node_attention, draw_trees
    from ..systems.latent_tree.tree_files import read_tree_file

    name = verb.input_name(args.constituents)
    with verb.open_input(args.constituents) as lines:
        pairs = read_tree_file(numbered_lines(lines, name), name)
    drawn, by_number = args.draw or "look", {pair.sentence: pair for pair in pairs}
    for place in dict.fromkeys(args.sentence or [0]):
        if place not in by_number:
            numbers = f"{len(by_number)}, with numbers from {min(by_number)} to {max(by_number)}"
            raise TreeFormatError(f"--sentence {place}: {name} has no such sentence; it has {numbers}")
        figures = {"trees": draw_trees(pair := by_number[place])}
        try:
            if len(pair.attention) and not _is_picture(drawn):
                figures["attention"] = draw_node_attention(pair)
        except TooLarge as error:
            logger.warning("sentence %d: %s", place, error)
        _save(figures, drawn, place, args.overwrite)


main = verb.Verb(__doc__, add_arguments, run, check)
