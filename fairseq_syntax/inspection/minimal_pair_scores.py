"""How a model scores minimal pairs, and tables of that."""

import sys
from argparse import Namespace

from ..evaluate.contrast import Record, groups, mcnemar, wilson
from ..evaluate.minimal_pairs import Pairs
from ..evaluate.tables import format_table
from .forced_scores import forced_scores
from .loaded_model import Loaded, load
from .preparation import choose_parser, preparation


def score(args: Namespace, pairs: Pairs) -> Record:
    """Score the pairs by the model of the options."""
    loaded = load(args.path, args.data, args.cpu)
    cfg = loaded.task.cfg
    if loaded.task.target_dictionary is None:
        raise ValueError(f"{args.path}: {loaded.architecture} scores no translations; give a model that translates")
    choose_parser(loaded, args)
    prepare = [preparation(args, side, language) for side, language in enumerate((cfg.source_lang, cfg.target_lang))]
    found = forced_scores(
        loaded,
        [prepare[0](source) for source in pairs.sources],
        [[prepare[1](text) for text in pair] for pair in zip(pairs.correct, pairs.incorrect, strict=True)],
        [f"{pairs.source_path}:{number}" for number in range(1, len(pairs) + 1)],
        args.max_tokens,
    )
    scores = found.total if args.score == "sum" else found.mean
    record = Record(
        args.name or loaded.name, pairs.digest, args.score, scores[::2].tolist(), scores[1::2].tolist(), pairs.details
    )
    _warn(record, loaded, found)
    return record


def _warn(record: Record, loaded: Loaded, found) -> None:
    """Say how much of the text the model does not know: pairs that differ there say nothing."""
    say = [f"{found.unknown.sum() / found.tokens.sum():.1%} of the tokens are unknown"] if found.unknown.any() else []
    if record.ties:
        say.append(f"{record.ties} pairs have members of the same score, and count as wrong")
    if say:
        print(f"fairseq-syntax contrast: {loaded.name}: {'; '.join(say)}", file=sys.stderr)


# --- tables -------------------------------------------------------------------------------------------------------


def tables(records: list[Record], pairs: Pairs, form: str) -> str:
    """Accuracies, tests against the first system, and accuracies by group."""
    rows = [
        (record.name, len(pairs), int(record.right.sum()), *_accuracy(record.right), record.ties) for record in records
    ]
    found = [format_table(["system", "pairs", "right", "accuracy", "low", "high", "ties"], rows, form)]
    if len(records) > 1:
        first, *others = records
        tests = [mcnemar(first.right, other.right) for other in others]
        rows = [
            (o.name, t.first, t.second, f"{t.p:.4f}" if t.p >= 1e-4 else f"{t.p:.0e}")
            for o, t in zip(others, tests, strict=True)
        ]
        found.append(format_table([f"against {first.name}", "it alone", "this alone", "p McNemar"], rows, form))
    for name, parts in groups(pairs).items():
        header = [name, "pairs"]
        for record in records:
            header += [record.name if len(records) > 1 else "accuracy", "low", "high"]
        rows = [(label, len(part), *(x for r in records for x in _accuracy(r.right[part]))) for label, part in parts]
        found.append(format_table(header, rows, form))
    return "\n\n".join(found)


def _accuracy(right) -> tuple[float, float, float]:
    """Percent, and the ends of its interval."""
    return 100 * float(right.mean()), *(100 * end for end in wilson(int(right.sum()), len(right)))
