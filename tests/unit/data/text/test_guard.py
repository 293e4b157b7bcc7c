"""Raw text that is not prepared as the training text was."""

import logging

import pytest

from fairseq_syntax.data.text.guard import Guard, shares
from fairseq_syntax.data.text.recipe import Side

TEXT = ["the old@@ er dog sees a cat , does n't it ? I do"] * 40


def test_shares():
    assert shares(["a b@@ c dog", "&@@ apos@@ ; @ @"]) == pytest.approx(
        {"single characters": 3 / 9, "escapes": 1 / 9, "pieces of pieces": 2 / 9}
    )
    assert shares(["▁a ▁& ap os; b ▁dog"])["escapes"] == 1 / 6 and set(shares([]).values()) == {0.0}


@pytest.mark.parametrize(
    ("texts", "unknown", "said"),
    [
        (TEXT, 0, ""),
        (TEXT[:5], 60, ""),  # too little to say
        (TEXT, 60, "14 % of the tokens of this text are unknown: is it of another language"),
        (["t@@ h@@ e o@@ l@@ d"] * 70, 0, "100 % of the tokens of this text are single characters, in training 14 %"),
        (["the dog & apos ; s cat"] * 60, 0, "14 % of the tokens of this text are escapes, in training 0 %: was it"),
        (["the old@ @ er dog @ @ sees"] * 60, 0, "38 % of the tokens of this text are pieces of pieces, in training"),
    ],
)  # fmt: skip
def test_what_is_far_from_training_is_told_once(caplog, texts, unknown, said):
    guard = Guard(shares(TEXT))
    with caplog.at_level(logging.WARNING):
        for text in texts:
            guard.count([text], unknown // len(texts) + 1 if unknown else 0)
    messages = [record.getMessage() for record in caplog.records]
    assert len(messages) == bool(said) and all(said in message for message in messages)


def test_without_a_recipe_unknown_tokens_count(caplog):
    guard = Guard({})
    with caplog.at_level(logging.WARNING):
        guard.count(["x @ @"] * 200, 100)
    assert ["17 % of the tokens of this text are unknown"] == [r.getMessage().split(":")[0] for r in caplog.records]


def test_text_that_is_cut_already():
    """The mark of a piece is none in raw text, so it is seen."""
    side = Side("en", "moses", False, "subword_nmt")
    assert shares([" ".join(side.words(["the old@@ er dog sees a c@@ at"])[0])])["pieces of pieces"] > 0.3
    assert shares([" ".join(side.words(["the dog &apos;s cat"])[0])])["escapes"] > 0.1
