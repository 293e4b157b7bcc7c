"""Parsing of any text with a parser trained by `dependency_parsing`."""

import math
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import torch
from fairseq.data import data_utils

from ...data.parsers import Parser, ParserOptions
from ...data.raw_text_task import DICTIONARY_LOCK
from ...pretrained import checkpoint
from ...trees.conllu import ROOT, Sentence, TreeFormatError, quoted
from ...trees.spanning import chu_liu_edmonds
from ...trees.universal_dependencies import is_root_label, universal_labels
from ...trees.well_formed import are_trees
from .model import LatentGraphParserModel
from .network import TINY
from .treebank import UNKNOWN, PosColumn, encode_words

READS = ("parser_model", "parser_device")
NEEDS = ("parser_model",)


def load(options: ParserOptions) -> Parser:
    """See `data.parsers.load_parser`."""
    return OwnParser(options.parser_model, options.parser_device)


class OwnParser:
    """A latent graph parser as a `data.parsers.Parser`. Trees are the best ones, with one root.

    Words not in the treebank are read by their character n-grams. Tags are returned if they are universal
    (`--lgp-pos-column upos`). `longest` is the maximum length of a sentence in words.

    Args:
        path: checkpoint of `lgp_parser`, or the name of a bundled one.
        device: "cpu", "cuda", …; None takes a GPU where there is one.

    Raises TreeFormatError: not such a checkpoint, or no such device; FileNotFoundError: no such file.
    """

    batch_tokens = 2000  # words of a batch, padding included

    def __init__(self, path: str | Path, device: str | None = None):
        try:
            self.model, self.task = LatentGraphParserModel.load(checkpoint(str(path)))
        except ValueError as error:
            raise TreeFormatError(str(error)) from None
        device = device or ("cuda" if torch.cuda.is_available() else "cpu")
        try:
            self.device = torch.device(device)
            self.model.to(self.device)
        except (RuntimeError, AssertionError) as error:
            raise TreeFormatError(f"device {device}: cannot be used ({str(error).splitlines()[0]})") from None
        self.longest = self.model.longest - 1  # the end of the sentence is read, too
        self.lowercase = bool(self.task.cfg.lgp_lowercase)
        self.writes_tags = self.task.cfg.lgp_pos_column == PosColumn.upos
        only_root = [is_root_label(label) for label in self.model.labels]
        self._only_root = torch.tensor(only_root, device=self.device)

    def parse(self, sentences: list[list[str]]) -> list[Sentence]:
        """See `data.parsers.Parser.parse`.

        Raises TreeFormatError: a sentence is longer than the model reads.
        """
        for words in sentences:
            if len(words) > self.longest:
                raise TreeFormatError(
                    f"sentence {quoted(' '.join(words))}: {len(words)} words and the end of the sentence, but the "
                    f"parser reads {self.model.longest}; cut the sentence or leave it out"
                )
        trees = [Sentence([], [], [], []) for _ in sentences]
        lengths = np.array([len(words) + 1 for words in sentences], dtype=np.int64)
        order = np.argsort(lengths, kind="stable")
        order = order[lengths[order] > 1]
        if not len(order):
            return trees
        batches = data_utils.batch_by_size(
            order,
            lambda i: int(lengths[i]),
            num_tokens_vec=lengths[order],
            max_tokens=max(self.batch_tokens, int(lengths.max())),
        )
        with DICTIONARY_LOCK:
            numbers = self._encode(sentences)
            for batch in batches:
                for i, parsed in zip(batch, self._batch([numbers[i] for i in batch]), strict=True):
                    trees[i] = Sentence(list(sentences[i]), *parsed)
        return trees

    def _encode(self, sentences: list[list[str]]) -> list[torch.Tensor]:
        """Numbers of words, and of EOS; new words are added to the dictionary and read by their spelling."""
        if self.lowercase:
            sentences = [[word.lower() for word in words] for words in sentences]
        self.task.learn_source_words(sentences)
        return [encode_words(words, self.task.source_dictionary) for words in sentences]

    @torch.no_grad()
    def _batch(self, numbers: list[torch.Tensor]) -> Iterator[tuple[list, list, list]]:
        """Heads, labels and tags of each sentence."""
        tokens = data_utils.collate_tokens(numbers, self.model.pad).to(self.device)
        sizes = [len(row) - 1 for row in numbers]
        lengths = torch.tensor(sizes, device=self.device) + 1
        graph = self.model(tokens, lengths)
        heads = self._decode(graph.head_log_probs, lengths, sizes)
        # the best label of a word that is not a root: `universal_labels` gives that of roots
        labels = graph.label_log_probs.masked_fill(self._only_root, float("-inf")).argmax(2).tolist()
        tags = graph.pos_log_probs.argmax(2).tolist()
        names, pos = self.model.labels, self.model.pos
        for tree, label, tag, size in zip(heads, labels, tags, sizes, strict=True):
            written = [pos[i] for i in tag[:size]] if self.writes_tags else [UNKNOWN] * size
            yield tree, universal_labels(tree, [names[i] for i in label[:size]]), written

    def _decode(self, log_probs: torch.Tensor, lengths: torch.Tensor, sizes: list[int]) -> list[list[int]]:
        best = log_probs.argmax(2)
        heads = [
            [ROOT if head == size else head for head in row[:size]]
            for row, size in zip(best.tolist(), sizes, strict=True)
        ]
        # if each word's best heads form a tree, it is the best tree
        chosen = (~are_trees(best, lengths)).nonzero().flatten().tolist()
        if not chosen:
            return heads
        scores = log_probs[chosen].clamp(min=math.log(TINY)).double().cpu().numpy()
        # [word, head]; behind the words, EOS stands for the root
        arcs = [row[: sizes[i], : sizes[i]] for i, row in zip(chosen, scores, strict=True)]
        roots = [row[: sizes[i], sizes[i]] for i, row in zip(chosen, scores, strict=True)]
        for i, tree in zip(chosen, chu_liu_edmonds(arcs, roots), strict=True):
            heads[i] = tree
        return heads
