"""Names of the decoders, for command lines that start without NumPy; `spanning` has the algorithms."""

from enum import StrEnum

TreeDecoder = StrEnum("TreeDecoder", "mst eisner")
"""Algorithms that decode a tree from scores; see `spanning.DECODERS`."""
