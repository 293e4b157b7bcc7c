"""The norms of the gate on syntax for every target token (Tran & Bisk 2018, eq. 23), and the tags that open it."""

import sys
from argparse import Namespace
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from math import log2

import numpy as np
import torch
from tqdm import tqdm

from ..evaluate.tables import format_table
from ..pictures.figures import check_finite
from ..trees.conllu import Sentence, TreeFormatError, quoted
from ..trees.subwords import join_subwords
from .loaded_model import Loaded, NothingToShow, architectures

_EOS = "</s>"


@dataclass(frozen=True)
class GatedSentence:
    """A target sentence and how wide the gate was open when each of its tokens was predicted."""

    number: int  # of the sentence in its corpus, from 0
    tokens: list[str]  # S pieces, the end of the sentence (EOS) last
    # (S,) z_t, the Euclidean norm of the gate before token t is predicted: 0 to the root of its width
    norms: np.ndarray
    source: list[str]  # pieces of the source sentence, without the end of the sentence

    @property
    def highest(self) -> int:
        """Position of the highest norm, the first one of equals."""
        return int(np.argmax(self.norms))


def count_highest(sentences: Sequence[GatedSentence], tags: Sequence[Sequence[str]]) -> dict[str, tuple[int, int]]:
    """Which tags have the highest norm of their sentence, and how often they occur at all.

    `tags` are those of the S tokens of each sentence: every piece has the tag of its word, EOS one of its own.

    Returns tag -> (sentences whose highest norm it has, tokens that have it), the most frequent highest first. Where
    the gate does not look at tags, both are shares of the same size of their sums.
    """
    highest, all_tokens = Counter(), Counter()
    for sentence, of_tokens in zip(sentences, tags, strict=True):
        highest[of_tokens[sentence.highest]] += 1
        all_tokens.update(of_tokens)
    order = sorted(all_tokens, key=lambda tag: (-highest[tag], -all_tokens[tag], tag))
    return {tag: (highest[tag], all_tokens[tag]) for tag in order}


def relative_entropy(counts: dict[str, tuple[int, int]]) -> float:
    """Kullback-Leibler divergence, in bits, of where the highest norms are from where the tokens are.

    0 if the gate does not look at tags; `counts` as of `count_highest`.
    """
    highest, tokens = (sum(column) for column in zip(*counts.values(), strict=True))
    return sum(h / highest * log2((h / highest) / (t / tokens)) for h, t in counts.values() if h)


@torch.no_grad()
def gate_norms(
    loaded: Loaded, split, subset: str, batch_size: int, numbers: Sequence[int] | None = None
) -> list[GatedSentence]:
    """The norms z (eq. 23) of sentences of a split, called `subset`, with its reference translations.

    They come out in the order of `numbers`, or all of them. Raises ValueError: the model has no gate or one of NaN, or
    the split no target side.
    """
    dictionary = loaded.task.target_dictionary
    if split.tgt is None:
        raise ValueError(f"--subset {subset}: has no target side; preprocess it with both languages")
    found: dict[int, GatedSentence] = {}
    numbers = range(len(split)) if numbers is None else numbers
    order = sorted(set(numbers), key=lambda i: -int(split.tgt_sizes[i]))
    with tqdm(total=len(order), unit="sent", disable=len(order) <= batch_size) as bar:
        for start in range(0, len(order), batch_size):
            batch = loaded.to_device(split.collater([split[i] for i in order[start : start + batch_size]]))
            extra = loaded.model(**batch["net_input"])[1]
            norms = extra.get("gate_norm") if isinstance(extra, dict) else None
            if norms is None:
                raise NothingToShow(
                    f"{loaded.path}: the architecture {loaded.architecture} has no gate on syntax; "
                    f"those that have are {architectures('gated_architectures')}"
                )
            real = batch["target"] != dictionary.pad()
            check_finite(norms[real].float().cpu().numpy(), f"{loaded.path}: the norms of the gate")
            for b, number in enumerate(batch["id"].tolist()):
                ids = batch["target"][b][real[b]].tolist()
                tokens = [_EOS if i == dictionary.eos() else dictionary[i] for i in ids]
                source = [loaded.task.source_dictionary[i] for i in split.src[number].tolist()[:-1]]
                found[number] = GatedSentence(number, tokens, norms[b][real[b]].float().cpu().numpy(), source)
            bar.update(len(batch["id"]))
    return [found[number] for number in numbers]


def tag_table(sentences: list[GatedSentence], trees: list[Sentence], subword_type: str, args: Namespace) -> str:
    """Which tags have the highest norms. Sentences in which unknown pieces hide where words end are left out."""
    used, tags, hidden = [], [], 0
    for sentence, tree in zip(sentences, trees, strict=True):
        of_tokens = tags_of_tokens(sentence.tokens[:-1], tree, subword_type)
        if of_tokens is not None:
            used.append(sentence)
            tags.append([*of_tokens, _EOS])
        elif "<unk>" in sentence.tokens:
            hidden += 1
        else:
            raise TreeFormatError(
                f"{args.target_conllu}:{tree.line}: the words are {quoted(' '.join(tree.forms))}, but sentence "
                f"{sentence.number} of {args.subset} is {quoted(' '.join(sentence.tokens[:-1]))}; tag the target side "
                "of this very split, and see --subword-type"
            )
    if hidden:
        print(
            f"fairseq-syntax gates: {hidden} of {len(sentences)} sentences are not counted: unknown pieces hide where "
            "their words end",
            file=sys.stderr,
        )
    if not used:
        raise ValueError("no sentence is left to count")
    counts = count_highest(used, tags)
    total = sum(number for _, number in counts.values())
    rows = [(tag, high, 100 * high / len(used), 100 * number / total) for tag, (high, number) in counts.items()]
    lines = format_table(["tag", "highest", "% of highest", "% of tokens"], rows, args.format)
    return f"{lines}\n\n{len(used)} sentences; the two shares are {relative_entropy(counts):.3f} bits apart"


def tags_of_tokens(pieces: list[str], tree: Sentence, subword_type: str) -> list[str] | None:
    """The tag of each piece's word; None if the tree is not of these words.

    Letter case does not matter, and a word with an unknown piece may be any word.
    """
    try:
        words, word_of_token = join_subwords(pieces, subword_type)
    except ValueError:  # ends inside a word
        return None
    for candidate in (tree, tree.collapse_ranges()):
        if len(candidate) == len(words) and all(
            "<unk>" in word or word.lower() == form.lower() for word, form in zip(words, candidate.forms, strict=True)
        ):
            return [candidate.upos[word] for word in word_of_token]
    return None
