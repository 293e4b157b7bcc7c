"""Names of the ways to make a tree of scores; `spanning` has the algorithms, and needs NumPy."""

from enum import StrEnum


class TreeDecoder(StrEnum):
    """How a tree is made of scores; see `DECODERS`."""

    mst = "mst"
    eisner = "eisner"
    greedy = "greedy"
