"""How a model scores minimal pairs."""

import sys
from argparse import Namespace
from collections.abc import Sequence

from ..evaluate.contrast import Record, check_records
from ..evaluate.minimal_pairs import Pairs
from .forced_scores import forced_scores
from .loaded_model import Loaded, load
from .preparation import choose_parser, preparation


def score(args: Namespace, pairs: Pairs, beside: Sequence[Record] = ()) -> Record:
    """Score the pairs by the model of the options; ValueError, before that, if `beside` does not go with it."""
    loaded = load(args.path, args.data, args.cpu)
    record = Record(args.name or loaded.name, pairs.digest, args.score, [], [], pairs.details)
    check_records([*beside, record])
    cfg = loaded.task.cfg
    if loaded.task.target_dictionary is None:
        raise ValueError(f"{args.path}: {loaded.architecture} scores no translations; give a model that translates")
    choose_parser(loaded, args)
    prepare = [preparation(args, side, language) for side, language in enumerate((cfg.source_lang, cfg.target_lang))]
    found = forced_scores(
        loaded,
        [f"{args.source_prefix} {prepare[0](source)}".strip() for source in pairs.sources],
        [[prepare[1](text) for text in pair] for pair in zip(pairs.correct, pairs.incorrect, strict=True)],
        [f"{pairs.source_path}:{number}" for number in range(1, len(pairs) + 1)],
        args.max_tokens,
    )
    scores = found.total if args.score == "sum" else found.mean
    record.correct, record.incorrect = scores[::2].tolist(), scores[1::2].tolist()
    _warn(record, loaded, found)
    return record


def _warn(record: Record, loaded: Loaded, found) -> None:
    """Say how much of the text the model does not know: pairs that differ there say nothing."""
    say = [f"{found.unknown.sum() / found.tokens.sum():.1%} of the tokens are unknown"] if found.unknown.any() else []
    if record.ties:
        say.append(f"{record.ties} pairs have members of the same score, and count as wrong")
    if say:
        print(f"fairseq-syntax contrast: {loaded.name}: {'; '.join(say)}", file=sys.stderr)
