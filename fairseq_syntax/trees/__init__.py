"""Algorithms on trees, which need NumPy and PyTorch but not fairseq."""
