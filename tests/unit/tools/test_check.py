"""fairseq-syntax preprocess --check on directories of all sorts; damaged ones are in contract/test_damaged_data.py."""

import json
import shutil

import pytest
from corpora import Item, random_items, write_split
from integration.commands import binarize

from fairseq_syntax.tools import preprocess


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    folder = tmp_path_factory.mktemp("check")
    for seed, name in enumerate(("train", "test")):
        items = [*random_items(6, seed), Item([], []), Item([["a"], ["b"]], [-2, -2])]
        write_split(folder / name, items)
    return binarize({name: folder / name for name in ("train", "test")}, folder / "bin", "--allow-unparsed")


def run(capsys, *arguments):
    """Exit status, lines on stdout, lines on stderr."""
    code = preprocess.main(["--check", *map(str, arguments)])
    said = capsys.readouterr()
    return code, said.out.splitlines(), said.err.splitlines()


def test_what_is_right_is_summed_up(data, capsys):
    code, out, err = run(capsys, data)
    assert (code, err) == (0, [])
    assert [line.split(":")[0] for line in out] == ["test", "train", str(data)]
    assert "8 sentences" in out[0] and "1 unparsed" in out[0] and "distances" in out[0]
    assert run(capsys, data, "-s", "en", "-t", "de")[0] == 0


def test_arrays_that_are_not_stored_are_not_missed(data, capsys, tmp_path):
    text = data.parent
    made = binarize({"train": text / "train"}, tmp_path / "bin", "--allow-unparsed", "--no-distances")
    code, out, _ = run(capsys, made)
    assert code == 0 and "distances" not in out[0]


@pytest.mark.parametrize(
    "content",
    [
        *("null", "[]", "{}", '{"format_version": null}', '{"format_version": true}', "[" * 100_000, "\udcff"),
        {"splits": []},
        *({"sha256": sums} for sums in ([], {"x": 1})),
        *({"source_lang": "fr"}, {"source_lang": None}, {"target_lang": 3}, {"subword_type": "x"}),
    ],
    ids=lambda content: str(content)[:40],
)
def test_manifests_of_the_wrong_shape_are_one_message(data, capsys, tmp_path, content):
    path = shutil.copytree(data, tmp_path / "bin") / "syntax-en-de.json"
    if isinstance(content, dict):
        content = json.dumps({**json.loads(path.read_text()), **content})
    path.write_bytes(content.encode("utf-8", "surrogateescape"))
    code, _, (message,) = run(capsys, path.parent)
    assert code == 1 and message.startswith(f"fairseq-syntax preprocess: {path}: not a manifest of en and de in")
    assert len(message) < 400 + len(str(path))


def test_a_manifest_does_not_lead_out_of_the_directory(data, capsys, tmp_path):
    path = shutil.copytree(data, tmp_path / "bin") / "syntax-en-de.json"
    path.write_text(path.read_text().replace('"sha256": {', '"sha256": {"../../etc/hostname": "0", '))
    code, _, (message,) = run(capsys, path.parent)
    assert code == 1 and "not a file of this directory" in message


def test_every_fault_is_named_once(data, capsys, tmp_path):
    folder = shutil.copytree(data, tmp_path / "bin")
    shutil.copy(folder / "train.en-de.en.upos.bin", folder / "train.en-de.en.deprels.bin")
    (folder / "test.en-de.en.heads.bin").write_bytes(b"")
    (folder / "dict.de.txt").write_text((folder / "dict.de.txt").read_text() + "more 1\n")
    (folder / "test.en-de.de.idx").unlink()
    (folder / "train.en-de.en.words.idx").unlink()
    code, out, err = run(capsys, folder)
    assert code == 1 and f"{folder}: all right" not in out
    for name in ("train.en-de.en.deprels.bin", "test.en-de.de.idx", "dict.de.txt", "train.en-de.en.words.idx"):
        assert len([line for line in err if line.startswith(f"fairseq-syntax preprocess: {folder}/{name}: ")]) == 1, (
            name
        )
    assert len(err) == len(set(err))
