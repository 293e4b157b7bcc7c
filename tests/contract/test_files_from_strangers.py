"""Nothing in a file of somebody else's runs, and nothing is written but what the user names.

tests/contract/test_damaged_checkpoints.py gives checkpoints with code to every command that takes one.
"""

import io
import tarfile
import tomllib
from argparse import Namespace
from pathlib import Path

import numpy as np
import pytest
import torch
from fairseq import checkpoint_utils, file_utils
from fairseq.data import codedataset
from fairseq.data.fasta_dataset import FastaDataset
from omegaconf import OmegaConf

from fairseq_syntax.compat.checkpoint_files import open_checkpoint
from fairseq_syntax.compat.checkpoint_options import refused_option
from fairseq_syntax.data.length_table import length_table_path, write_length_table

SHAPES = {
    "Namespace": lambda options: {"cfg": {"model": Namespace(**options), "task": {"_name": "translation"}}},
    "dict": lambda options: {"cfg": {"model": dict(options), "task": {"_name": "translation"}}},
    "nested": lambda options: {"cfg": {"model": {"_name": "x", "encoder": dict(options)}}},
    "DictConfig": lambda options: {"cfg": OmegaConf.create({"model": dict(options)})},
    "args": lambda options: {"args": Namespace(**options, arch="x", task="translation")},
}
TABLE = tomllib.loads(Path(__file__).with_name("strangers.toml").read_text(encoding="utf-8"))
REFUSED = [(*pair, reason) for reason, pairs in TABLE["refused"].items() for pair in pairs]
REFUSED += [
    ("activation_fn", {1, 2}, "set"),
    ("xformers_att_config", b"print()", "bytes"),
    ("\x1b[2J", "${x}", "\\x1b"),
]
LONG = ("1 #" * 999, "-" * 3000 + "1")


def saved(tmp_path, state) -> str:
    history = [{"num_updates": 1, "optimizer_name": "x", "lr_scheduler_state": {}}]
    state = {"model": {"x": torch.zeros(1)}, "args": None, "optimizer_history": history, **state}
    state["extra_state"] = {"train_iterator": {"epoch": 1}}
    torch.save(state, tmp_path / "given.pt")
    return str(tmp_path / "given.pt")


def message_of(path) -> str:
    """What is said by both ways into a checkpoint: fairseq's own, and that of commands that need no model."""
    said = []
    for load in (open_checkpoint, checkpoint_utils.load_checkpoint_to_cpu):
        with pytest.raises(ValueError) as caught:
            load(path)
        said.append(str(caught.value))
    assert said[0] == said[1] and said[0].startswith(f"{path}: ")
    assert said[0].isprintable() and len(said[0]) < 300 + len(path)
    return said[0]


@pytest.mark.parametrize(("option", "value", "reason"), REFUSED)
def test_no_option_is_more_than_a_value(option, value, reason, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for shape, make in SHAPES.items():
        if shape == "DictConfig" and isinstance(value, (set, bytes)):
            continue  # OmegaConf has no such values
        message = message_of(saved(tmp_path, make({option: value})))
        assert reason in message and (option in message or not option.isprintable()), shape
        assert [path.name for path in tmp_path.iterdir()] == ["given.pt"]


@pytest.mark.parametrize("text", [*TABLE["plain"], ":".join(["/data/shard"] * 200)])
def test_values_of_stock_models_load(text, tmp_path):
    for make in SHAPES.values():
        state = open_checkpoint(saved(tmp_path, make({"adaptive_softmax_cutoff": text})))
        assert text in str(state).replace("\\", "")


@pytest.mark.parametrize("text", [*TABLE["code"], *LONG])
def test_what_does_more_than_compute(text):
    assert refused_option({"cfg": {"model": {"x": text}}})


def test_folders_have_any_name_and_nothing_is_downloaded():
    assert not refused_option({"cfg": {"task": {"data": "data-bin(1)"}, "checkpoint": {"save_dir": "a/50%b[1]"}}})
    assert "download" in refused_option({"cfg": {"task": {"data": " http://x/(1)"}}})


def test_a_container_that_holds_itself_is_no_checkpoint(tmp_path):
    options = {"_name": "x"}
    options["itself"] = options
    assert "not a checkpoint" in message_of(saved(tmp_path, {"cfg": {"model": options}}))


@pytest.mark.parametrize("shape", ["dict", "Namespace"])
def test_files_that_a_checkpoint_would_write_or_run_are_forgotten(shape, tmp_path):
    """Unless the user names them."""
    task = {"_name": "x", "parser_dir": "x", "parser": "spacy", "parser_model": str(tmp_path)}
    kinds = {"dict": dict, "Namespace": Namespace}
    cfg = {"model": {"_name": "transformer"}, "task": kinds[shape](**task)}
    path = saved(tmp_path, {"cfg": cfg})
    found = checkpoint_utils.load_checkpoint_to_cpu(path, {"parser_dir": "mine"})["cfg"]["task"]
    get = found.get if shape == "dict" else vars(found).get
    assert [get(name) for name in task] == ["x", "mine", "spacy", None]
    (tmp_path / "given.pt").unlink()
    task["parser_model"] = "en_core_web_sm"
    found = checkpoint_utils.load_checkpoint_to_cpu(saved(tmp_path, {"cfg": {**cfg, "task": task}}))["cfg"]["task"]
    assert found["parser_model"] == "en_core_web_sm"


def test_what_the_user_gives_is_theirs_and_not_looked_at(tmp_path):
    """Of checkpoints of old versions, too, of which fairseq converted the options once more."""
    options = {"activation_fn": "relu", "data": "theirs", "arch": "transformer", "task": "translation"}
    path = saved(tmp_path, {"args": Namespace(**options)})
    state = checkpoint_utils.load_checkpoint_to_cpu(path, {"data": "mine", "xformers_att_config": "print()"})
    assert state["args"] is None and state["cfg"].task.data == "mine"
    assert state["cfg"].model.xformers_att_config == "print()"


def test_no_name_of_a_file_is_read_by_a_shell(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    name = "train.$(mkdir PWNED)-de.de"
    Path(f"{name}.fasta").write_text(">x\nABC\n")
    assert not FastaDataset.exists(name)
    Path("train.en-de.de.fasta").write_text(">x\nABC\n")
    assert FastaDataset.exists("train.en-de.de")


def test_no_line_of_a_manifest_is_code(tmp_path):
    (tmp_path / "manifest").write_text(f"__import__('os').mkdir({str(tmp_path / 'PWNED')!r})\n")
    with pytest.raises(ValueError, match="malformed"):
        codedataset.parse_manifest(str(tmp_path / "manifest"), None)
    assert not (tmp_path / "PWNED").exists()


@pytest.mark.parametrize("name", ["../outside", "/tmp/outside", "a/../../outside"])
def test_an_archive_stays_in_its_folder(name, tmp_path):
    path = tmp_path / "model.tar.gz"
    with tarfile.open(path, "w:gz") as archive:
        archive.addfile(tarfile.TarInfo("model/x"), io.BytesIO(b""))
        member = tarfile.TarInfo("model/link")
        member.type, member.linkname = (tarfile.SYMTYPE, name)
        archive.addfile(member)
        archive.addfile(tarfile.TarInfo(name), io.BytesIO(b""))
    with pytest.raises(ValueError, match=r"model\.tar\.gz: neither a folder nor an archive to unpack"):
        file_utils.load_archive_file(str(path))
    assert path.is_file()


def test_an_archive_is_unpacked(tmp_path):
    path = tmp_path / "model.tar.gz"
    with tarfile.open(path, "w:gz") as archive:
        for name in ("model", "model/x"):
            member = tarfile.TarInfo(name)
            member.type = tarfile.REGTYPE if "/" in name else tarfile.DIRTYPE
            archive.addfile(member, io.BytesIO(b""))
    assert [file.name for file in Path(file_utils.load_archive_file(str(path))).iterdir()] == ["x"]


def test_links_in_a_data_folder_lead_nowhere(tmp_path):
    """What is kept beside data takes the place of a link; what a user names goes where the link leads."""
    (tmp_path / "outside").write_text("x")
    table = length_table_path(tmp_path, "en", "de")
    table.symlink_to(tmp_path / "outside")
    write_length_table(table, np.zeros((2, 2)), {"source": "en", "target": "de"}, follow=False)
    assert (tmp_path / "outside").read_text() == "x"
    assert not table.is_symlink()
