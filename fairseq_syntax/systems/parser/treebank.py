"""Treebanks for training a parser: reader, vocabulary and batches."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Optional

import numpy as np
import torch
from fairseq.data import Dictionary, FairseqDataset, data_utils

from ... import compat
from ...trees.conllu import Sentence, TreeFormatError, check_tags, open_text, parse_block, read_blocks

UNKNOWN = "_"
"""Mark of a missing tag or label in CoNLL-U."""

MISSING = -1
"""Number of a tag, head or label that the treebank does not give: neither learned nor scored."""

UNSEEN = -2
"""Number of a tag or label that the training data does not have: not learned, and scored as an error."""


class PosColumn(StrEnum):
    """Column of the tags to learn."""

    upos = "upos"
    xpos = "xpos"


class Pass(StrEnum):
    """Purpose of a batch."""

    pos = "pos"
    dependency = "dependency"
    all = "all"


@dataclass(frozen=True)
class TaggedSentence:
    """A sentence of a treebank; J words."""

    words: list[str]  # J, lower-cased by option
    tags: list[str]  # J, `_` where unknown
    tree: Sentence  # heads, labels, universal tags
    labels: list[str]  # J, without subtypes by option


def find_treebank(folder: str, split: str) -> Path:
    """The file of a split: FOLDER/SPLIT.conllu or FOLDER/SPLIT.conllu.gz. Raises TreeFormatError: there is neither."""
    candidates = [Path(folder, f"{split}.conllu{ending}") for ending in ("", ".gz")]
    for path in candidates:
        if path.is_file():
            return path
    raise TreeFormatError(
        f"{candidates[0]}: no such file, nor with .gz; give the folder of the treebank's CoNLL-U files"
    )


def read_treebank(
    path: str | Path,
    limit: Optional[int] = None,
    *,
    pos_column: str = PosColumn.upos,
    strip_subtypes: bool = False,
    lowercase: bool = False,
) -> list[TaggedSentence]:
    """The sentences of a CoNLL-U file that have words, or the first `limit` of them.

    Args:
        pos_column: column of the tags.
        strip_subtypes: whether `nmod:poss` becomes `nmod`.
        lowercase: whether words are lower-cased.

    Raises TreeFormatError: see `trees.conllu`; also a file without sentences.
    """
    sentences = []
    with open_text(path) as lines:
        for start, block in read_blocks(lines, str(path)):
            if limit is not None and len(sentences) >= limit:
                break
            tree = parse_block(block, str(path), start)
            tags = tree.upos if pos_column == PosColumn.upos else _xpos(block, tree.line, str(path))
            if not tree.forms:
                continue
            sentences.append(
                TaggedSentence(
                    [word.lower() for word in tree.forms] if lowercase else tree.forms,
                    tags,
                    tree,
                    [label.split(":")[0] for label in tree.deprels] if strip_subtypes else tree.deprels,
                )
            )
    if not sentences:
        raise TreeFormatError(f"{path}: no sentences; give a treebank in CoNLL-U")
    return sentences


def _xpos(block: list[str], start: int, name: str) -> list[str]:
    # only words have a whole number in the first column
    rows = ((number, line.split("\t")) for number, line in enumerate(block, start) if line[0] != "#")
    tags = {number: fields[4] for number, fields in rows if fields[0].isdecimal()}
    check_tags("XPOS", list(tags.values()), tags, name)
    return list(tags.values())


# --- vocabulary ---------------------------------------------------------------------------------------------------


def build_vocabulary(sentences: Sequence[TaggedSentence], translator: Optional[Dictionary] = None) -> dict[str, list]:
    """Words, tags and labels of the training data, as plain lists, which a checkpoint can hold.

    Args:
        sentences: of the training data.
        translator: source dictionary of a translator that is to use the parser.

    Returns "words" (V), the translator's first; "counts" (V) of them in the treebank, and "translator_counts" (V);
    "pos" and "labels", sorted. Raises ValueError: the treebank has no tags, or no trees.
    """
    counts = Counter(word for sentence in sentences for word in sentence.words)
    translator_counts = {}
    if translator is not None:
        pairs = zip(translator.symbols[translator.nspecial :], translator.count[translator.nspecial :], strict=True)
        translator_counts = {word: count for word, count in pairs if count > 0}
    # a word may be spelled like one of fairseq's own symbols; it counts as unknown
    special = set(Dictionary().symbols)
    words = [word for word in dict.fromkeys((*translator_counts, *counts)) if word not in special]
    pos = {tag for sentence in sentences for tag in sentence.tags} - {UNKNOWN}
    labels = {label for s in sentences if s.tree.is_parsed for label in s.labels} - {UNKNOWN}
    if not pos:
        raise ValueError(
            "the training data has no part-of-speech tags in the column of --lgp-pos-column; choose the other"
        )
    if not labels:
        raise ValueError("the training data has no trees (HEAD and DEPREL are _); give a treebank")
    return {
        "words": words,
        "counts": [counts[word] for word in words],
        "translator_counts": [int(translator_counts.get(word, 0)) for word in words],
        "pos": sorted(pos),
        "labels": sorted(labels),
    }


def vocabulary_dictionary(vocabulary: Mapping[str, list]) -> Dictionary:
    """fairseq's dictionary of the words of `build_vocabulary`, with their counts in the treebank."""
    dictionary = Dictionary()
    for word, count in zip(vocabulary["words"], vocabulary["counts"], strict=True):
        dictionary.add_symbol(word, n=count)
    return dictionary


def encode_words(words: Iterable[str], dictionary: Dictionary) -> torch.Tensor:
    """Numbers (J + 1,) of words and of EOS; a word spelled like a special symbol is an unknown one."""
    numbers = map(dictionary.index, words)
    unknown = dictionary.unk()
    return torch.tensor([*(n if n >= dictionary.nspecial else unknown for n in numbers), dictionary.eos()])


# --- batches ------------------------------------------------------------------------------------------------------


class TreebankDataset(FairseqDataset):
    """Sentences of a treebank, in batches that are padded on the right.

    A batch has "pass"; "net_input" with "src_tokens" (B, S) and "src_lengths" (B,), which count EOS; and, all (B, S),
    "pos", "heads" (columns; that of EOS for roots) and "labels", negative where they are not learned (`MISSING`,
    `UNSEEN`).

    Args:
        pos, labels: tags and labels in the order of their numbers.
        kind: purpose of the batches.
        batch_size: sentences of a batch, instead of fairseq's `--batch-size`; None takes that.
        shuffle: batches of random sentences; otherwise, of sentences of similar length.
    """

    def __init__(
        self,
        sentences: Sequence[TaggedSentence],
        dictionary: Dictionary,
        pos: Sequence[str],
        labels: Sequence[str],
        kind: Pass = Pass.all,
        batch_size: Optional[int] = None,
        shuffle: bool = False,
    ):
        super().__init__()
        self.pad = dictionary.pad()
        self.kind = Pass(kind)
        self.batch_size = batch_size
        self.shuffle = shuffle
        pos_numbers, label_numbers = _numbers(pos), _numbers(labels)
        self.tokens = [encode_words(sentence.words, dictionary) for sentence in sentences]
        self.annotations = [_annotation(sentence, pos_numbers, label_numbers) for sentence in sentences]
        self.sizes = np.array([len(tokens) for tokens in self.tokens])

    def __len__(self):
        return len(self.tokens)

    def __getitem__(self, index):
        return {"id": index, "tokens": self.tokens[index], "annotation": self.annotations[index]}

    def collater(self, samples):
        """A batch; see the class. None of no sentences."""
        if not samples:
            return None
        tokens = data_utils.collate_tokens([sample["tokens"] for sample in samples], self.pad)
        annotation = torch.nn.utils.rnn.pad_sequence(
            [sample["annotation"] for sample in samples], batch_first=True, padding_value=MISSING
        )
        pos, heads, labels = annotation.unbind(2)
        lengths = torch.tensor([len(sample["tokens"]) for sample in samples])
        return {
            "id": torch.tensor([sample["id"] for sample in samples]),
            "pass": str(self.kind),
            "nsentences": len(samples),
            "ntokens": int(lengths.sum()) - len(samples),
            "net_input": {"src_tokens": tokens, "src_lengths": lengths},
            "pos": pos,
            "heads": heads,
            "labels": labels,
        }

    def num_tokens(self, index):
        """Number of tokens of a sentence, EOS included."""
        return int(self.sizes[index])

    def num_tokens_vec(self, indices):
        """Number of tokens of each sentence, EOS included."""
        return self.sizes[indices]

    size = num_tokens

    def ordered_indices(self):
        """In random order, drawn from NumPy's generator, which fairseq seeds; or the longest sentences first."""
        if self.shuffle:
            return np.random.permutation(len(self))  # noqa: NPY002
        return np.argsort(-self.sizes, kind="stable")

    def batch_by_size(self, indices, max_tokens=None, max_sentences=None, required_batch_size_multiple=1):
        """Batches of `batch_size` sentences, without fairseq's rounding to multiples, which would lose sentences."""
        batches = super().batch_by_size(indices, max_tokens, self.batch_size or max_sentences, 1)
        return compat.batches_without_loss(batches, indices)

    @property
    def can_reuse_epoch_itr_across_epochs(self):
        """False: otherwise a resumed run sees other batches than the uninterrupted one."""
        return False


def _numbers(names: Sequence[str]) -> dict[str, int]:
    return {UNKNOWN: MISSING, **{name: number for number, name in enumerate(names)}}


def _annotation(sentence: TaggedSentence, pos: Mapping[str, int], labels: Mapping[str, int]) -> torch.Tensor:
    """(J + 1, 3): tag, head and label; EOS has none."""
    size = len(sentence.words)
    parsed = sentence.tree.is_parsed
    rows = [
        [pos.get(tag, UNSEEN) for tag in sentence.tags],
        [size if head < 0 else head for head in sentence.tree.heads] if parsed else [MISSING] * size,
        [labels.get(label, UNSEEN) for label in sentence.labels] if parsed else [MISSING] * size,
    ]
    return torch.tensor([[*row, MISSING] for row in rows]).T
