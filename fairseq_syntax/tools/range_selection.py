"""Where the mean of checkpoints should begin: BLEU of a split with the mean of several ranges."""

import math
import sys
from argparse import Namespace

from fairseq import utils
from torch import Tensor
from tqdm import tqdm

from ..compat.checkpoint_files import open_checkpoint, options_of
from ..evaluate.metrics import Bleu
from ..evaluate.tables import format_table
from ..training.averaging import Checkpoint, Mean
from .loaded_model import Loaded, load
from .sentences import check_lengths

_LAST = (8, 5, 3)


def candidate_starts(checkpoints: list[Checkpoint], best: int | None) -> dict[str, int]:
    """Where a mean may begin: name of the range -> index of its first checkpoint; no range twice.

    `best` is the number of the best one, if known.
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
        state = open_checkpoint(checkpoint.path)
        value = (state.get("extra_state") or {}).get("val_loss")
        if value is not None and not math.isnan(value):
            sign = 1 if options_of(state, "checkpoint").get("maximize_best_checkpoint_metric") else -1
            scores.append((sign * float(value), checkpoint.number))
    return max(scores)[1] if scores else None


def select(checkpoints: list[Checkpoint], args: Namespace) -> tuple[int, dict[str, Tensor]]:
    """Try the ranges of checkpoints and print how they did.

    Returns index of the first checkpoint of the best range, and its mean. Raises ValueError: the checkpoints do not fit
    together, or not the data; the split has no references.
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
    """Translates a split with the present parameters of a model, and scores it, by the options of the verb.

    Raises ValueError: the split has no references, or a sentence that is too long for the model.
    """

    def __init__(self, loaded: Loaded, args: Namespace):
        self.loaded, self.args = loaded, args
        self.split = loaded.load_split(args.select_on)
        if getattr(self.split, "tgt", None) is None:
            raise ValueError(f"--select-on {args.select_on}: has no target side; preprocess it with both languages")
        sizes = self.split.src_sizes
        places = [f"--select-on {args.select_on}: sentence {i}" for i in range(len(sizes))]
        check_lengths(loaded, [(size, 0) for size in sizes.tolist()], places)
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
        return self.metric.score(self.metric.statistics(found, references))

    def _text(self, tokens: Tensor, escape_unk: bool = False) -> str:
        dictionary = self.loaded.task.target_dictionary
        return dictionary.string(tokens.int().cpu(), self.args.remove_bpe, escape_unk=escape_unk)
