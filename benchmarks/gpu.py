"""On a GPU: training steps and translation of every family against its peer, in fp32 and bf16; memory; how often the
host waits for the GPU, and where.

    python benchmarks/gpu.py --json gpu.json

docs/speed.md has the figures of one run on an H100.
"""

import argparse
import json
import sys
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import date
from pathlib import Path

import latent_trees
import models
import torch
from checkout import commit
from fairseq import utils
from timing import side_by_side

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from gpu_steps import kept_batch, load

from fairseq_syntax.files import written

GOLDEN = Path(__file__).parents[1] / "tests" / "golden"
PRECISIONS = {"fp32": torch.float32, "bf16": torch.bfloat16}
DIRECTED = ("global_att", "flexible_att", "chen17", "sdatt", "global_plus_sdatt")
# of LGP-NMT, at the size of its paper; the golden data has what its parser reads
LGP_SIZE = {"lgp_size": 256, "lgp_parser_size": 100, "lgp_pos_size": 50}


def mover(device: str, dtype: torch.dtype) -> Callable:
    """What brings a model or a batch to a device, its floating-point numbers in another precision."""

    def move(thing):
        if isinstance(thing, torch.nn.Module):
            return thing.to(device, dtype)
        return utils.apply_to_sample(lambda x: x.to(device, dtype if x.is_floating_point() else x.dtype), thing)

    return move


def groups(quick: bool) -> dict[str, tuple[dict[str, dict], tuple[int, int]]]:
    """What is compared, the peer first, and sentences and tokens of a batch."""
    size, width = ("_tiny", 32) if quick else ("", 512)
    transformers = (*models.TRANSFORMERS, "dasa_transformer")
    batch, directed = (4, 8) if quick else (256, 30), models.directed(width)
    return {
        "Transformers of base size": (models.transformers(size, transformers), batch),
        f"recurrent models, states of {width}": (models.recurrent(width), batch),
        f"syntax-directed attention, states of {width}": ({name: directed[name] for name in DIRECTED}, batch),
    }


def of_golden(name: str, sentences: int, move: Callable, **options) -> Callable:
    """A training step of a family whose data cannot be made up: kept data, repeated, and a new model of `options`."""
    torch.manual_seed(1)
    model, cfg, task = load({folder: GOLDEN / folder for folder in ("checkpoints", "words")}, name, options)
    return models.update(move(model), task.build_criterion(cfg.criterion), [move(kept_batch(task, "train", sentences))])


def of_characters(quick: bool, move: Callable) -> dict[str, Callable]:
    """Training steps of the latent-tree RNNG and of fairseq's LSTM."""
    systems = latent_trees.translators(16 if quick else 384)
    batch = latent_trees.sentence_pairs(systems["lstm"][0], *((2, 4) if quick else (64, 66)))
    return {
        name: models.update(move(model), criterion, [move(batch)]) for name, (_, model, criterion) in systems.items()
    }


def timed(contestants: dict[str, Callable], rounds: int, steps: int, wait: Callable) -> dict[str, float]:
    """Median milliseconds of each; they take turns, some steps at a time."""

    def some(step):
        return lambda: ([step() for _ in range(steps)], wait())

    seconds = side_by_side({name: some(step) for name, step in contestants.items()}, rounds, warm_up=1)
    return {name: round(1e3 * value / steps, 2) for name, value in seconds.items()}


def waits(step: Callable) -> Counter:
    """File and line -> how often the host waited there for the GPU, in one step."""
    torch.cuda.set_sync_debug_mode("warn")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        step()
    torch.cuda.set_sync_debug_mode("default")
    return Counter(
        "/".join(Path(one.filename).parts[-2:]) + f":{one.lineno}" for one in caught if "synchroniz" in str(one.message)
    )


def peak(step: Callable) -> int:
    """MiB of the GPU's memory that a step has at most, beside those of the other systems."""
    step()
    before = torch.cuda.memory_allocated()
    torch.cuda.reset_peak_memory_stats()
    step()
    return round((torch.cuda.max_memory_allocated() - before) / 2**20)


def measured(title: str, contestants: dict[str, Callable], rounds: int, steps: int, gpu: bool) -> dict:
    """Figures of a group, printed as well."""
    result = {"title": title, "ms": timed(contestants, rounds, steps, torch.cuda.synchronize if gpu else lambda: None)}
    if gpu:
        result["MiB"] = {name: peak(step) for name, step in contestants.items()}
        result["waits"] = {name: dict(waits(step).most_common(8)) for name, step in contestants.items()}
    peer = result["ms"][next(iter(contestants))]
    print(f"\n{title}")
    for name, value in result["ms"].items():
        more = f"{result['MiB'][name]:8} MiB  {sum(result['waits'][name].values()):4} waits" if gpu else ""
        print(f"  {name:28} {value:9.2f} ms {peer / value:6.3f} {more}", flush=True)
    return result


def everything(device: str, quick: bool) -> Iterator[tuple[str, dict[str, Callable], int]]:
    """What is measured: title, contestants, and how many steps at a time: the host may run ahead."""
    steps = 1 if quick else 4
    for precision, dtype in PRECISIONS.items():
        move = mover(device, dtype)
        for name, (systems, batch) in groups(quick).items():
            contestants, _ = models.training_steps(systems, *batch, move)
            yield f"{name}, {precision}: training step, {batch[0]} sentences of {batch[1]} tokens", contestants, steps
        lgp = {
            f"lgp_nmt --lgp-graph {graph}": of_golden("lgp_nmt", 4 if quick else 128, move, lgp_graph=graph, **LGP_SIZE)
            for graph in ("seq", "dep", "uni", "latent")
        }
        yield f"LGP-NMT, {precision}: training step, 128 sentences", lgp, steps
    move, batch = mover(device, torch.float32), (2, 4) if quick else (64, 25)
    for name, (systems, _) in groups(quick).items():
        contestants = models.translations(systems, *batch, 5, move)
        yield f"{name}, fp32: translation, beam 5, {batch[0]} sentences of {batch[1]} tokens", contestants, 1
    yield "characters, fp32: training step, 64 pairs of 66 characters, size 384", of_characters(quick, move), 1


def main() -> None:
    """Measure, print, and keep."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="tiny sizes, on the CPU where there is no GPU")
    parser.add_argument("--json", type=Path, metavar="FILE", help="keep the figures in this file")
    args = parser.parse_args()
    gpu = torch.cuda.is_available()
    if not gpu and not args.quick:
        parser.error("there is no GPU here; --quick tries the program on the CPU")
    device, found = "cuda" if gpu else "cpu", []
    card = torch.cuda.get_device_name() if gpu else "CPU"
    about = {"date": f"{date.today()}", "commit": commit(), "machine": f"{card}, torch {torch.__version__}"}
    for title, contestants, steps in everything(device, args.quick):
        found.append(measured(title, contestants, 1 if args.quick else 3, steps, gpu))
        if args.json:
            with written(str(args.json)) as file:
                json.dump({**about, "measured": found}, file, indent=1)


if __name__ == "__main__":
    main()
