"""Parsers of raw text that this system brings, a file each; see `data.parsers`."""
