"""Small treebanks and parsers for tests: sentences of a grammar that a parser can learn, and models of them."""

import argparse
import random
from pathlib import Path

import torch
from seeds import seed

import fairseq_syntax.systems.lgp.decayed_sgd

# they register what fairseq's commands need
import fairseq_syntax.systems.parser.criterion
import fairseq_syntax.systems.parser.model  # noqa: F401
from fairseq_syntax.systems.parser.task import DependencyParsingConfig, DependencyParsingTask

_NOUNS = ["dog", "dogs", "doghouse", "house", "houses", "tree"]
_VERBS = ["sees", "seeing", "runs", "likes"]

# the paper's training, in small
TRAINING = [
    *("--task", "dependency_parsing", "--arch", "lgp_parser_tiny", "--criterion", "joint_parsing", "--sentence-avg"),
    *("--optimizer", "lgp_sgd", "--momentum", "0", "--lr", "1.0", "--lr-scheduler", "inverse_epoch"),
    *("--lgp-pass-clip-norms", "1,2", "--batch-size", "20", "--best-checkpoint-metric", "las"),
    *("--maximize-best-checkpoint-metric", "--seed", str(seed(1))),
]


def sentence(rng: random.Random) -> list[tuple]:
    """(word, UPOS, XPOS, head from 1 or 0, label) of each word."""
    rows = []

    def noun_phrase(head: int, label: str) -> None:
        adjective = rng.random() < 0.5
        noun = len(rows) + 2 + adjective
        rows.append((rng.choice(["the", "a"]), "DET", "DT", noun, "det"))
        if adjective:
            rows.append((rng.choice(["big", "green"]), "ADJ", "JJ", noun, "amod"))
        rows.append((rng.choice(_NOUNS), "NOUN", "NN", head, label))

    start = rng.random() < 0.5
    verb = 3 + start
    rows.append((rng.choice(["the", "a"]), "DET", "DT", verb - 1, "det"))
    if start:
        rows.append((rng.choice(["big", "green"]), "ADJ", "JJ", verb - 1, "amod"))
    rows.append((rng.choice(_NOUNS), "NOUN", "NN", verb, "nsubj:outer"))
    rows.append((rng.choice(_VERBS), "VERB", "VBZ", 0, "root"))
    if rng.random() < 0.7:
        noun_phrase(verb, "obj")
    rows.append((".", "PUNCT", ".", verb, "punct"))
    return rows


def write(path: Path, sentences: list[list[tuple]]) -> None:
    """Write rows of `sentence` as CoNLL-U."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "w", encoding="utf-8") as file:
        for rows in sentences:
            for number, (word, upos, xpos, head, label) in enumerate(rows, 1):
                file.write(f"{number}\t{word}\t_\t{upos}\t{xpos}\t_\t{head}\t{label}\t_\t_\n")
            file.write("\n")


def make(folder: Path, train: int = 60, valid: int = 20) -> Path:
    """A folder with train.conllu and valid.conllu."""
    rng = random.Random(5)
    write(folder / "train.conllu", [sentence(rng) for _ in range(train)])
    write(folder / "valid.conllu", [sentence(rng) for _ in range(valid)])
    return folder


def parser(folder: Path, task: dict | None = None, **options):
    """(task, model in double precision) of a small parser, with options of either."""
    made = DependencyParsingTask(DependencyParsingConfig(data=str(folder), **(task or {})))
    torch.manual_seed(3)
    args = argparse.Namespace(arch="lgp_parser_tiny", **{"lgp_parser_size": 5, "lgp_pos_size": 3, **options})
    return made, made.build_model(args).double()
