"""fairseq-syntax preprocess --check on directories of all sorts."""

import hashlib
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


@pytest.mark.parametrize(
    ("content", "said"),
    [
        *((text, "not a manifest of en and de") for text in ("null", "[]", '{"format_version": true}', "[" * 100_000)),
        ("\udcff", "not a manifest of en and de"),
        ({"splits": []}, "not a manifest"),
        *((change, "not a manifest") for change in ({"sha256": {"x": 1}}, {"source_lang": None}, {"target_lang": 3})),
        ({"sha256": {"../../etc/hostname": "0"}}, "not a file of this directory"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_manifests_of_the_wrong_shape_are_one_message(data, capsys, tmp_path, content, said):
    path = shutil.copytree(data, tmp_path / "bin") / "syntax-en-de.json"
    if isinstance(content, dict):
        content = json.dumps({**json.loads(path.read_text()), **content})
    path.write_bytes(content.encode("utf-8", "surrogateescape"))
    code, _, (message,) = run(capsys, path.parent)
    assert code == 1 and message.startswith(f"fairseq-syntax preprocess: {path.parent}/") and said in message
    assert len(message) < 400 + len(str(path))


DAMAGE = {
    "gone": None,
    "empty": lambda content: b"",
    "cut": lambda content: content[:-4],
    "longer": lambda content: content + b"x",
    "flipped bit": lambda content: bytes([*content[:9], content[9] ^ 4, *content[10:]]),
}


def test_a_damaged_file_is_named_whatever_it_is(data, capsys, tmp_path):
    folder = shutil.copytree(data, tmp_path / "bin")
    (folder / "preprocess.log").unlink()
    for path in sorted(folder.iterdir()):
        content = path.read_bytes()
        for kind, damaged in DAMAGE.items():
            path.unlink(missing_ok=True)
            if damaged:
                path.write_bytes(damaged(content))
            code, out, err = run(capsys, folder)
            assert code == 1 and f"{folder}: all right" not in out, (path, kind)
            name = "" if (path.suffix, kind) == (".json", "gone") else path.stem
            assert any(str(folder / name) in line for line in err), (path, kind, err)
        path.write_bytes(content)


@pytest.mark.parametrize("name", ["train.en-de.en.heads.bin", "test.en-de.de.bin"])
def test_content_is_looked_at_though_its_checksum_is_right(data, capsys, tmp_path, name):
    folder = shutil.copytree(data, tmp_path / "bin")
    manifest = json.loads((folder / "syntax-en-de.json").read_text())
    (folder / name).write_bytes(b"\x7f" * len((folder / name).read_bytes()))
    manifest["sha256"][name] = hashlib.sha256((folder / name).read_bytes()).hexdigest()
    (folder / "syntax-en-de.json").write_text(json.dumps(manifest))
    code, _, err = run(capsys, folder)
    assert code == 1 and any(f"{folder}/{name}: damaged" in line for line in err), err


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
