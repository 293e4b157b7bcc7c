"""Contents of the record of a run: training curve, environment, checksums and scores."""

import importlib.metadata
import json
import os
import platform
import re
import subprocess
import sys
from collections.abc import Iterable
from functools import cache
from pathlib import Path

import sacrebleu

from ..files import checksum
from ..trees.text import read_lines
from .plan import CHECKOUT, PlanError, Split

_JSON = re.compile(r"\| INFO \| (train|valid) \| (\{.*\})$")
_CURVE_KEYS = re.compile("valid_(?!wps|wpb|bsz|num_updates|best_loss)")  # not speeds, which differ when a run resumes
# Programs must not import files of the current folder, and must not buffer their output. Freed memory is kept, because
# glibc returns large blocks to the system, and getting them again, page by page, takes time.
_DEFAULTS = {
    "PYTHONSAFEPATH": "1",
    "PYTHONUNBUFFERED": "1",
    "OMP_NUM_THREADS": "1",
    "MALLOC_TRIM_THRESHOLD_": str(16 << 30),
    "MALLOC_MMAP_THRESHOLD_": str(4 << 30),
    "MALLOC_TOP_PAD_": str(256 << 20),
    "CUDA_VISIBLE_DEVICES": "0",  # with --gpu: fairseq would share a training between all
}
_PACKAGES = ("fairseq-syntax", "torch", "ve-fairseq", "fairseq-fixed", "fairseq", "sacrebleu", "numpy")


def read_log(path: Path) -> dict:
    """Read the log of fairseq-train (`--log-format json`), resumed or not.

    Returns:
        `epochs`, `updates`, `minutes` (of training and validation, without those of a killed epoch), and `curve`, a
        list of validations: `epoch`, `updates`, `loss`, and other figures of the criterion.
    """
    seconds, curve = [0.0], {}  # seconds of each call of fairseq-train
    for line in path.read_text(encoding="utf8", errors="replace").splitlines():
        if line.startswith("+ fairseq-train "):
            seconds.append(0.0)
        if not (match := _JSON.search(line)):
            continue
        entry = {key: _number(value) for key, value in json.loads(match[2]).items()}
        if match[1] == "train":
            seconds[-1] = entry["train_wall"]
        else:
            kept = {key.removeprefix("valid_"): value for key, value in entry.items() if _CURVE_KEYS.match(key)}
            curve[entry["epoch"]] = {"epoch": entry["epoch"], "updates": entry["valid_num_updates"], **kept}
    return {
        "epochs": max(curve, default=0),
        "updates": max((entry["updates"] for entry in curve.values()), default=0),
        "minutes": {"train": round(sum(seconds) / 60, 1)},
        "curve": [curve[epoch] for epoch in sorted(curve)],
    }


def _number(value):
    try:
        return json.loads(value)
    except (TypeError, ValueError):
        return value


def environment() -> dict[str, str]:
    """Environment of subprocesses; its PATH includes the folder of this Python, as in an activated venv."""
    path = os.pathsep.join(filter(None, [os.environ.get("PATH"), str(Path(sys.executable).parent)]))
    return {**_DEFAULTS, **os.environ, "PATH": path}


def hashes(out: Path, hashed: Iterable[str]) -> dict[str, str]:
    """SHA-256 of the files on which a system was trained: path below the output folder -> digest.

    Raises PlanError: a pattern names no file.
    """
    digests = {}
    for pattern in hashed:
        files = [path for path in sorted(out.glob(pattern)) if path.is_file()]
        if not files:
            raise PlanError(f"hashed: {out} has no file {pattern}; give those that were trained on")
        digests |= {str(path.relative_to(out)): _sha256(path) for path in files}
    return digests


def describe(device: tuple[str, ...] = ("--cpu",)) -> dict:
    """Commit, versions, processor, GPU (unless `device` has --cpu) and number of threads."""
    gpu = {}
    if "--cpu" not in device:
        import torch  # takes a second, which nothing else here needs

        gpu = {"gpu": torch.cuda.get_device_name()}
    return {
        "commit": commit(),
        "versions": {"python": platform.python_version(), **_versions()},
        "processor": _processor(),
        **gpu,
        "threads": int(environment()["OMP_NUM_THREADS"]),
    }


def commit() -> str:
    """Commit of the checkout, with `-changed` if files differ from it; `unknown` outside of a checkout."""
    if not (CHECKOUT / "fairseq_syntax").is_dir():
        return "unknown"

    def git(*arguments: str) -> str:
        done = subprocess.run(["git", *arguments], cwd=CHECKOUT, capture_output=True, text=True)
        return done.stdout.strip() if done.returncode == 0 else "unknown"

    # records that are written below docs/ during training do not count
    changed = git("status", "--porcelain", "--", ":!docs")
    return git("rev-parse", "HEAD") + ("-changed" if changed not in ("", "unknown") else "")


@cache
def _versions() -> dict[str, str]:
    installed = {package.name: package.version for package in importlib.metadata.distributions()}
    return {name: installed[name] for name in _PACKAGES if name in installed}


@cache
def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf8").splitlines()
    except OSError:
        return platform.processor()
    return next((line.split(":")[1].strip() for line in lines if line.startswith("model name")), platform.machine())


_sha256 = cache(checksum)


# --- scores -----------------------------------------------------------------------------------------------------------


def scores(hypotheses: list[str], out: Path, split: Split, tokenize: str) -> dict:
    """BLEU, with a tokenizer of sacrebleu (`none` for text in tokens), and chrF, with signatures.

    Raises PlanError: hypotheses and references differ in number.
    """
    references = list(read_lines(out / split.reference))
    if len(hypotheses) != len(references):
        raise PlanError(f"{out / split.reference}: {len(references)} lines, but {len(hypotheses)} translations")
    metrics = {"BLEU": sacrebleu.BLEU(tokenize=tokenize, force=tokenize == "none"), "chrF": sacrebleu.CHRF()}
    values = {name: metric.corpus_score(hypotheses, [references]).score for name, metric in metrics.items()}
    return {name: {"score": values[name], "signature": str(metrics[name].get_signature())} for name in metrics}
