"""Latent trees over characters: the artificial language, and the recipe from beginning to end."""

import importlib.util
import os
import re
import subprocess
from itertools import product
from pathlib import Path

import pytest
from contract.recipes import EXAMPLES

FOLDER = EXAMPLES / "latent_tree"


@pytest.fixture(scope="module")
def artificial():
    """The script: function folder, options -> exit status."""
    spec = importlib.util.spec_from_file_location("artificial", FOLDER / "artificial.py")
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    return lambda folder, *options: script.main(["--output", str(folder), *options])


def lines(path: Path) -> list[list[str]]:
    return [line.split(" ") for line in path.read_text(encoding="utf-8").splitlines()]


@pytest.mark.parametrize("order", ["same", "reversed"])
def test_words_of_the_artificial_language(artificial, tmp_path, order):
    sizes = ["--train", "300", "--valid", "20", "--test", "10", "--words", "30"]
    assert artificial(tmp_path / "one", *sizes, "--order", order) == 0
    translations, lexicons = {}, {"src": set(), "tgt": set()}
    for split, size in (("train", 300), ("valid", 20), ("test", 10)):
        words = {language: lines(tmp_path / "one" / f"{split}.{language}.words") for language in lexicons}
        for language in lexicons:
            characters = lines(tmp_path / "one" / f"{split}.{language}")
            assert characters == [list("".join(line)) for line in words[language]] and len(characters) == size
            lexicons[language].update(word for line in words[language] for word in line)
        for source, target in zip(words["src"], words["tgt"], strict=True):
            assert 2 <= len(source) == len(target) <= 6
            for word, other in zip(source, target if order == "same" else target[::-1], strict=True):
                assert translations.setdefault(word, other) == other
    for language, alphabet in (("src", "abcdefgh"), ("tgt", "ijklmnop")):
        assert len(lexicons[language]) == 30
        assert all(3 <= len(word) <= 6 and set(word) <= set(alphabet) for word in lexicons[language])
        # a sentence can be cut in one way only
        assert not any(a != b and a.startswith(b) for a, b in product(lexicons[language], repeat=2))


def test_the_same_seed_gives_the_same_files(artificial, tmp_path, capsys):
    sizes = ["--train", "20", "--valid", "5", "--test", "5"]
    for name, seed in (("a", "3"), ("b", "3"), ("c", "4")):
        assert artificial(tmp_path / name, *sizes, "--seed", seed) == 0
    a, b, c = ({p.name: p.read_bytes() for p in (tmp_path / name).iterdir()} for name in "abc")
    assert len(a) == 12 and a == b != c
    assert artificial(tmp_path / "spaces", *sizes, "--seed", "3", "--spaces") == 0
    spaces = {p.name: p.read_bytes() for p in (tmp_path / "spaces").iterdir()}
    assert {name: text.replace("▁ ".encode(), b"") for name, text in spaces.items()} == a
    assert all(("▁".encode() in text) != name.endswith(".words") for name, text in spaces.items())
    assert artificial(tmp_path / "a", *sizes) == 1
    assert "exists already; give --overwrite" in capsys.readouterr().err
    with pytest.raises(SystemExit) as caught:
        artificial(tmp_path / "d", *sizes, "--longest", "1")
    assert caught.value.code == 2 and not (tmp_path / "d").exists()


@pytest.mark.slow
def test_recipe_from_text_to_scores_and_trees(repository, tmp_path):
    """On a few pairs, with small models."""
    text = tmp_path / "text"
    text.mkdir()
    pairs = [(f"Ein Hund ({i}) bellt .", f"A dog ({i}) barks .") for i in range(24)]
    for split in ("train", "val", "test_2016_flickr", "test_2017_flickr"):
        for place, language in enumerate(("de", "en")):
            chosen = pairs if split == "train" else pairs[:5]
            (text / f"{split}.{language}").write_text("".join(f"{pair[place]}\n" for pair in chosen), encoding="utf-8")
    settings = {"OUT": str(tmp_path / "out"), "DATA": str(text), "HIDDEN": "16", "MAX_EPOCH": "1", "BATCH_SIZE": "8"}

    def run(verb, *arguments):
        done = subprocess.run(
            ["bash", EXAMPLES / "recipe.sh", verb, "latent_tree", *arguments],
            cwd=repository,
            env={**os.environ, **settings},
            capture_output=True,
            text=True,
            timeout=300,
        )
        assert done.returncode == 0, done.stderr[-2000:]
        return done.stdout

    run("prepare")
    for system in ("latent", "words", "char_lstm", "lstm"):
        run("train", system)
        scores = run("evaluate", system)
        for line in ("== (?:cased|lowercase), repeated pairs of words removed: ", "BLEU\\|", "chrF2\\|"):
            assert len(re.findall(f"^ *{line}", scores, re.MULTILINE)) == 4
    assert set(re.findall(r"^(source|target) +found ", run("trees", "latent"), re.MULTILINE)) == {"source", "target"}
    # flat trees have no attention to draw
    drawn = {path.name for path in (tmp_path / "out" / "latent-1.test.trees.d").iterdir()}
    assert {f"{i}-trees.svg" for i in range(4)} <= drawn
