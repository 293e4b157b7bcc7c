"""Ensembles of all kinds, and alignments, through fairseq's commands."""

import re

import pytest
from integration import commands
from integration.commands import DECODING

VALID = ["--gen-subset", "valid"]


@pytest.fixture(scope="module")
def made(trained):
    """Function: architecture -> checkpoint."""
    return lambda arch: trained(arch) / "checkpoint_last.pt"


def test_alignment_is_printed(data_bin, made):
    checkpoint = made("sa_nmt_shared_tiny")
    output = commands.run(
        "fairseq-generate", data_bin, "--path", checkpoint, *DECODING, *VALID, "--print-alignment", "hard"
    )
    # a score a token, EOS included; some tokens are not shown in the text
    sources, scores, alignments = (dict(re.findall(rf"^{kind}-(\d+)\t(.*)$", output, re.MULTILINE)) for kind in "SPA")
    assert alignments.keys() == sources.keys() and len(sources) == 61
    for number, line in alignments.items():
        pairs = [tuple(map(int, pair.split("-"))) for pair in line.split()]
        length, found = len(sources[number].split()), len(scores[number].split())
        # EOS is aligned, too
        assert all(source <= length and target < found for source, target in pairs)
    assert any(line for line in alignments.values())


def test_ensembles(data_bin, made):
    """No member's own result; that probabilities are averaged: tests/contract/test_architectures.py."""
    # one without trees, two that read different ones
    paths = [str(made(arch)) for arch in ("sa_nmt_shared_tiny", "sdatt_tiny", "tag_transformer_tiny")]
    found = commands.generate(data_bin, ":".join(paths), *VALID, "--max-len-b", 12)
    assert sorted(found) == list(range(61))
    assert all(found != commands.generate(data_bin, path, *VALID, "--max-len-b", 12) for path in paths)
