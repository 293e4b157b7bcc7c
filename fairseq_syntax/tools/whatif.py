"""fairseq-syntax whatif: change the tree of a sentence, and see how its translation changes.

The sentence comes with its tree, from CoNLL-U or a split, or is parsed (--parser). It is translated under this tree and
under others: one with other heads (--head 5=2 attaches word 5 to word 2; 0 makes it the root), or those of a file over
the same words (--trees). The output shows the trees, with a * for differences from the first; every translation, with
its log-probability under each tree; and the source word that each word of a translation attends to most. The edited
tree must have one root.

A model that reads trees reads this one, and attends by it where it would predict one; in a model with latent trees, it
replaces the probabilities of heads (subwords attach to the first one of their word). Such models also translate under
their own tree; without a parse, the edit starts from their best tree.

examples:
  fairseq-syntax whatif agreement-pascal --text "some teachers had found the fields in the schools ." --head 9=4
  fairseq-syntax whatif data-bin --path pascal.pt --subset test --sentence 3 --head 8=5 --draw whatif.svg
  echo 'the dog saw the cat in the garden .' | fairseq-syntax whatif data-bin --path pascal.pt --input - --head 8=5 \\
      --label 8=nmod
  fairseq-syntax whatif data-bin --path pascal.pt --input one.conllu --trees other.conllu
"""

import argparse
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import zip_longest

from ..data.parsers import ParserOptions
from ..evaluate.tables import format_table
from ..trees.alignment import align_tree
from ..trees.conllu import Sentence, TreeFormatError, quoted, read_conllu, without_parse
from ..trees.edits import edited
from . import verb

MINUS = "\N{MINUS SIGN}"


@dataclass(frozen=True)
class Reading:
    """A tree of a sentence, and a model's translation under it.

    Attributes:
        name: name in tables and pictures.
        tree: tree over the words; None without a parse.
        free: whether it is the model's latent tree, so that the model translates without a given tree.
        words: words of the translation.
        scores: natural log-probability of this translation under each of the trees.
        attention: (I, J) attention of target words to source words, see `word_attention`.
    """

    name: str
    tree: Sentence | None
    free: bool = False
    words: Sequence[str] = ()
    scores: Sequence[float] = ()
    attention: object = None


@dataclass
class WhatIf:
    """A sentence under several trees, which are compared with the first.

    Attributes:
        words: words of the sentence.
        readings: one reading per tree.
        notes: messages about changes without effect.
    """

    words: list[str]
    readings: list[Reading]
    notes: list[str] = field(default_factory=list)

    def tables(self, form: str = "text") -> str:
        """Tables of trees, of translations with scores, and of each target word with its most attended source word."""
        words, first = self.words, self.readings[0].tree
        names = [reading.name for reading in self.readings]
        rows = [
            (str(number), word, *(_head(words, reading.tree, first, number - 1) for reading in self.readings))
            for number, word in enumerate(words, 1)
        ]
        shown = [format_table(["", "word", *names], rows, form)]
        header = ["tree", *(f"log p ({name})" for name in names), "translation"]
        rows = [(r.name, *(f"{score:.2f}" for score in r.scores), " ".join(r.words)) for r in self.readings]
        shown.append(format_table(header, rows, form))
        looks = [_most(words, reading) for reading in self.readings]
        rows = [tuple(cell for three in line for cell in three) for line in zip_longest(*looks, fillvalue=("", "", ""))]
        shown.append(format_table([cell for name in names for cell in (name, "looks at", "weight")], rows, form))
        return "\n\n".join(shown)

    def figure(self):
        """A matplotlib figure with each tree and the translation under it, one below the other."""
        from ..pictures.tree_variants import Variant, draw_variants

        variants = [
            Variant(
                reading.name,
                *((reading.tree.heads, reading.tree.deprels) if reading.tree else (None, None)),
                reading.words,
                f"log p {reading.scores[number]:.2f}".replace("-", MINUS),
            )
            for number, reading in enumerate(self.readings)
        ]
        return draw_variants(self.words, variants)


def _head(words: Sequence[str], tree: Sentence | None, first: Sentence | None, word: int) -> str:
    """The head of a word and its label, with a star if they differ from the first tree."""
    if tree is None:
        return "-"
    head, label = tree.heads[word], tree.deprels[word]
    star = "" if first is None or (head, label) == (first.heads[word], first.deprels[word]) else " *"
    return f"{head + 1} {words[head] if head >= 0 else 'ROOT'}{'' if label == '_' else f' ({label})'}{star}"


def _most(words: Sequence[str], reading: Reading) -> list[tuple[str, str, str]]:
    """Each word of the translation, the source word that it attends to most, and the weight."""
    best = reading.attention.argmax(axis=1) if reading.attention.size else []
    return [
        (word, words[i], f"{reading.attention[row, i]:.2f}")
        for row, (word, i) in enumerate(zip(reading.words, best, strict=True))
    ]


class GivenTrees:
    """A model that translates under given trees.

    Models that read trees do so anyway, and LISA with `--lisa-gold-parses`; in models with latent trees, the given tree
    replaces the distribution over heads (`clamped_by`).

    Args:
        path, data, cpu: see `loaded_model.load_model`.

    Attributes:
        loaded: the model.
        latent: whether it has latent trees.
        tags_only: whether it only reads labels or tags of words, not heads.

    Raises ValueError as `loaded_model.load_model` does, or if the model takes no dependency tree.
    """

    def __init__(self, path: str, data: str | None = None, cpu: bool = False):
        from ..data.arrays import TAG_DICTIONARIES
        from .loaded_model import load_model

        self.loaded = load_model(path, data, cpu, lisa_gold_parses=True)
        task, model = self.loaded.task, self.loaded.model
        reads = set(getattr(model, "syntax_inputs", ()))
        clamped = set(getattr(model, "clamped_by", ()))
        if not (reads or clamped) or task.target_dictionary is None:
            raise ValueError(
                f"{path}: {self.loaded.architecture} takes no dependency tree: it neither reads trees nor has its own"
            )
        self.latent = not reads
        self.tags_only = bool(reads) and reads <= TAG_DICTIONARIES.keys()
        task.required_inputs |= clamped
        self._dictionaries = {
            name: task.syntax_dictionary(name) for name in TAG_DICTIONARIES.keys() & task.required_inputs
        }

    def encode(self, source, tree: Sentence | None):
        """Token ids of a `CutSentence`, EOS included, with its tree attached; None for a sentence without a parse.

        Raises TreeFormatError: the model does not know a label.
        """
        from ..data.live_parsing import token_syntax
        from .loaded_model import encode_line

        task = self.loaded.task
        if tree is None or not tree.is_parsed:
            tree = without_parse([""] * source.words)
        task.learn_source_words([" ".join(source.pieces)])
        ids = encode_line(task.source_dictionary, source.pieces)
        ids.syntax = token_syntax(tree, source.token_words, self._dictionaries)
        return ids

    def notes(self, heads: Mapping[int, int], labels: Mapping[int, str], trees: Sequence[Sentence]) -> list[str]:
        """Messages about edits of heads or labels that have no effect, and about unknown tags of trees."""
        messages = []
        if heads and not labels and self.tags_only:
            messages.append("the model reads only labels and tags, so changed heads have no effect; give --label, too")
        if labels.keys() - heads.keys() and "deprels" not in self._dictionaries:
            messages.append("the model reads no labels, so --label has no effect")
        unknown = {
            tag
            for name, dictionary in self._dictionaries.items()
            for tree in trees
            for tag in getattr(tree, name)
            if dictionary.index(tag) == dictionary.unk()
        }
        if unknown:
            messages.append(f"labels or tags that the model has not seen in training: {', '.join(sorted(unknown))}")
        return messages

    def parse(self, sentence: Sentence, parser: str | None, options: ParserOptions, place: str) -> Sentence:
        """Parse a sentence with `parser`, or with that of the model's checkpoint.

        Raises TreeFormatError: it cannot be parsed.
        """
        self.loaded.choose_parser(parser, options)
        tree = align_tree(self.loaded.task.load_parser().parse([sentence.forms])[0], sentence.forms, place)
        if not tree.is_parsed:
            raise TreeFormatError(f"{place}: {quoted(' '.join(sentence.forms))} has no parse; give one to change")
        return tree


def whatif(
    model: GivenTrees | str,
    sentence: str | Sentence | tuple,
    heads: Mapping[int, int] | None = None,
    labels: Mapping[int, str] | None = None,
    trees: str | None = None,
    no_parse: bool = False,
    subword_type: str | None = None,
    parser: str | None = None,
    options: ParserOptions | None = None,
    **search,
) -> WhatIf:
    """Change the tree of a sentence, and compare the translations, scores and attention.

    Args:
        model: a model, or the name of a bundled one, such as `agreement-pascal`.
        sentence: text as the model reads it, words with their tree, or a `Sentence` with its `CutSentence`, see
            `latent_trees.read_sentences`.
        heads: word -> new head, numbered from 1; 0 makes it the root.
        labels: word -> new label.
        trees: CoNLL-U file; its trees over the same words are compared, too.
        no_parse: whether to translate without a parse, too.
        subword_type: segmentation of the text; None for that of the model's data.
        parser, options: parser for a sentence without a tree; None for that of the model's checkpoint.
        search: options of fairseq-generate: `beam`, `max_len_a`, `max_len_b`.

    Raises ValueError: the model takes no tree, or the sentence is too long for it; TreeFormatError: the edits make no
    tree, or change nothing, or the file has no tree over these words.
    """
    from .latent_trees import Cutter

    model = GivenTrees(model) if isinstance(model, str) else model
    if not isinstance(sentence, tuple):
        sentence = Cutter(model.loaded, subword_type).cut_sentence(sentence)
    sentence, source = sentence
    if not len(sentence):
        raise TreeFormatError(f"{source.place}: the sentence has no words; give another")
    readings = _readings(model, sentence, source, parser, options or ParserOptions())
    tree, heads, labels = readings[-1].tree, heads or {}, labels or {}
    if heads or labels:
        changed = edited(tree, heads, labels)
        if (changed.heads, changed.deprels) == (tree.heads, tree.deprels):
            raise TreeFormatError(f"{source.place}: the tree is so already; name another --head or --label")
        readings.append(Reading("changed", changed))
    if trees:
        readings += _others(trees, tree)
    if no_parse and not model.latent:
        readings.append(Reading("no parse", None))
    notes = model.notes(heads, labels, [reading.tree for reading in readings if reading.tree])
    return WhatIf(sentence.forms, _translated(model, source, readings, subword_type, search), notes)


def _readings(model: GivenTrees, sentence: Sentence, source, parser: str | None, options: ParserOptions):
    """Readings of the model's latent tree, if it has one, and of the tree to be edited, which is the last."""
    if not model.latent:
        parsed = sentence if sentence.is_parsed else model.parse(sentence, parser, options, source.place)
        return [Reading("original", parsed)]
    from .latent_trees import TreeInducer

    heads = TreeInducer(model.loaded)([source])[0]
    own = replace(sentence, heads=heads, deprels=["_"] * len(heads))
    reading = Reading("original", sentence) if sentence.is_parsed else Reading("its own best", own)
    return [Reading("its own", own, free=True), reading]


def _others(path: str, first: Sentence) -> list[Reading]:
    """Read the trees of a file over the words of `first`, without repetitions and `first` itself."""
    readings: list[Reading] = []
    seen = [(first.heads, first.deprels)]
    for tree in read_conllu(path):
        tree = tree if tree.forms == first.forms else tree.collapse_ranges()
        if tree.forms == first.forms and tree.is_parsed and (tree.heads, tree.deprels) not in seen:
            seen.append((tree.heads, tree.deprels))
            readings.append(Reading(f"line {tree.line}", tree))
    if not readings:
        raise TreeFormatError(
            f"{path}: no other tree over the words {quoted(' '.join(first.forms))}; give another file"
        )
    return readings


def _translated(model: GivenTrees, source, trees: list[Reading], subword_type: str | None, search: dict):
    """Complete readings with translations, scores and attention."""
    from .loaded_model import join_words, to_pieces
    from .word_attention import word_attention

    loaded = model.loaded
    encoded = [model.encode(source, None if reading.free else reading.tree) for reading in trees]
    lengths = [len(ids) for ids in encoded]
    loaded.check_lengths([(length, 0) for length in lengths], [source.place] * len(trees))
    hyps = [hyp["tokens"].cpu() for hyp in loaded.translate(loaded.as_dataset(encoded), lengths, 10**6, **search)]
    # score every translation under every tree
    pairs = [(tree, hyp) for hyp in hyps for tree in encoded]
    scores = loaded.total_scores([tree for tree, _ in pairs], [hyp for _, hyp in pairs], 10**6)
    subword_type = loaded.subword_type(subword_type, target=True)
    target = [join_words(to_pieces(loaded.task.target_dictionary, ids), subword_type) for ids in hyps]
    rows = scores.reshape(len(hyps), -1).tolist()
    return [
        replace(
            reading,
            words=words,
            scores=row,
            attention=word_attention(loaded, ids, hyp, source.token_words, target_words).numpy(),
        )
        for reading, ids, hyp, (words, target_words), row in zip(trees, encoded, hyps, target, rows, strict=True)
    ]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    verb.add_checkpoint_arguments(parser)
    verb.add_system(parser)
    add = parser.add_argument
    verb.add_sentences(parser)
    add("--sentence", type=int, default=0, metavar="N", help="sentence of the input, from 0 (default: 0)")
    add(
        "--head",
        type=_edit,
        action="append",
        default=[],
        metavar="D=H",
        help="attach word D to word H, or make it the root (0); may be repeated",
    )
    add("--label", type=_label, action="append", default=[], metavar="D=LABEL", help="label of word D; may be repeated")
    add("--trees", metavar="FILE", help="CoNLL-U; its trees over the same words are compared, too")
    add("--no-parse", action="store_true", help="also translate without a parse")
    add("--draw", type=verb.picture, metavar="PICTURE", help="picture of trees and translations (.svg, .png or .pdf)")
    verb.add_parsers(parser)
    verb.add_search(parser)
    verb.add_format(parser)
    verb.add_shared(parser, "--overwrite")


def _edit(text: str) -> tuple[int, int]:
    word, _, head = text.partition("=")
    if not (word.isdecimal() and head.isdecimal()):
        raise argparse.ArgumentTypeError(
            f"{text!r}: give the numbers of a word and of its head, as in 5=2; 0 is the root"
        )
    return int(word), int(head)


def _label(text: str) -> tuple[int, str]:
    word, _, label = text.partition("=")
    if not (word.isdecimal() and label and not label.isspace()):
        raise argparse.ArgumentTypeError(f"{text!r}: give the number of a word and its relation, as in 5=nmod")
    return int(word), label


def check(parser: argparse.ArgumentParser, args: argparse.Namespace) -> None:
    verb.check_model_arguments(parser, args)
    if sum(option is not None for option in (args.text, args.input, args.subset)) != 1:
        parser.error("give one of --text, --input and --subset")
    for name in ("head", "label"):
        words = [word for word, _ in getattr(args, name)]
        if twice := [word for word in words if words.count(word) > 1]:
            parser.error(f"--{name}: word {twice[0]} is named twice")


def run(args: argparse.Namespace) -> None:
    from ..pictures.figures import save_figure
    from .latent_trees import Cutter, nth, read_input

    verb.find_model(args)
    model = GivenTrees(args.path, args.data, args.cpu)
    sentences = read_input(model.loaded, Cutter(model.loaded, args.subword_type), args)
    result = whatif(
        model,
        nth(sentences, args.sentence),
        dict(args.head),
        dict(args.label),
        args.trees,
        args.no_parse,
        args.subword_type,
        args.parser,
        verb.parser_options(args),
        **verb.search_options(args),
    )
    for note in result.notes:
        print(f"fairseq-syntax whatif: {note}", file=sys.stderr)
    print(result.tables(args.format))
    if args.draw:
        save_figure(result.figure(), args.draw)
        print(args.draw, file=sys.stderr)


main = verb.Verb(__doc__, add_arguments, run, check, outputs=("draw",))
