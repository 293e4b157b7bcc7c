"""Additions to beam search: a prior over lengths, and source words for unknown target words."""
