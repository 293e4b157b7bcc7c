"""Conversion of subwords to words."""

import re
from collections.abc import Iterable
from enum import StrEnum

from .text import TreeFormatError, quoted


class SubwordType(StrEnum):
    """Schemes for splitting the words of a text into subwords."""

    subword_nmt = "subword_nmt"  # `@@` ends every piece of a word except the last; plain words need no other type
    sentencepiece = "sentencepiece"  # `▁` begins every word
    none = "none"  # every token is a word


SPACE = "\u2581"
"""The ▁ with which sentencepiece begins a word; in text of characters, the space itself."""

JOINER = "\uffed"
"""Mark at the start or end of a word that has no space there in the text; see `data.text.tokenizers`."""
_BYTE = re.compile("<0x[0-9A-F]{2}>")


def split_words(tokens: list[str], subword_type: str, place: str) -> tuple[list[str], list[int]]:
    """`join_subwords`, but raises a TreeFormatError whose message names the `place` of the text."""
    try:
        return join_subwords(tokens, subword_type)
    except ValueError as error:
        raise TreeFormatError(f"{place}: {error}") from None


def check_length(line: str, subword_type: str, most: int, place: str, option: str = "--max-words") -> None:
    """Raise TreeFormatError if the line at `place` has more than `most` words; `option` raises this limit."""
    if len(line) < 2 * most:  # too short for so many words
        return
    words = len(split_words(line.split(), subword_type, place)[0])
    if words > most:
        raise TreeFormatError(
            f"{place}: {words} words; a sentence has at most {most}: split it, or give {option} {words}"
        )


def join_subwords(tokens: list[str], subword_type: str) -> tuple[list[str], list[int]]:
    """The words of a subword sequence, without joiners, and the word of each subword.

    ("pre@@", "train", "it", "\uffed!") -> ("pretrain", "it", "!"), (0, 0, 1, 2)

    A lone `▁` of sentencepiece belongs to the word after it, or to the last word at the end of the text. Raises
    ValueError: unknown type, or a text that ends inside a word.
    """
    if subword_type == SubwordType.none:
        words, word_ids = tokens, list(range(len(tokens)))
    elif subword_type == SubwordType.subword_nmt:
        words, word_ids = _join_subword_nmt(tokens)
    elif subword_type == SubwordType.sentencepiece:
        words, word_ids = _join_sentencepiece(tokens)
    else:
        raise ValueError(f"subword type {subword_type!r} is unknown; choose one of {', '.join(SubwordType)}")
    return without_joiners(words), word_ids


def without_joiners(words: Iterable[str]) -> list[str]:
    """Remove joiners, which words of trees do not have."""
    return [word.replace(JOINER, "") or word for word in words]


def decode_pieces(pieces: list[str]) -> str:
    """The text of pieces of sentencepiece, with ▁ for spaces: `<0xE7> <0x8C> <0xAB>` -> `猫`.

    Bytes that are not UTF-8 become U+FFFD, as in sentencepiece.
    """
    content = b"".join(bytes([int(piece[3:5], 16)]) if _BYTE.fullmatch(piece) else piece.encode() for piece in pieces)
    return re.sub("[\udc80-\udcff]", "\ufffd", content.decode("utf-8", "surrogateescape"))


def _join_subword_nmt(tokens: list[str]) -> tuple[list[str], list[int]]:
    words: list[str] = []
    word_ids: list[int] = []
    pieces: list[str] = []
    for token in tokens:
        word_ids.append(len(words))
        if token.endswith("@@"):
            pieces.append(token[:-2])
        elif pieces:
            words.append("".join(pieces) + token)
            pieces = []
        else:
            words.append(token)
    if pieces:
        raise ValueError(f"the text ends inside a word ({quoted(tokens[-1])}); was the line cut off?")
    return words, word_ids


def _join_sentencepiece(tokens: list[str]) -> tuple[list[str], list[int]]:
    words: list[list[str]] = []
    word_ids: list[int] = []
    begun = True  # whether the next piece without a mark opens a word
    for token in tokens:
        opens = token.startswith(SPACE)
        if SPACE in token[opens:]:
            raise ValueError(
                f"the piece {quoted(token)} spans several words; train sentencepiece with --split_by_whitespace=true"
            )
        if token == SPACE:
            word_ids.append(len(words))
            begun = True
            continue
        if opens or begun:
            words.append([])
            begun = False
        words[-1].append(token)
        word_ids.append(len(words) - 1)
    if words:  # a final lone mark
        word_ids = [min(word, len(words) - 1) for word in word_ids]
    elif tokens:
        raise ValueError(f"the text has no word, only {quoted(' '.join(tokens))}")
    # with their marks, or the text <0x41>, in one piece, would be a byte
    return [decode_pieces(word).removeprefix(SPACE) for word in words], word_ids
