"""fairseq-syntax average: a model whose parameters are the mean of those of several checkpoints."""

import argparse
import logging
import math
import re
import sys
from argparse import Namespace
from dataclasses import dataclass
from pathlib import Path

import torch
from fairseq import utils
from torch import Tensor
from tqdm import tqdm

import fairseq_syntax  # noqa: F401  (registers the models, and what checkpoints may hold)

from ..compat.checkpoint_files import check_state, open_checkpoint, options_of, reason
from ..evaluate.bleu import TOKENIZERS, Bleu
from ..evaluate.tables import TableFormat, format_table
from ..files import staged
from ..inspection.checkpoints import Loaded, load, positive
from .outputs import exit_status, refuse_existing

_EPILOG = """\
Every parameter becomes the uniform mean of that of all checkpoints, computed in double precision; the options come from
the last one. The result has no state of the optimizer: it is for fairseq-generate, fairseq-interactive, from_pretrained
and --finetune-from-model. The checkpoints must be of one training, or of trainings that began with the same parameters.

With --select-on, where the mean begins is chosen: it is taken over all checkpoints, over those from half the number of
the best one on (best by --best-checkpoint-metric of the training), and over the last 8, 5 and 3. Each of these models
translates the split; that with the highest BLEU is kept, of equal ones the mean of most checkpoints. BLEU is that of
the tokens of the data, unless --remove-bpe joins them.

examples:
  fairseq-syntax average --inputs checkpoints --from 11 --to 20 --output checkpoints/average.pt
  fairseq-syntax average --inputs checkpoints --select-on valid --data data-bin --output checkpoints/average.pt"""

_LAST = (8, 5, 3)
# of the last checkpoint, and not of the mean
_STALE = ("metrics", "val_loss", "best", "patience", "previous_training_time", "ema", "ema_fp32_params")


@dataclass(frozen=True)
class Checkpoint:
    """A file to take the mean over.

    Fields:
        number: N of checkpointN.pt, or the place among the files that were named, from 1.
        path: of the file.
    """

    number: int
    path: Path


def build_parser() -> argparse.ArgumentParser:
    """The program's options."""
    parser = argparse.ArgumentParser(
        prog="fairseq-syntax average",
        description="Average the parameters of checkpoints, of the suite's models or fairseq's own.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add(
        "--inputs",
        nargs="+",
        required=True,
        metavar="PATH",
        help="checkpoints, the oldest first; or one folder, of which checkpointN.pt (one an epoch) are taken",
    )
    add("--from", dest="first", type=positive, metavar="N", help="first N of a folder's checkpointN.pt (default: all)")
    add("--to", dest="last", type=positive, metavar="N", help="last N of a folder's checkpointN.pt (default: all)")
    add("--output", required=True, metavar="FILE", help="checkpoint to write")
    add("--overwrite", action="store_true", help="replace the output if it exists")
    group = parser.add_argument_group("choosing where to begin")
    add = group.add_argument
    add("--select-on", metavar="SPLIT", help="translate this split with the mean of several ranges; keep the best one")
    add("--data", metavar="DATA", help="data directory with the split and the dictionaries of the model")
    add("--beam", type=positive, default=1, metavar="N", help="beam size (default: 1, greedy)")
    add("--max-len-a", type=float, default=2, metavar="A", help="translations have at most A x source + B tokens (2)")
    add("--max-len-b", type=int, default=20, metavar="B", help="see --max-len-a (20)")
    add(
        "--remove-bpe",
        nargs="?",
        const="@@ ",
        metavar="MARK",
        help="join subwords before scoring: @@ (with a space; without MARK), sentencepiece, …",
    )
    add(
        "--tokenize",
        choices=TOKENIZERS,
        default="none",
        help="tokenizer of BLEU, sacrebleu's (default: none, the text is split at spaces)",
    )
    add("--batch-size", type=positive, default=64, metavar="N", help="sentences a batch (default: 64)")
    add("--cpu", action="store_true", help="do not use a GPU (default: if there is one)")
    add(
        "--format",
        choices=[str(form) for form in TableFormat],
        default=str(TableFormat.text),
        help="of the table of ranges: text (aligned), tsv or markdown (default: text)",
    )
    return parser


def main(argv: list[str] | None = None) -> int:
    """Entry point. Exit status: 0, 1 for bad data, 2 for bad usage."""
    parser = build_parser()
    args = parser.parse_args(argv)
    logging.basicConfig(level="WARNING", force=True)
    if args.select_on and not args.data:
        parser.error("--select-on: name the data directory with --data")
    if args.data and not args.select_on:
        parser.error("--data is of use with --select-on only")
    if (args.first or args.last) and not (len(args.inputs) == 1 and Path(args.inputs[0]).is_dir()):
        parser.error("--from and --to choose among the checkpoints of a folder; name one with --inputs")
    return exit_status(parser.prog, lambda: run(args))


def run(args: argparse.Namespace) -> None:
    """Write the mean; print the table of ranges, if there were any to choose from, on stdout.

    Raises:
        ValueError: the checkpoints do not fit together, or not the data.
        OSError: a file is missing.
    """
    refuse_existing([args.output], args.overwrite)
    checkpoints = find_checkpoints(args.inputs, args.first, args.last)
    if args.select_on:
        start, parameters = select(checkpoints, args)
        checkpoints = checkpoints[start:]
    else:
        mean = Mean()
        for checkpoint in tqdm(checkpoints[::-1], unit="checkpoint"):
            mean.add(checkpoint.path)
        parameters = mean.parameters()
        mean.report()
    write_checkpoint(args.output, parameters, [checkpoint.path for checkpoint in checkpoints])
    names = f"{checkpoints[0].path.name} to {checkpoints[-1].path.name}"
    print(f"{args.output}: mean of {len(checkpoints)} checkpoints, {names}", file=sys.stderr)


def find_checkpoints(inputs: list[str], first: int | None = None, last: int | None = None) -> list[Checkpoint]:
    """The checkpoints that are named, oldest first.

    Args:
        inputs: files, or one folder, of which checkpointN.pt are taken.
        first, last: bounds of N in a folder, both included; None: no bound.

    Raises:
        FileNotFoundError: one does not exist, or there is none in the range.
        ValueError: folders among files, or a file named twice.
    """
    paths = [Path(path) for path in inputs]
    if len(paths) == 1 and paths[0].is_dir():
        matches = [(re.fullmatch(r"checkpoint(\d+)\.pt", path.name), path) for path in paths[0].iterdir()]
        found = sorted((int(match[1]), path) for match, path in matches if match)
        if not found:
            raise FileNotFoundError(
                f"{paths[0]}: no checkpointN.pt in this folder; train without --no-epoch-checkpoints, or name the files"
            )
        inside = [Checkpoint(n, path) for n, path in found if (first or 1) <= n <= (last or n)]
        if not inside:
            raise FileNotFoundError(
                f"{paths[0]}: no checkpointN.pt with N from {first or 1} to {last or 'the last'}; "
                f"there are {found[0][0]} to {found[-1][0]}"
            )
        return inside
    for i, path in enumerate(paths):
        if path.is_dir():
            raise ValueError(f"{path}: is a folder; give one folder, or files only")
        if not path.is_file():
            raise FileNotFoundError(f"{path}: no such checkpoint; give files that fairseq-train wrote")
        if any(path.samefile(other) for other in paths[:i]):
            raise ValueError(f"{path}: is named twice")
    return [Checkpoint(number, path) for number, path in enumerate(paths, 1)]


def read_checkpoint(path: Path) -> dict:
    """What a checkpoint holds, as fairseq wrote it; tensors that are not touched are not read.

    Raises:
        ValueError: not a checkpoint of fairseq.
    """
    state = open_checkpoint(path)
    check_state(state, path)
    return state


class Mean:
    """The running mean of the parameters of checkpoints. The first that is added gives whatever cannot be averaged."""

    def __init__(self):
        self.count = 0
        self.differing: set[str] = set()
        self._first: Path | None = None
        self._architecture: str | None = None
        self._sums: dict[str, Tensor] = {}
        self._like: dict[str, Tensor] = {}
        self._storages: dict[str, tuple] = {}

    def add(self, path: Path) -> None:
        """Add the parameters in a checkpoint.

        Raises:
            ValueError: it is of another model.
        """
        state = read_checkpoint(path)
        tensors = state["model"]
        architecture = options_of(state).get("arch") or options_of(state).get("_name")
        if not self.count:
            self._first, self._architecture = path, architecture
            self._like = dict(tensors)
            self._storages = {name: () for name in tensors}
        else:
            self._check(tensors, path, architecture)
        for name, tensor in tensors.items():
            self._storages[name] += ((tensor.data_ptr(), tensor.shape, tensor.stride()),)
            if not tensor.is_floating_point():
                if not torch.equal(tensor, self._like[name]):
                    self.differing.add(name)
            elif self.count:
                self._sums[name] += tensor.double()
            else:
                self._sums[name] = tensor.to(torch.float64, copy=True)
        self.count += 1

    def _check(self, tensors: dict[str, Tensor], path: Path, architecture: str | None) -> None:
        where = f"{path}: of another model than {self._first}"
        if architecture != self._architecture:
            raise ValueError(f"{where}: {architecture}, not {self._architecture}; average checkpoints of one training")
        odd = sorted(tensors.keys() ^ self._like.keys())
        if odd:
            what = "has" if odd[0] in tensors else "lacks"
            more = f" (and {len(odd) - 1} more)" if odd[1:] else ""
            raise ValueError(f"{where}: {what} {odd[0]}{more}; average checkpoints of one training")
        for name, tensor in tensors.items():
            like = self._like[name]
            if tensor.shape != like.shape:
                raise ValueError(
                    f"{where}: {name} is {tuple(tensor.shape)}, not {tuple(like.shape)}; "
                    "average checkpoints of one training"
                )
            if tensor.dtype != like.dtype:
                raise ValueError(
                    f"{path}: {name} is {tensor.dtype}, but {like.dtype} in {self._first}; "
                    "average checkpoints of the same precision"
                )

    def parameters(self) -> dict[str, Tensor]:
        """The mean, in the data types of the checkpoints; tensors that are one in all of them are one here, too."""
        shared: dict[tuple, Tensor] = {}
        result = {}
        for name, like in self._like.items():
            if not like.is_floating_point():
                result[name] = like
                continue
            # without elements, all have the address 0
            key = self._storages[name] if like.numel() else name
            if key not in shared:
                shared[key] = (self._sums[name] / self.count).to(like.dtype)
            result[name] = shared[key]
        return result

    def report(self) -> None:
        """Say on stderr what could not be averaged."""
        if self.differing:
            names = sorted(self.differing)
            print(
                f"fairseq-syntax average: not numbers with fractions, and not the same everywhere: {', '.join(names)}; "
                f"taken from {self._first}",
                file=sys.stderr,
            )


def candidate_starts(checkpoints: list[Checkpoint], best: int | None) -> dict[str, int]:
    """Where a mean may begin: name of the range -> index of its first checkpoint; no range twice.

    Args:
        checkpoints: oldest first.
        best: number of the best one; None: not known.
    """
    starts = {"all": 0}
    if best is not None:
        starts["from best/2"] = next(i for i, checkpoint in enumerate(checkpoints) if 2 * checkpoint.number >= best)
    starts |= {f"last {count}": len(checkpoints) - count for count in _LAST if count <= len(checkpoints)}
    names = list(starts)
    return {name: start for i, (name, start) in enumerate(starts.items()) if start not in map(starts.get, names[:i])}


def best_number(checkpoints: list[Checkpoint]) -> int | None:
    """Number of the checkpoint that validated best, of equal ones the last; None if none says how it did."""
    scores = []
    for checkpoint in checkpoints:
        state = read_checkpoint(checkpoint.path)
        value = (state.get("extra_state") or {}).get("val_loss")
        if value is not None and not math.isnan(value):
            sign = 1 if options_of(state, "checkpoint").get("maximize_best_checkpoint_metric") else -1
            scores.append((sign * float(value), checkpoint.number))
    return max(scores)[1] if scores else None


def select(checkpoints: list[Checkpoint], args: argparse.Namespace) -> tuple[int, dict[str, Tensor]]:
    """Try the ranges of checkpoints and print how they did.

    Returns:
        Index of the first checkpoint of the best range, and its mean.

    Raises:
        ValueError: the checkpoints do not fit together, or not the data; the split has no references.
    """
    best = best_number(checkpoints)
    if best is None:
        print("fairseq-syntax average: no checkpoint was validated, so none is the best", file=sys.stderr)
    starts = candidate_starts(checkpoints, best)
    loaded = load(str(checkpoints[-1].path), args.data, args.cpu)
    translator = Translator(loaded, args)
    mean = Mean()
    scores: dict[int, float] = {}
    chosen = None
    # every range ends at the last checkpoint: one sum, from there backwards, serves all of them
    for start in range(len(checkpoints) - 1, -1, -1):
        mean.add(checkpoints[start].path)
        if start in starts.values():
            parameters = mean.parameters()
            # a copy: fairseq edits what it loads
            loaded.model.load_state_dict(dict(parameters))
            scores[start] = translator.bleu(f"{len(checkpoints) - start} checkpoints")
            if chosen is None or scores[start] >= scores[chosen[0]]:
                chosen = start, parameters
    mean.report()
    rows = [
        (
            f"{name} *" if start == chosen[0] else name,
            f"{checkpoints[start].path.name} to {checkpoints[-1].path.name}",
            len(checkpoints) - start,
            f"{scores[start]:.2f}",
        )
        for name, start in starts.items()
    ]
    print(format_table(["range", "files", "checkpoints", f"BLEU {args.select_on}"], rows, args.format))
    return chosen


class Translator:
    """Translates a split with the present parameters of a model, and scores it.

    Args:
        loaded: the model and its task.
        args: `select_on`, `beam`, `max_len_a`, `max_len_b`, `remove_bpe`, `tokenize` and `batch_size`.

    Raises:
        ValueError: the split has no references, or a sentence that is too long for the model.
    """

    def __init__(self, loaded: Loaded, args: argparse.Namespace):
        self.loaded, self.args = loaded, args
        self.split = loaded.load_split(args.select_on)
        if getattr(self.split, "tgt", None) is None:
            raise ValueError(f"--select-on {args.select_on}: has no target side; preprocess it with both languages")
        sizes = self.split.src_sizes
        limits = utils.resolve_max_positions(loaded.task.max_positions(), loaded.model.max_positions())
        longest = int(limits[0] if isinstance(limits, tuple) else limits)
        worst = int(sizes.argmax())
        if sizes[worst] > longest:
            raise ValueError(
                f"--select-on {args.select_on}: sentence {worst} has {sizes[worst]} tokens, but the model reads "
                f"{longest}; leave it out"
            )
        self.metric = Bleu(tokenize=args.tokenize)
        options = Namespace(beam=args.beam, max_len_a=args.max_len_a, max_len_b=args.max_len_b)
        self.generator = loaded.task.build_generator([loaded.model], options)
        self.order = sorted(range(len(self.split)), key=lambda i: -int(sizes[i]))

    def bleu(self, description: str) -> float:
        """BLEU of the split, 0 to 100; `description` stands beside the progress bar."""
        task, dictionary = self.loaded.task, self.loaded.task.target_dictionary
        found, references = [], []
        with tqdm(total=len(self.order), unit="sent", desc=description) as bar:
            for start in range(0, len(self.order), self.args.batch_size):
                numbers = self.order[start : start + self.args.batch_size]
                batch = self.loaded.to_device(self.split.collater([self.split[i] for i in numbers]))
                hypotheses = task.inference_step(self.generator, [self.loaded.model], batch)
                found += [self._text(best[0]["tokens"]) for best in hypotheses]
                targets = [utils.strip_pad(row, dictionary.pad()) for row in batch["target"]]
                # an unknown word of the reference is never right
                references += [[self._text(target, escape_unk=True)] for target in targets]
                bar.update(len(numbers))
        return self.metric.score(self.metric.statistics(found, references).sum(axis=0)).score

    def _text(self, tokens: Tensor, escape_unk: bool = False) -> str:
        dictionary = self.loaded.task.target_dictionary
        return dictionary.string(tokens.int().cpu(), self.args.remove_bpe, escape_unk=escape_unk)


def write_checkpoint(output: str, parameters: dict[str, Tensor], averaged: list[Path]) -> None:
    """Write parameters as a checkpoint of fairseq with the options of the last of `averaged`, but no optimizer.

    The file gets its name when it is complete. Where the last checkpoint stopped in its data is kept: fairseq asks for
    it, with `--finetune-from-model` too.
    """
    state = read_checkpoint(averaged[-1])
    extra = {name: value for name, value in (state.get("extra_state") or {}).items() if name not in _STALE}
    extra["averaged_checkpoints"] = [path.name for path in averaged]
    state = {name: value for name, value in state.items() if name != "last_optimizer_state"}
    try:
        with staged(output) as partial:
            torch.save({**state, "model": parameters, "extra_state": extra}, partial)
    except RuntimeError as error:
        # torch's own writer raises no OSError
        raise OSError(f"{output}: cannot be written ({reason(error)}); is the disk full?") from None


if __name__ == "__main__":
    sys.exit(main())
