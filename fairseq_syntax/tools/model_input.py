"""Sentences that a model is shown: text, the words of CoNLL-U, or a split of its data."""

from argparse import Namespace
from collections.abc import Iterable, Iterator

from fairseq import utils

from ..data.arrays import ArrayReader, split_prefix
from ..trees.conllu import Sentence, read_conllu, without_parse
from .latent_trees import CutSentence, Cutter
from .loaded_model import Loaded
from .split_source import words_of_pieces
from .verb import input_lines, input_name, is_conllu


def nth(items: Iterable, number: int):
    """The item of this number, from 0; ValueError if there are not so many."""
    count = 0
    for count, item in enumerate(items, 1):
        if count == number + 1:
            return item
    raise ValueError(f"--sentence {number}: there are {count} sentences, numbered from 0")


def read_trees(args: Namespace) -> Iterator[Sentence]:
    """The sentences of the CoNLL-U that is the input."""
    for sentence in read_conllu(args.input):
        yield sentence.collapse_ranges() if args.collapse_ranges else sentence


def read_text(args: Namespace, loaded: Loaded) -> Iterator[tuple[Sentence, CutSentence]]:
    """Sentences to write, with what is shown to the model."""
    cutter = Cutter(args, loaded)
    if args.subset:
        yield from _read_split(loaded, args.subset, cutter)
    elif is_conllu(args.input):
        for sentence in read_trees(args):
            yield sentence, cutter.of_words(sentence.forms, f"{args.input}:{sentence.line}")
    else:
        name = input_name(args.input)
        for number, line in enumerate(input_lines(args.input), 1):
            words, source = cutter.of_tokens(line.split(), f"{name}:{number}")
            yield without_parse(words), source


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
        row = [] if stored is None else stored[i]
        if len(row) == len(pieces) + 1:
            of_token = row[:-1].tolist()
            words = words_of_pieces(pieces, of_token, int(row[-1]))
            yield without_parse(words), CutSentence(pieces, of_token, len(words), place)
        else:
            words, source = cutter.of_tokens(pieces, place)
            yield without_parse(words), source
