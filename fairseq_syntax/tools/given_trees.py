"""Models under trees that are given to them: which take any, and sentences with a tree each on their way there."""

from argparse import Namespace
from collections.abc import Sequence

import numpy as np
from fairseq import utils
from torch import Tensor

from ..data.arrays import TAG_DICTIONARIES, ArrayReader, split_prefix
from ..data.live_parsing import token_syntax
from ..data.parsers import load_parser
from ..trees.alignment import align_tree
from ..trees.conllu import UNPARSED, Sentence, TreeFormatError, quoted, without_parse
from .latent_trees import CutSentence
from .loaded_model import load
from .sentences import encode_line


class GivenTrees:
    """A model that follows trees which are given to it.

    Those that read trees do so anyway, LISA as with `--lisa-gold-parses`; in those that find latent trees, the given
    one takes the place of the distribution over heads (`clamped_by`).

    Args:
        args: options of `cli.common.arguments.add_checkpoint_arguments`.

    Attributes:
        loaded: the model.
        latent: whether it finds trees of its own.
        tags_only: whether it reads labels or tags of words, and no heads.

    Raises:
        ValueError: the model takes no dependency tree; see also `loaded_model.load`.
    """

    def __init__(self, args: Namespace):
        self.loaded = load(args.path, args.data, args.cpu, lisa_gold_parses=True)
        task, model = self.loaded.task, self.loaded.model
        reads = set(getattr(model, "syntax_inputs", ()))
        clamped = set(getattr(model, "clamped_by", ()))
        if not (reads or clamped) or task.target_dictionary is None:
            raise ValueError(
                f"{args.path}: {self.loaded.architecture} takes no dependency tree: it reads none, and finds none that "
                "another could take the place of; give PASCAL, LISA, tags, DASA, SDAtt, chen17, LGP-NMT or SA-NMT"
            )
        self.latent = not reads
        self.tags_only = bool(reads) and reads <= TAG_DICTIONARIES.keys()
        task.required_inputs |= clamped
        self._dictionaries = {
            name: task.syntax_dictionary(name) for name in TAG_DICTIONARIES.keys() & task.required_inputs
        }

    def encode(self, source: CutSentence, tree: Sentence | None) -> Tensor:
        """Token ids of a sentence, EOS included, that carry a tree; None if there are none.

        Raises:
            TreeFormatError: the model refuses sentences without a parse, or has no name for a label.
        """
        task = self.loaded.task
        if tree is None or not tree.is_parsed:
            if task.refuses_unparsed:
                raise TreeFormatError(f"{source.place}: has no parse, and the model refuses such sentences; parse it")
            tree = without_parse([""] * source.words)
        task.learn_source_words([" ".join(source.pieces)])
        ids = encode_line(task.source_dictionary, source.pieces)
        ids.syntax = token_syntax(tree, source.word_of_token, self._dictionaries)
        return ids

    def notes(self, heads: bool, labels: bool, trees: Sequence[Sentence]) -> list[str]:
        """What a user should know who expects a change: of heads, of labels, or between trees."""
        found = []
        if heads and not labels and self.tags_only:
            found.append("the model reads labels and tags of words alone, so heads change nothing; give --label, too")
        if labels and "deprels" not in self._dictionaries:
            found.append("the model reads no labels, so --label changes nothing")
        unknown = {
            tag
            for name, dictionary in self._dictionaries.items()
            for tree in trees
            for tag in getattr(tree, name)
            if dictionary.index(tag) == dictionary.unk()
        }
        if unknown:
            found.append(f"labels or tags that the model has not seen in training: {', '.join(sorted(unknown))}")
        return found

    def parse(self, sentence: Sentence, args: Namespace, place: str) -> Sentence:
        """The tree of a sentence without one, by the parser of the options.

        Raises:
            TreeFormatError: it cannot be parsed.
        """
        parser = load_parser(args.parser, args, self.loaded.task.cfg.source_lang)
        tree = align_tree(parser.parse([sentence.forms])[0], sentence.forms, place)
        if not tree.is_parsed:
            raise TreeFormatError(f"{place}: {quoted(' '.join(sentence.forms))} has no parse; give one to be changed")
        return tree

    def stored_tree(self, subset: str, number: int, words: Sequence[str]) -> Sentence | None:
        """The tree of a sentence of a split as it was binarized; None if it has none."""
        cfg = self.loaded.task.cfg
        prefix = split_prefix(utils.split_paths(cfg.data)[0], subset, cfg.source_lang, cfg.target_lang)
        if prefix is None:
            return None
        heads = ArrayReader(f"{prefix}.heads")[number].astype(np.int64).tolist()
        if len(heads) != len(words) or UNPARSED in heads:
            return None
        tags = {}
        for name in ("deprels", "upos"):
            dictionary = self.loaded.task.syntax_dictionary(name)
            tags[name] = [dictionary[i] for i in ArrayReader(f"{prefix}.{name}")[number].tolist()]
        return Sentence(list(words), heads, tags["deprels"], tags["upos"])
