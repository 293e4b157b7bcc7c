"""How hard the source of a sentence is to translate, as far as its tree tells: one number a sentence."""

from collections.abc import Sequence
from pathlib import Path

from ..trees.conllu import ROOT, Sentence, read_conllu
from ..trees.text import quoted
from .generated import check_count


def read_parses(path: str | Path, numbers: Sequence[int], sources: Sequence[str] | None) -> list[Sentence]:
    """The trees of some sentences of a CoNLL-U file.

    Args:
        path: of the file, plain or .gz.
        numbers: of N sentences, from 0.
        sources: their N texts, of which the words must be those of the trees; None does without.

    Raises:
        ValueError: there are other than one tree for each sentence, or of other words; see also `read_conllu`.
    """
    trees = list(read_conllu(path))
    check_count(len(trees), numbers, str(path), "trees", "give each one")
    if sources is not None:
        for number, source in zip(numbers, sources, strict=True):
            _check_words(trees[number], source.split(), f"{path}:{trees[number].line}: sentence {number + 1}")
    return [trees[number] for number in numbers]


def _check_words(sentence: Sentence, words: list[str], place: str) -> None:
    """Raise ValueError if the words of a tree are not those of the source; unknown ones (<unk>) may be any."""
    for forms in (sentence.forms, sentence.collapse_ranges().forms):
        pairs = zip(words, forms, strict=False)
        same = all(word.lower() == form.lower() or "<unk>" in word + form for word, form in pairs)
        if same and len(words) == len(forms):
            return
    if "<unk>" in "".join(words) and len(words) < len(sentence):
        return  # in the output of fairseq, an unknown piece of sentencepiece sticks to the word before it
    raise ValueError(
        f"{place} is {quoted(' '.join(sentence.forms))} in the tree, but {quoted(' '.join(words))} in the source; give "
        "the trees of the source, and see --remove-bpe"
    )


def depth(tree: Sentence) -> int:
    """Words on the longest way down from a root."""
    return max(tree.depths(), default=0)


def longest_dependency(tree: Sentence) -> int:
    """Words from a word to its head at most; roots and punctuation, which hangs anywhere, are left out. 0 of none."""
    lengths = (
        abs(head - word)
        for word, (head, deprel) in enumerate(zip(tree.heads, tree.deprels, strict=True))
        if head != ROOT and deprel.split(":")[0] != "punct"
    )
    return max(lengths, default=0)


def has_relation(tree: Sentence, relation: str) -> int:
    """1 if a word has this label, or a subtype of it (`acl` is also `acl:relcl`); else 0."""
    return int(any(deprel == relation or deprel.startswith(f"{relation}:") for deprel in tree.deprels))
