"""The models whose checkpoints and data are kept, and what is computed with them.

Commit fc347e9 made them: one update of each, matrices set by `commands.scatter`, data of the agreement corpus. They
stay what it made. Nothing here knows where a module of fairseq_syntax is: commands, names and files must do.
"""

import hashlib
import importlib
import json
import re
import shutil
import tempfile
from pathlib import Path

import numpy as np
import torch
from fairseq import checkpoint_utils
from integration import commands

TRANSFORMER = [
    f"--{side}-{name}={value}"
    for side in ("encoder", "decoder")
    for name, value in (("embed-dim", 8), ("ffn-embed-dim", 16), ("layers", 2), ("attention-heads", 2))
]
SHARED = [*TRANSFORMER, "--share-all-embeddings"]
RECURRENT = [
    *("--encoder-embed-dim", "8", "--encoder-hidden-size", "4"),
    *("--decoder-embed-dim", "8", "--decoder-hidden-size", "8"),
]
SMOOTHED = ["--criterion", "label_smoothed_cross_entropy", "--label-smoothing", "0.1"]
HEADS = ["--criterion", "label_smoothed_cross_entropy_with_heads", "--label-smoothing", "0.1"]
SYNTAX = ["--task", "syntax_translation", *SMOOTHED]
LGP = ["--lgp-parser-size", "8", "--lgp-pos-size", "4", "--lgp-src-min-freq", "4"]

# name of the checkpoint -> data folder, options of the training beyond the architecture, which is called alike
FAMILIES = {
    "pascal_transformer": ("words", [*SYNTAX, *SHARED, "--pascal-heads", "1", "2", "--pascal-variance", "2"]),
    "lisa_transformer": ("words", [*SYNTAX, *HEADS, *SHARED, "--lisa-layer", "1"]),
    "tag_transformer": (
        "words",
        [*SYNTAX, *TRANSFORMER, "--share-decoder-input-output-embed", "--tag-inputs", "both", "--tag-embed-dim", "3"],
    ),
    "dasa_transformer": ("words", [*SYNTAX, *SHARED, "--dasa-sigma", "1.5"]),
    "nmt_lstm": ("words", [*SYNTAX, *RECURRENT]),
    "sa_nmt_shared": ("words", [*SYNTAX, *RECURRENT]),
    "sa_nmt_hard": ("words", [*SYNTAX, *RECURRENT, "--sa-root-scores", "diagonal", "--sa-punctuation-never-heads"]),
    "sdatt": ("words", [*SYNTAX, *RECURRENT, "--sdatt-n", "2"]),
    "global_plus_chen17": ("words", [*SYNTAX, *RECURRENT]),
    "global_plus_sdatt": ("words", [*SYNTAX, *RECURRENT, "--sdatt-position", "hard"]),
    "lgp_nmt": ("words", [*SYNTAX, *LGP, "--lgp-size", "12"]),
    "char_lstm": ("characters", [*SMOOTHED, *RECURRENT]),
    "latent_tree_rnng": (
        "characters",
        ["--task", "tree_translation", "--criterion", "reinforce_tree", "--rnng-size", "12"],
    ),
    "lgp_parser": (
        "treebank",
        [
            *("--task", "dependency_parsing", "--criterion", "joint_parsing", "--sentence-avg", *LGP),
            *("--optimizer", "lgp_sgd", "--momentum", "0", "--lr", "0.1", "--max-update", "3"),
        ],
    ),
}
SENTENCES = {"train": 24, "valid": 6, "test": 8}
PREPROCESSING = ["--joined-dictionary", "--allow-unparsed"]

DECODING = ["--cpu", "--beam", "2", "--max-len-a", "0", "--max-len-b", "12", "--batch-size", "4", "--nbest", "2"]


def translate(data: Path, name: str, checkpoint: Path) -> dict[str, list]:
    """Number of a sentence -> score and tokens, score and tokens, … of all hypotheses, by fairseq-generate."""
    more = {"latent_tree_rnng": ["--task", "tree_translation", "--beam", "1", "--nbest", "1"]}.get(name, [])
    output = commands.run("fairseq-generate", data, "--path", checkpoint, *DECODING, *more)
    found: dict[str, list] = {}
    for number, score, text in re.findall(r"^H-(\d+)\t(\S+)\t(.*)$", output, re.MULTILINE):
        found.setdefault(number, []).extend([round(float(score), 5), text])
    return dict(sorted(found.items()))


def validate(data: Path, checkpoint: Path) -> dict[str, float]:
    """What fairseq-validate reports of the split `valid`: losses of the criterion that the checkpoint names."""
    given = ["--cpu", "--path", checkpoint, "--batch-size", "3", "--log-format", "json", "--num-workers", "0"]
    given += ["--model-overrides", "{'rnng_valid_trees': 'greedy'}"]  # of no random numbers
    output = commands.run("fairseq-validate", data, *given)
    (record,) = re.findall(r"\{.*\"valid_loss\".*\}", output)
    values = {key: float(value) for key, value in json.loads(record).items()}
    # no speed, and nothing twice
    return {key: value for key, value in values.items() if not key.endswith(("_wps", "_wpb", "_bsz", "_ppl"))}


def arrays(data: Path, checkpoint: Path) -> dict[str, str]:
    """Array -> digest of its values in the split `test`, of those that the model in the checkpoint reads."""
    (model,), _, task = checkpoint_utils.load_model_ensemble_and_task(
        [str(checkpoint)], arg_overrides={"data": str(data)}
    )
    assert model.state_dict().keys() == commands.parameters(checkpoint).keys()
    task.load_dataset("test")
    dataset = task.dataset("test")
    batch = dataset.collater([dataset[i] for i in range(len(dataset))])
    return {name: digest(value) for name, value in sorted(batch["net_input"].get("src_syntax", {}).items())}


def digest(values: torch.Tensor) -> str:
    """Of shape and values; the type does not matter."""
    values = values.to(torch.float64).contiguous()
    return hashlib.sha256(repr(list(values.shape)).encode() + np.asarray(values).tobytes()).hexdigest()


def copies(folder: Path) -> dict[str, Path]:
    """Text, data folders, treebank and checkpoints, copied into a folder."""
    names = ("text", "words", "characters", "checkpoints")
    found = {name: Path(shutil.copytree(Path(__file__).with_name(name), folder / name)) for name in names}
    return found | {"treebank": treebank(found["text"])}


def treebank(text: Path) -> Path:
    """The trees of the corpus as a folder beside it that the parser's task reads."""
    folder = text.with_name("treebank")
    folder.mkdir()
    for split in SENTENCES:
        shutil.copy(text / f"{split}.en.conllu", folder / f"{split}.conllu")
    return folder


def parse(text: Path, checkpoint: Path) -> list[list[str]]:
    """Of every sentence `head label tag` of its words, by fairseq-syntax parse with a parser of ours."""
    with tempfile.TemporaryDirectory() as folder:
        words, trees = Path(folder, "words"), Path(folder, "trees")
        words.write_text((text / "test.en").read_text(encoding="utf-8").replace("@@ ", ""), encoding="utf-8")
        given = ["--input", str(words), "--output", str(trees), "--parser", "checkpoint", "--parser-model"]
        given.append(str(checkpoint))
        assert not importlib.import_module("fairseq_syntax.tools.parse").main(given)
        blocks = trees.read_text(encoding="utf-8").strip().split("\n\n")
    rows = [[row.split("\t") for row in block.splitlines() if row[0] != "#"] for block in blocks]
    # the label of a root was once what the parser thought; it is `root` since, and no other label is
    return [[f"{row[6]} {row[7] if row[6] != '0' else 'root'} {row[3]}" for row in sentence] for sentence in rows]


def compute(name: str, folders: dict[str, Path], checkpoint: Path) -> dict:
    """All that is compared of a family."""
    data = folders[FAMILIES[name][0]]
    found = {"losses": validate(data, checkpoint), "arrays": arrays(data, checkpoint)}
    if name == "lgp_parser":
        return found | {"trees": parse(folders["text"], checkpoint)}
    return found | {"translations": translate(data, name, checkpoint)}
