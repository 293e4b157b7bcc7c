"""From raw text to the pieces that a model reads, and back: said once, and stored with the data."""
