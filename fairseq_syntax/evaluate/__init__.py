"""Scoring what models wrote: BLEU, RIBES, tests of significance, buckets by length."""
