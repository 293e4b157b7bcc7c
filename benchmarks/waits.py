"""How often the host waits for the GPU in a training step, by the rules of tests/pretend_gpu.py: no GPU is needed."""

import itertools
import sys
import tempfile
from pathlib import Path

import latent_trees
from checkout import ROOT
from timing import report_table

sys.path.append(str(ROOT / "tests"))
from golden.families import copies
from gpu_steps import CASES, kept_batch, load, optimizer_of, waits
from pretend_gpu import PretendGPU

SENTENCES = 6, 64


def run(quick: bool) -> None:
    """Print the counts; `quick`: of two systems."""
    counts = {}
    with tempfile.TemporaryDirectory() as folder:
        kept = copies(Path(folder))
        for case in list(CASES)[: 2 if quick else None]:
            model, cfg, task = load(kept, *CASES[case])
            samples = [kept_batch(task, "train", sentences) for sentences in SENTENCES]
            counts[case] = _counted(task, model, task.build_criterion(cfg.criterion), cfg, samples)
    if not quick:
        task, *system = latent_trees.translators(16)["latent_tree_rnng"]
        samples = [latent_trees.sentence_pairs(task, sentences, 66) for sentences in SENTENCES]
        counts["latent_tree_rnng, 66 symbols"] = _counted(task, *system, cfg, samples)
    alike = itertools.groupby(sorted(counts, key=counts.get), key=counts.get)
    rows = [[", ".join(f"`{case}`" for case in cases), *map(str, numbers)] for numbers, cases in alike]
    title = "how often the host waits for the GPU in a training step"
    report_table(title, ["`--arch`", *(f"{number} sentences" for number in SENTENCES)], rows)


def _counted(task, model, criterion, cfg, samples: list[dict]) -> list[int]:
    with PretendGPU() as gpu:
        model, criterion, samples = gpu.move(model), gpu.move(criterion), gpu.move(samples)
        optimizer = optimizer_of(cfg, "fp32", [weight for weight in model.parameters() if weight.requires_grad])
        return [waits(gpu, task, model, criterion, optimizer, sample)[0] for sample in samples]
