"""The agreement corpus of examples/agreement: its files, its linguistics, its score and its minimal pairs."""

from __future__ import annotations

import csv
import os
import re
import subprocess
import sys
import tomllib
from itertools import chain
from pathlib import Path

import pytest
from oracles import conllu_format

from fairseq_syntax.evaluate.minimal_pairs import read_pairs

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "agreement"
SPLITS = ("train", "valid", "test", "challenge")
ARGUMENTS = ("--train", "1200", "--valid", "100", "--test", "100", "--challenge", "40")


def run(script: str, *arguments: object, status: int = 0, **environment: str) -> subprocess.CompletedProcess:
    command = [sys.executable, str(EXAMPLE / script), *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, encoding="utf-8", env={**os.environ, **environment})
    assert done.returncode == status and "Traceback" not in done.stderr, done.stderr
    return done


def generate(folder: Path, *arguments: object, **environment: str) -> None:
    run("generate.py", "--output", folder, *arguments, **environment)


def lines(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").split("\n")[:-1]


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.fixture(scope="module")
def corpus(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("agreement") / "corpus"
    generate(folder, *ARGUMENTS)
    return folder


@pytest.fixture(scope="module")
def rows(corpus) -> list[dict[str, str]]:
    with open(corpus / "challenge.tsv", encoding="utf-8", newline="") as table:
        return list(csv.DictReader(table, delimiter="\t"))


# Files


def test_files_are_those_of_the_seed(corpus, tmp_path):
    generate(tmp_path / "again", *ARGUMENTS, PYTHONHASHSEED="7")
    assert contents(tmp_path / "again") == contents(corpus)
    expected = {f"{split}.{end}" for split in SPLITS for end in ("en", "de", "en.conllu")}
    assert set(contents(corpus)) == expected | {"challenge.tsv"}
    generate(tmp_path / "small", *ARGUMENTS, "--train", 10)
    small, full = contents(tmp_path / "small"), contents(corpus)
    different = {name for name in full if small[name] != full[name]}
    assert different == {"train.en", "train.de", "train.en.conllu"}, "held-out files are those of any training size"
    generate(tmp_path / "other", *ARGUMENTS, "--seed", 2)
    assert contents(tmp_path / "other")["train.en"] != full["train.en"]


@pytest.mark.parametrize("language", ["en", "de"])
def test_sentences_are_lower_case_tokenised_and_of_one_split(corpus, language):
    sentences = [lines(corpus / f"{split}.{language}") for split in SPLITS]
    assert [*map(len, sentences)] == [1200, 100, 100, 200] and len({*chain(*sentences)}) == 1600
    for line in chain(*sentences):
        words = line.split(" ")
        assert 5 <= len(words) <= 40 and words[-1] == "."
        assert all(re.fullmatch(r"[a-zäöüß]+|[.,]", word) for word in words), line


# Trees and linguistics


@pytest.mark.parametrize("split", SPLITS)
def test_trees_are_over_the_words_of_the_text_and_german_is_a_function_of_them(corpus, split):
    path = corpus / f"{split}.en.conllu"
    trees = conllu_format.read(path.read_bytes())
    assert [" ".join(tree.forms) for tree in trees] == lines(corpus / f"{split}.en")
    for tree in trees:
        conllu_format.check_universal(tree)
    assert run("transfer.py", path).stdout == (corpus / f"{split}.de").read_text(encoding="utf-8")


def tree_of(*words: str) -> str:
    """CoNLL-U from words written as form/upos/head/deprel."""
    rows = (f"{i}\t{{}}\t_\t{{}}\t_\t_\t{{}}\t{{}}\t_\t_\n".format(*word.split("/")) for i, word in enumerate(words, 1))
    return "".join(rows) + "\n"


TRANSFER = tomllib.loads(Path(__file__).with_name("transfer.toml").read_text(encoding="utf-8"))


def test_german_of_hand_made_trees(tmp_path):
    words, german = zip(*TRANSFER["german"].values(), strict=True)
    (tmp_path / "input.conllu").write_text("".join(tree_of(*tree.split()) for tree in words), encoding="utf-8")
    assert run("transfer.py", tmp_path / "input.conllu").stdout.splitlines() == list(german)


@pytest.mark.parametrize("words", TRANSFER["refused"])
def test_transfer_refuses_trees_that_it_does_not_cover(tmp_path, words):
    (tmp_path / "input.conllu").write_text(tree_of(*words.split()), encoding="utf-8")
    said = run("transfer.py", tmp_path / "input.conllu", status=1).stderr
    assert TRANSFER["refused"][words] in said and "input.conllu" in said


# Score


@pytest.fixture
def score(monkeypatch, corpus):
    """Function: translations -> their score."""
    monkeypatch.syspath_prepend(str(EXAMPLE))
    from score import read_challenge, score

    return lambda hypotheses: score(read_challenge(corpus / "challenge.tsv"), hypotheses)


def test_references_score_100_percent(corpus, score):
    """Detokenised, too."""
    references = lines(corpus / "challenge.de")
    result = score(references)
    assert result["overall"] == {"n": 200, "accuracy": 1, "wrong_number": 0, "missing": 0}
    assert {key: value["n"] for key, value in result["attractors"].items()} == {str(count): 40 for count in range(5)}
    assert score([re.sub(r" ([.,])", r"\1", line[0].upper() + line[1:]) for line in references]) == result


def test_the_other_number_both_forms_and_neither_are_wrong(rows, score):
    other = [row["plural" if row["expected"] == "singular" else "singular"] for row in rows]
    both = [f"{row['singular']} {row['plural']}" for row in rows]
    neither = ["" if i % 2 else f"x{row[row['expected']]}" for i, row in enumerate(rows)]
    for hypotheses, what in ((other, "wrong_number"), (both, "wrong_number"), (neither, "missing")):
        result = score(hypotheses)["overall"]
        assert result["accuracy"] == 0 and result[what] == 1


def test_the_table_and_what_is_no_challenge_set_or_of_another_length(corpus):
    given = ["score.py", "--challenge", corpus / "challenge.tsv", "--hypotheses"]
    table = [line.split() for line in run(*given, corpus / "challenge.de").stdout.splitlines()]
    assert [row[0] for row in table] == ["attractors", "0", "1", "2", "3", "4", "all"]
    assert table[-1] == ["all", "200", "100.0%", "0.0%", "0.0%"]
    assert "100 lines; expected 200" in run(*given, corpus / "test.de", status=1).stderr
    said = run("score.py", "--challenge", corpus / "test.de", "--hypotheses", corpus / "test.de", status=1).stderr
    assert "test.de:2: not a row of a challenge set" in said


# Minimal pairs


@pytest.fixture(scope="module")
def made(corpus) -> Path:
    run("pairs.py", "--corpus", corpus, "--output", corpus.with_name("pairs"))
    return corpus.with_name("pairs")


def test_agreement_differs_in_the_verb(made, corpus, rows):
    pairs = read_pairs(made / "agreement")
    assert pairs.correct == lines(corpus / "challenge.de")
    for correct, incorrect, row in zip(pairs.correct, pairs.incorrect, rows, strict=True):
        different = [(a, b) for a, b in zip(correct.split(), incorrect.split(), strict=True) if a != b]
        right, wrong = row["singular"], row["plural"]
        assert different == [(right, wrong) if row["expected"] == "singular" else (wrong, right)]
    for column in ("attractors", "distance"):
        assert pairs.details[column] == [row[column] for row in rows]


def test_attachment_is_what_the_rules_make_of_another_tree(made, corpus):
    pairs = read_pairs(made / "attachment")
    assert set(pairs.details["attachment"]) == {"phrase", "relative"} and len(pairs) > 5
    references = dict(zip(lines(corpus / "test.en"), lines(corpus / "test.de"), strict=True))
    assert [references[source] for source in pairs.sources] == pairs.correct
    # the trees beside the pairs are those of the members
    for name, members in (("trees", pairs.correct), ("other", pairs.incorrect)):
        trees = made / "attachment" / f"{name}.en.conllu"
        assert run("transfer.py", trees).stdout.splitlines() == members
        assert [" ".join(tree.forms) for tree in conllu_format.read(trees.read_bytes())] == pairs.sources
    assert not (made / "agreement" / "other.en.conllu").exists()
