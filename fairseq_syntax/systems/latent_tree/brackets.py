"""Trees over symbols as lines of brackets, from the actions of `transitions` and back.

The text `E i n ▁ M a n n` with its second word a constituent is `(X E i n ▁ (X M a n n ) )`: the root is written too.
Symbols are separated by spaces; brackets of the text are written -LRB- and -RRB-, as in treebanks.
"""

from collections.abc import Sequence

import numpy as np

from ...trees.conllu import TreeFormatError
from .constituents import NONE, constituents
from .transitions import Action

OPEN, CLOSE = "(X", ")"
_ESCAPES = (("(", "-LRB-"), (")", "-RRB-"))


def to_brackets(actions: np.ndarray, symbols: Sequence[Sequence[str]]) -> list[str]:
    """The trees of B sentences as lines without a line break.

    Args:
        actions: (B, T) of `Action`, filled up with NOP; legal and complete (see `legality`). Constituents that the end
            of the sentence closes are written, those that were dropped are not.
        symbols: those of each sentence, without its end.

    Raises ValueError if their number is not what the actions generate, or a symbol is empty or has a space in it.
    """
    if len(symbols) != len(actions):
        raise ValueError(f"actions of {len(actions)} sentences, symbols of {len(symbols)}; as many were expected")
    built = constituents(actions)
    lines = []
    for row, (sentence, length) in enumerate(zip(symbols, built.lengths.tolist(), strict=True)):
        if len(sentence) != length:
            raise ValueError(
                f"sentence {row}: {len(sentence)} symbols, but its actions generate {length}; symbols are given "
                "without the end of the sentence"
            )
        for symbol in sentence:
            if symbol.split() != [symbol]:
                raise ValueError(
                    f"sentence {row}: {symbol!r} cannot stand in a line of brackets; symbols are not empty and have no "
                    "spaces; write ▁ (U+2581) for the space"
                )
        text = iter(sentence)
        tokens = [OPEN]
        depth = 1
        for action, opened in zip(actions[row].tolist(), built.opens[row].tolist(), strict=True):
            if opened != NONE:
                tokens.append(OPEN)
                depth += 1
            elif action == Action.REDUCE:
                tokens.append(CLOSE)
                depth -= 1
            elif action == Action.GEN:
                symbol = next(text, None)
                if symbol is not None:  # else it is the end of the sentence
                    tokens.append(escape(symbol))
        lines.append(" ".join(tokens + [CLOSE] * depth))
    return lines


def from_brackets(line: str) -> tuple[list[int], list[str]]:
    """The actions that build a bracketed tree, and its symbols: the inverse of `to_brackets`.

    Every constituent but the root is closed by an action before the last, the GEN of the end of the sentence, which is
    not among the symbols. A symbol -LRB- or -RRB- of the text itself becomes a bracket.

    Raises TreeFormatError: no tree, with the place of the token (the first is 1) and what was expected.
    """
    actions: list[int] = []
    symbols: list[str] = []
    children: list[int] = []  # of every open constituent
    tokens = line.split()
    if not tokens:
        raise TreeFormatError(f"no token: a tree was expected, such as '{OPEN} a b {CLOSE}'")
    for place, token in enumerate(tokens, 1):
        if place > 1 and not children:
            raise TreeFormatError(
                f"token {place}: {token!r} comes after the root was closed; one tree in a line was expected"
            )
        if token == OPEN:
            if children:
                actions.append(int(Action.NT))
            children.append(0)
        elif not children:
            raise TreeFormatError(f"token {place}: {token!r} has no constituent around it; {OPEN!r} must come before")
        elif token == CLOSE:
            if len(children) > 1:
                if not children[-1]:
                    raise TreeFormatError(
                        f"token {place}: {token!r} closes a constituent with nothing in it; a symbol or a constituent "
                        "was expected"
                    )
                actions.append(int(Action.REDUCE))
            children.pop()
            if children:
                children[-1] += 1
        elif "(" in token or ")" in token:
            raise TreeFormatError(
                f"token {place}: {token!r} is neither {OPEN!r}, {CLOSE!r} nor a symbol; put spaces around brackets, "
                "and write those of the text -LRB- and -RRB-"
            )
        else:
            actions.append(int(Action.GEN))
            symbols.append(unescape(token))
            children[-1] += 1
    if children:
        raise TreeFormatError(
            f"token {len(tokens)}: the line ends here, and constituents that are open: {len(children)}; "
            f"as many {CLOSE!r} were expected"
        )
    actions.append(int(Action.GEN))
    return actions, symbols


def escape(symbol: str) -> str:
    """A symbol of the text as it stands in a line of brackets."""
    for bracket, name in _ESCAPES:
        symbol = symbol.replace(bracket, name)
    return symbol


def unescape(token: str) -> str:
    """The symbol of the text that a token of a line of brackets stands for."""
    for bracket, name in _ESCAPES:
        token = token.replace(name, bracket)
    return token
