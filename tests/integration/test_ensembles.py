"""Ensembles of all kinds, and alignments, through fairseq's commands."""

import re

from integration import commands
from integration.commands import DECODING


def test_ensembles_translate_and_align(trained, data_bin):
    """One without trees, two that read different ones; that probabilities are averaged: contract/test_architectures.py.

    A score a token is printed, EOS included, which is aligned, too; some tokens are not shown in the text.
    """
    members = ("sa_nmt_shared_tiny", "sdatt_tiny", "tag_transformer_tiny")
    paths = ":".join(str(trained(arch) / "checkpoint_last.pt") for arch in members)
    more = ["--gen-subset", "valid", "--max-len-b", "9", "--print-alignment", "hard"]
    output = commands.run("fairseq-generate", data_bin, "--path", paths, *DECODING, *more)
    sources, scores, alignments = (dict(re.findall(rf"^{kind}-(\d+)\t(.*)$", output, re.MULTILINE)) for kind in "SPA")
    assert alignments.keys() == sources.keys() and len(sources) == 61
    pairs = [(n, *map(int, pair.split("-"))) for n, line in alignments.items() for pair in line.split()]
    assert pairs
    assert all(source <= len(sources[n].split()) and target < len(scores[n].split()) for n, source, target in pairs)
