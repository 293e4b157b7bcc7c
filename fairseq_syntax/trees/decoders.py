"""Names of the decoders, for command lines that start without NumPy; `spanning` has the algorithms."""

from enum import StrEnum

TreeDecoder = StrEnum("TreeDecoder", "mst eisner")
"""How a tree is decoded from scores; see `spanning.DECODERS`."""
