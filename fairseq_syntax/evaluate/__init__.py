"""Evaluation of translations and trees: metrics, significance tests, buckets of sentences."""
