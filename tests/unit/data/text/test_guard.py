"""Raw text that is not prepared as the training text was."""

import logging

import pytest

from fairseq_syntax.data.text.guard import Guard, shares

TEXT = ["the old@@ er dog sees a cat , does n't it ? I do"] * 40


def test_shares():
    assert shares(["a b@@ c dog", "&@@ \uffed apos@@ ;"]) == pytest.approx({"single characters": 3 / 8})
    assert set(shares([]).values()) == {0.0}


@pytest.mark.parametrize(
    ("texts", "unknown", "said"),
    [
        (TEXT, 0, ""),
        (TEXT[:5], 60, ""),  # too little to say
        (TEXT, 60, "14 % of the tokens of this text are unknown: is it of another language"),
        (["t@@ h@@ e o@@ l@@ d"] * 70, 0, "100 % of the tokens of this text are single characters, in training 14 %"),
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


def test_few_lines_of_many_single_characters_are_no_alarm(caplog):
    """In a sample of a few hundred tokens a share differs by chance."""
    guard = Guard({"single characters": 0.25})
    with caplog.at_level(logging.WARNING):
        guard.count(["a@@ b@@ c dogs"] * 30 + ["see the cats there"] * 45, 0)
    assert not caplog.records
