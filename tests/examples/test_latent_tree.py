"""Latent trees over characters: the artificial language, and the recipe from beginning to end."""

import importlib.util
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
