"""Trees as arrays. Pure algorithms: the standard library, NumPy and PyTorch only, never fairseq."""
