"""Conversion of raw text to the pieces that a model reads, and back, by settings stored with the data."""
