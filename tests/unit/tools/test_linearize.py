"""fairseq-syntax linearize."""

from pathlib import Path

import pytest

from fairseq_syntax.tools.linearize import main

SOURCE = "a cat\n\nsleep@@ s !\n"
TARGET = "eine Katze\nleer\nschläft !\n"
TREES = """\
1\ta\t_\tDET\t_\t_\t2\tdet\t_\t_
2\tcat\t_\tNOUN\t_\t_\t0\troot\t_\t_

# text =

1\tsleeps\t_\tVERB\t_\t_\t0\troot\t_\t_
2\t!\t_\tPUNCT\t_\t_\t1\tpunct\t_\t_

"""


@pytest.fixture
def corpus(tmp_path):
    (tmp_path / "in.en").write_text(SOURCE, encoding="utf-8")
    (tmp_path / "in.de").write_text(TARGET, encoding="utf-8")
    (tmp_path / "in.en.conllu").write_text(TREES, encoding="utf-8")
    return tmp_path


def run(folder, *options):
    paths = ["--input", str(folder / "in"), "--output", str(folder / "new" / "out")]
    return main([*paths, "--source-lang", "en", "--target-lang", "de", *options])


def output(folder):
    return [(folder / "new" / f"out.{language}").read_text(encoding="utf-8").split("\n") for language in ("en", "de")]


def test_pairs_are_interleaved(corpus):
    assert run(corpus) == 0
    source, target = output(corpus)
    assert source[:3] == ["<translate> a cat <translate>", "<parse> a cat <parse>", "<translate> <translate>"]
    assert source[3:] == ["<translate> sleep@@ s ! <translate>", "<parse> sleep@@ s ! <parse>", ""]
    assert target == ["eine Katze", "(root (det ) )", "leer", "schläft !", "(root (punct ) )", ""]
    assert sorted(path.name for path in (corpus / "new").iterdir()) == ["out.de", "out.en"]


def test_translate_only_needs_no_trees(corpus):
    (corpus / "in.en.conllu").unlink()
    assert run(corpus, "--translate-only", "--symbol", "start") == 0
    assert output(corpus) == [
        ["<translate> a cat", "<translate>", "<translate> sleep@@ s !", ""],
        ["eine Katze", "leer", "schläft !", ""],
    ]


def test_given_parses_are_taken_as_they_are(corpus):
    (corpus / "in.en.conllu").unlink()
    (corpus / "parses").write_text("(NP DT NN )\n\n(S  (VP ) . )\r\n")
    assert run(corpus, "--parses", str(corpus / "parses")) == 0
    source, target = output(corpus)
    parses = [t for s, t in zip(source, target, strict=True) if s.startswith("<parse>")]
    assert parses == ["(NP DT NN )", "(S (VP ) . )"]


def test_sentence_without_parse_is_translated_only(corpus):
    (corpus / "in.en.conllu").write_text(TREES.replace("\t2\tdet", "\t_\t_").replace("\t0\troot", "\t_\t_", 1))
    assert run(corpus) == 0
    assert [line.split()[0] for line in output(corpus)[0][:-1]] == ["<translate>"] * 3 + ["<parse>"]


def test_a_link_stays(corpus):
    assert run(corpus) == 0
    (corpus / "new" / "out.en").replace(corpus / "elsewhere")
    (corpus / "new" / "out.en").symlink_to(corpus / "elsewhere")
    assert run(corpus, "--overwrite") == 0 and (corpus / "new" / "out.en").read_text(encoding="utf-8")


def test_a_new_text_never_stands_beside_an_old_one(corpus, monkeypatch):
    """Whenever the program is killed."""
    assert run(corpus) == 0
    old = output(corpus)
    (corpus / "in.de").write_text(TARGET.upper(), encoding="utf-8")
    (corpus / "in.en").write_text(SOURCE.replace("cat", "dog"), encoding="utf-8")
    states = []
    for name in ("replace", "unlink"):
        original = getattr(Path, name)

        def watched(path, *arguments, original=original, **options):
            files = [corpus / "new" / f"out.{language}" for language in ("en", "de")]
            states.append([f.read_text(encoding="utf-8").split("\n") if f.exists() else None for f in files])
            return original(path, *arguments, **options)

        monkeypatch.setattr(Path, name, watched)
    assert run(corpus, "--translate-only", "--overwrite") == 0
    monkeypatch.undo()
    assert old in states and output(corpus) in states
    assert all(state in (old, output(corpus)) or None in state for state in states)
