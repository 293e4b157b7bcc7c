"""From subwords back to words."""

import re
from collections.abc import Callable, Collection
from enum import StrEnum

from .text import TreeFormatError, quoted


class SubwordType(StrEnum):
    """How the words of a text are split into subwords."""

    subword_nmt = "subword_nmt"  # `@@` ends every piece of a word except the last; plain words need no other type
    sentencepiece = "sentencepiece"  # `▁` begins every word
    none = "none"  # every token is a word


SPACE = "\u2581"
"""The ▁ with which sentencepiece begins a word."""

_BYTES = re.compile("(?:<0x[0-9A-F]{2}>)+")


def split_words(tokens: list[str], subword_type: str, place: str) -> tuple[list[str], list[int]]:
    """`join_subwords`, but raises a TreeFormatError whose message names the `place` of the text."""
    try:
        return join_subwords(tokens, subword_type)
    except ValueError as error:
        raise TreeFormatError(f"{place}: {error}") from None


def cut_control_tokens(tokens: list[str], control: Collection[str]) -> tuple[list[str], list[str]]:
    """The tokens at the beginning of a sentence that are `control` tokens, such as <BT>, and the others."""
    count = next((n for n, token in enumerate(tokens) if token not in control), len(tokens))
    return tokens[:count], tokens[count:]


def encode_words(line: str, control: Collection[str], encode: Callable[[str], str]) -> str:
    """The tokens of a line, separated by spaces; `encode` is not given the `control` tokens at its beginning."""
    first, words = cut_control_tokens(line.split(), control)
    return " ".join([*first, encode(" ".join(words))]) if first else encode(line)


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
    """The words of a subword sequence, and the word of each subword.

    ("pre@@", "train", "it") -> ("pretrain", "it"), (0, 0, 1)

    A lone `▁` of sentencepiece belongs to the word after it, or to the last word at the end of the text. Raises
    ValueError: unknown type, or a text that ends inside a word.
    """
    if subword_type == SubwordType.none:
        return list(tokens), list(range(len(tokens)))
    if subword_type == SubwordType.subword_nmt:
        return _join_subword_nmt(tokens)
    if subword_type == SubwordType.sentencepiece:
        return _join_sentencepiece(tokens)
    raise ValueError(f"subword type {subword_type!r} is unknown; choose one of {', '.join(SubwordType)}")


def decode_bytes(text: str) -> str:
    """A text with the byte pieces of sentencepiece decoded: `<0xE7><0x8C><0xAB>` -> `猫`.

    Bytes that are not UTF-8 become U+FFFD, as in sentencepiece.
    """

    def decoded(match: re.Match) -> str:
        content = bytes.fromhex(match[0].replace("<0x", "").replace(">", ""))
        return re.sub("[\udc80-\udcff]", "\ufffd", content.decode("utf-8", "surrogateescape"))

    return _BYTES.sub(decoded, text)


def _join_subword_nmt(tokens: list[str]) -> tuple[list[str], list[int]]:
    words: list[str] = []
    word_of_token: list[int] = []
    pieces: list[str] = []
    for token in tokens:
        word_of_token.append(len(words))
        if token.endswith("@@"):
            pieces.append(token[:-2])
        elif pieces:
            words.append("".join(pieces) + token)
            pieces = []
        else:
            words.append(token)
    if pieces:
        raise ValueError(f"the text ends inside a word ({quoted(tokens[-1])}); was the line cut off?")
    return words, word_of_token


def _join_sentencepiece(tokens: list[str]) -> tuple[list[str], list[int]]:
    words: list[str] = []
    word_of_token: list[int] = []
    begun = True  # whether the next piece without a mark opens a word
    for token in tokens:
        opens = token.startswith(SPACE)
        text = token[1:] if opens else token
        if SPACE in text:
            raise ValueError(
                f"the piece {quoted(token)} spans several words; train sentencepiece with --split_by_whitespace=true"
            )
        if opens and not text:
            word_of_token.append(len(words))
            begun = True
            continue
        if opens or begun:
            words.append(text)
            begun = False
        else:
            words[-1] += text
        word_of_token.append(len(words) - 1)
    words = list(map(decode_bytes, words))
    if words:  # a final lone mark
        word_of_token = [min(word, len(words) - 1) for word in word_of_token]
    elif tokens:
        raise ValueError(f"the text has no word, only {quoted(' '.join(tokens))}")
    return words, word_of_token
