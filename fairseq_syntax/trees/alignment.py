"""Fitting a tree to the words of a text."""

from .conllu import Sentence, TreeFormatError, quoted


def align_tree(sentence: Sentence, words: list[str], place: str) -> Sentence:
    """The tree over exactly these words: as it is, or with its multi-word ranges collapsed.

    Raises TreeFormatError at `place` of the text: the words differ; the message shows the first difference.
    """
    if sentence.forms == words:
        return sentence
    if sentence.ranges:
        collapsed = sentence.collapse_ranges()
        if collapsed.forms == words:
            return collapsed
    different = next(
        (i for i, (a, b) in enumerate(zip(sentence.forms, words, strict=False)) if a != b),
        min(len(sentence), len(words)),
    )
    of_tree = quoted(sentence.forms[different]) if different < len(sentence) else "the end"
    of_text = quoted(words[different]) if different < len(words) else "the end"
    raise TreeFormatError(
        f"{place}: word {different + 1} is {of_text} but the parse has {of_tree} "
        f"({len(words)} and {len(sentence)} words); parse this very text with fairseq-syntax parse"
    )
