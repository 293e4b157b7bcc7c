"""Names of the ways to make a tree of scores; `spanning` has the algorithms, and needs NumPy."""

from enum import StrEnum

TreeDecoder = StrEnum("TreeDecoder", "mst eisner greedy")
"""How a tree is made of scores; see `DECODERS`."""
