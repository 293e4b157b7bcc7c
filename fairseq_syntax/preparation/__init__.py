"""Preparation of text, raw or in tokens, for training: trees (`parse`) and data directories (`preprocess`)."""
