"""What a change of the tree of a sentence changes: the translation, its score, what the decoder looks at."""

from argparse import Namespace
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest

import numpy as np
import torch
from fairseq.dataclass.configs import GenerationConfig
from torch import Tensor

from ..evaluate.tables import format_table
from ..trees.conllu import Sentence, TreeFormatError, quoted, read_conllu
from ..trees.edits import edited
from .forced_scores import total_scores
from .given_trees import GivenTrees
from .latent_trees import CutSentence, TreeInducer
from .sentences import as_dataset, batches, check_lengths, pieces_of, translate, words_of
from .word_attention import word_attention


@dataclass(frozen=True)
class Reading:
    """One tree of a sentence.

    Attributes:
        name: what tables and pictures call it.
        tree: over the words; of a model that is left to itself, its own best one; None without a parse.
        free: the model does not get it: it has found it itself.
    """

    name: str
    tree: Sentence | None
    free: bool = False


@dataclass(frozen=True)
class Outcome:
    """What a model makes of a sentence under one of its trees.

    Attributes:
        words: of the translation.
        scores: log-probability of this translation under each of the trees; natural logarithms.
        attention: (I, J) of the words of the translation, over those of the source, see `word_attention`.
    """

    words: list[str]
    scores: list[float]
    attention: np.ndarray


def readings(model: GivenTrees, args: Namespace, sentence: Sentence, source: CutSentence) -> list[Reading]:
    """The trees that are compared: the given one, and those that the options make of it or name.

    Args:
        args: options of `cli.whatif`.
        sentence: with a parse or without.

    Raises:
        TreeFormatError: an edit makes no tree, a file has none over these words, or nothing is left to be compared.
    """
    if not len(sentence):
        raise TreeFormatError(f"{source.place}: the sentence has no words; give another")
    found = []
    if model.latent:
        heads = TreeInducer(model.loaded, "mst", "scores", 1)([source])[0]
        own = replace(sentence, heads=heads, deprels=["_"] * len(heads))
        found.append(Reading("its own", own, free=True))
        given = sentence if sentence.is_parsed else own
    else:
        given = sentence if sentence.is_parsed else model.parse(sentence, args, source.place)
    found.append(Reading("its own best" if model.latent and not sentence.is_parsed else "given", given))
    heads, labels = dict(args.head), dict(args.label)
    if heads or labels:
        name = ", ".join(f"{word}={value}" for word, value in (*args.head, *args.label))
        found.append(Reading(name, edited(given, heads, labels)))
    if args.trees:
        found += _others(args.trees, given)
    if args.no_parse and not model.latent:
        found.append(Reading("no parse", None))
    return found


def _others(path: str, given: Sentence) -> list[Reading]:
    """The trees of a file over the same words that differ from the given one."""
    found, same = [], 0
    for tree in read_conllu(path):
        tree = tree if tree.forms == given.forms else tree.collapse_ranges()
        if tree.forms != given.forms or not tree.is_parsed:
            continue
        known = [given, *(reading.tree for reading in found)]
        if any((tree.heads, tree.deprels) == (one.heads, one.deprels) for one in known):
            same += 1
        else:
            found.append(Reading(f"line {tree.line}", tree))
    if not found:
        which = "only the given tree" if same else "no tree"
        raise TreeFormatError(f"{path}: {which} over the words {quoted(' '.join(given.forms))}; give another file")
    return found


@torch.no_grad()
def outcomes(model: GivenTrees, source: CutSentence, trees: Sequence[Reading], args: Namespace) -> list[Outcome]:
    """What the model makes of each reading.

    Args:
        args: `beam`, `max_len_a`, `max_len_b`, `subword_type`.

    Raises:
        ValueError: the sentence is longer than the model reads.
    """
    loaded = model.loaded
    encoded = [model.encode(source, None if reading.free else reading.tree) for reading in trees]
    found = translations(model, encoded, [source.place] * len(trees), args, 10**6)
    scores = under_every_tree(model, encoded, found)
    subword_type = loaded.subword_type(args.subword_type)
    target = [words_of(pieces_of(loaded.task.target_dictionary, ids), subword_type) for ids in found]
    dataset = as_dataset(loaded, encoded, found)
    of_piece = [source.word_of_token] * len(encoded), [numbers for _, numbers in target]
    attention = {
        number: weights.numpy()
        for sample in batches(loaded, dataset, [len(ids) for ids in encoded], 10**6)
        for number, weights in word_attention(loaded, sample, of_piece)
    }
    return [Outcome(words, scores[i].tolist(), attention[i]) for i, (words, _) in enumerate(target)]


def translations(
    model: GivenTrees, encoded: Sequence[Tensor], places: Sequence[str], args: Namespace, max_tokens: int
) -> list[Tensor]:
    """The best translation of each of some sentences with trees: token ids, EOS included."""
    lengths = [len(ids) for ids in encoded]
    check_lengths(model.loaded, [(length, 0) for length in lengths], places)
    config = GenerationConfig(beam=args.beam, max_len_a=args.max_len_a, max_len_b=args.max_len_b)
    best = translate(model.loaded, as_dataset(model.loaded, encoded), lengths, config, max_tokens)
    return [hypothesis["tokens"].cpu() for hypothesis in best]


def under_every_tree(model: GivenTrees, encoded: Sequence[Tensor], targets: Sequence[Tensor]) -> np.ndarray:
    """(N, K) log-probabilities of N translations under K trees of one sentence; natural logarithms."""
    pairs = [(tree, target) for target in targets for tree in encoded]
    flat = total_scores(model.loaded, [tree for tree, _ in pairs], [target for _, target in pairs], 10**6)
    return flat.reshape(len(targets), len(encoded))


# --- shown --------------------------------------------------------------------------------------------------------


def tables(words: Sequence[str], trees: Sequence[Reading], found: Sequence[Outcome], form: str) -> str:
    """Trees, translations with their scores, and the source word that each word of a translation looks at most."""
    names = [reading.name for reading in trees]
    rows = [
        (str(number), word, *(_head(words, reading.tree, trees[0].tree, number - 1) for reading in trees))
        for number, word in enumerate(words, 1)
    ]
    shown = [format_table(["", "word", *names], rows, form)]
    header = ["tree", *(f"log p, {name}" for name in names), "translation"]
    rows = [
        (reading.name, *(f"{score:.2f}" for score in outcome.scores), " ".join(outcome.words))
        for reading, outcome in zip(trees, found, strict=True)
    ]
    shown.append(format_table(header, rows, form))
    looks = [_most(words, outcome) for outcome in found]
    rows = [tuple(cell for three in line for cell in three) for line in zip_longest(*looks, fillvalue=("", "", ""))]
    shown.append(format_table([cell for name in names for cell in (name, "looks at", "weight")], rows, form))
    return "\n\n".join(shown)


def _head(words: Sequence[str], tree: Sentence | None, first: Sentence | None, word: int) -> str:
    """The head of a word and its label, with a star if they are others than in the first tree."""
    if tree is None:
        return "-"
    head, label = tree.heads[word], tree.deprels[word]
    star = "" if first is None or (head, label) == (first.heads[word], first.deprels[word]) else " *"
    return f"{head + 1} {words[head] if head >= 0 else 'ROOT'}{'' if label == '_' else f' ({label})'}{star}"


def _most(words: Sequence[str], outcome: Outcome) -> list[tuple[str, str, str]]:
    """Of each word of the translation: itself, the source word it looks at most, and the weight."""
    best = outcome.attention.argmax(axis=1) if outcome.attention.size else []
    return [
        (word, words[i], f"{outcome.attention[row, i]:.2f}")
        for row, (word, i) in enumerate(zip(outcome.words, best, strict=True))
    ]


def draw(path: str, title: str, words: Sequence[str], trees: Sequence[Reading], found: Sequence[Outcome]) -> None:
    """Trees and attention side by side, as a picture."""
    from ..pictures.figures import save_figure
    from ..pictures.tree_variants import Panel, draw_variants

    panels = [
        Panel(
            f"{reading.name}: log p {outcome.scores[number]:.2f}",
            *((reading.tree.heads, reading.tree.deprels) if reading.tree else (None, None)),
            outcome.words,
            outcome.attention,
        )
        for number, (reading, outcome) in enumerate(zip(trees, found, strict=True))
    ]
    save_figure(draw_variants(words, panels, title), path)
