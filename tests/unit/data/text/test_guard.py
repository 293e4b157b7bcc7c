"""Raw text that is not prepared as the training text was."""

import logging

import pytest

from fairseq_syntax.data.text.guard import Guard, shares

TEXT = ["the old@@ er dog sees a cat , does n't it ? I do"] * 40


def test_shares():
    assert shares(["a b@@ c dog", "&@@ \uffed apos@@ ;"]) == pytest.approx({"single characters": 3 / 8})
    assert set(shares([]).values()) == {0.0}


OF_TEXT = shares(TEXT)
# in a sample of a few hundred tokens a share differs by chance
FEW = ["a@@ b@@ c dogs"] * 30 + ["see the cats there"] * 45


@pytest.mark.parametrize(
    ("training", "texts", "unknown", "said"),
    [
        (OF_TEXT, TEXT, 0, ""),
        (OF_TEXT, TEXT[:5], 60, ""),  # too little to say
        (OF_TEXT, TEXT, 60, "14 % of the tokens of this text are unknown: is it of another language"),
        (OF_TEXT, ["t@@ h@@ e o@@ l@@ d"] * 70, 0, "100 % of the tokens of this text are single characters, in tra"),
        ({"single characters": 0.25}, FEW, 0, ""),
        ({}, ["x @ @"] * 200, 100, "33 % of the tokens of this text are unknown: "),  # without a recipe
    ],
)
def test_what_is_far_from_training_is_told_once(caplog, training, texts, unknown, said):
    guard = Guard(training)
    with caplog.at_level(logging.WARNING):
        for text in texts:
            guard.count([text], unknown // len(texts) + 1 if unknown else 0)
    messages = [record.getMessage() for record in caplog.records]
    assert len(messages) == bool(said) and all(said in message for message in messages)
