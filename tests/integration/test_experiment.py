"""An experiment from raw text, by two workers, to a report; its best model translates raw text."""

import gzip
import subprocess
import sys
from pathlib import Path

import pytest

from fairseq_syntax.experiment import Experiment
from fairseq_syntax.trees.conllu import read_conllu
from fairseq_syntax.trees.perturbation import KINDS

VERB = [sys.executable, "-m", "fairseq_syntax"]
# a model and a search that take seconds
SMALLER = {
    "max_updates = 2000": "max_updates = 30",
    "seeds = [1, 2, 3]": "seeds = [1]",
    "--warmup-updates 200": "--warmup-updates 10",
    "embed-dim 128": "embed-dim 32",
    "layers 4": "layers 2",
    "ffn-embed-dim 512": "ffn-embed-dim 64",
    "--pascal-heads 2 0 0 0": "--pascal-heads 2 0",
    '"max_len_a": 1.5, "max_len_b": 10': '"max_len_a": 0, "max_len_b": 9',
    "--max-len-a 1.5 --max-len-b 10": "--max-len-a 0 --max-len-b 9",
    "subword_size = 1000": "subword_size = 60",
}


@pytest.fixture(scope="module")
def corpus(tmp_path_factory, repository) -> Path:
    """Raw text of the agreement corpus, with a pair that leaks, an empty one and one that is repeated."""
    folder = tmp_path_factory.mktemp("corpus")
    sizes = ["--train", "120", "--valid", "10", "--test", "20", "--challenge", "1"]
    generate = [sys.executable, repository / "examples" / "agreement" / "generate.py", "--output", folder, *sizes]
    subprocess.run(generate, check=True, capture_output=True)
    for name in ("train", "valid", "test"):
        for language in ("en", "de"):
            path = folder / f"{name}.{language}"
            # as people write: without a space before the full stop
            path.write_text(path.read_text(encoding="utf-8").replace(" .\n", ".\n"), encoding="utf-8")
    with open(folder / "train.en", "a") as source, open(folder / "train.de", "a") as target:
        source.write((folder / "test.en").read_text().splitlines()[3] + "\n\nwell !\nwell !\n")
        target.write("etwas\nleer\nnun !\nnun !\n")
    return folder


def begin(folder, corpus, *more):
    """Write experiment.toml; what is printed."""
    splits = [part for split in ("train", "valid", "test") for part in (f"--{split}", str(corpus / split))]
    parser = ["--parser", "checkpoint", "--parser-model", "agreement-parser"]
    command = [*VERB, "experiment", str(folder), "--source", "en", "--target", "de", *splits, "--list", *parser, *more]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def test_controls_read_linear_and_random_trees(corpus, tmp_path):
    begin(tmp_path, corpus, "--controls")
    Experiment(tmp_path).prepare()
    parsed, linear, random = (
        [tree.heads for tree in read_conllu(tmp_path / folder / "train.en.conllu.gz")]
        for folder in ("text", "linear", "random")
    )
    assert linear == [KINDS["right"](len(heads), None) for heads in parsed]
    assert [sorted(map(len, heads)) for heads in (random, linear)] == [sorted(map(len, parsed))] * 2
    assert sum(old == new for old, new in zip(parsed, random, strict=True)) < len(parsed) / 4
    assert all((tmp_path / f"data-bin-{kind}" / "dict.en.txt").exists() for kind in ("linear", "random"))


@pytest.mark.slow
def test_from_raw_text_by_two_workers_to_a_report(corpus, tmp_path):
    """Killed and resumed: unit/experiment/test_experiment.py."""
    folder = tmp_path / "study"
    assert begin(folder, corpus).split()[:2] == ["transformer-1", "pascal-1"]
    plan = folder / "experiment.toml"
    text = plan.read_text(encoding="utf-8")
    for old, new in SMALLER.items():
        assert old in text, old
        text = text.replace(old, new)
    plan.write_text(text, encoding="utf-8")

    command = [*VERB, "experiment", str(folder), "--jobs", "1"]
    workers = [subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    said = [worker.communicate(timeout=300) for worker in workers]
    assert [worker.returncode for worker in workers] == [0, 0], said
    done = [line for _, lines in said for line in lines.splitlines() if ": done, valid BLEU" in line]
    assert sorted(line.partition(":")[0] for line in done) == ["pascal-1", "transformer-1"], said
    assert len((folder / "raw" / "train.en").read_text().splitlines()) == 121  # one of `well !` stays
    assert (folder / "report.html").is_file()
    report = (folder / "report.txt").read_text(encoding="utf-8")
    assert "pascal" in report.splitlines()[0] and "transformer" in report.splitlines()[0]

    # raw text in, the recorded translations out, by the search that was scored, in the order of the input
    source = (corpus / "test.en").read_text(encoding="utf-8").splitlines()
    source.insert(2, "")
    translate = [*VERB, "translate", str(folder), "--system", "pascal", "--cpu"]
    done = subprocess.run(translate, input="\n".join(source) + "\n", capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.split("\n")[:-1]
    assert lines.pop(2) == ""
    recorded = gzip.decompress((folder / "results" / "pascal-1.test.txt.gz").read_bytes()).decode().split("\n")[:-1]
    assert lines == recorded
