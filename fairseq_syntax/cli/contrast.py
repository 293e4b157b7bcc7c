"""fairseq-syntax contrast: how often a model prefers the right member of a minimal pair to the wrong one."""

import argparse
import logging
import sys
from collections.abc import Callable
from dataclasses import fields

from fairseq.data import encoders

from ..data.parsers import ParserOptions, find_parsers
from ..evaluate.contrast import Record, check_records, groups, mcnemar, read_record, wilson
from ..evaluate.minimal_pairs import Pairs, find_pairs, read_pairs
from ..evaluate.tables import format_table
from ..inspection.checkpoints import Loaded, add_checkpoint_arguments, load, positive
from ..inspection.forced_scores import forced_scores
from .attachment import add_format
from .outputs import exit_status, refuse_existing, written

_FILES = ("source", "correct", "incorrect")
_EPILOG = """\
The model scores both translations of a source, as fairseq-generate --score-reference does; it is right if the correct
one has the higher score, and wrong if they tie. Accuracies have the 95 % interval of Wilson; systems are compared with
the first one by the exact test of McNemar. Tables by distance, attractors and whatever else is in the details follow.
If the model needs trees, the source is parsed, or its trees are read: --parser conllu --parser-model FILE.

A folder of pairs holds src.LANGUAGE, tgt.correct.LANGUAGE and tgt.incorrect.LANGUAGE, a sentence a line, as those of
DistilLingEval do, and details.tsv, if there is one: a header, then a row a pair.

examples:
  fairseq-syntax contrast data-bin --path pascal.pt --pairs pairs/agreement --parser conllu \\
      --parser-model pairs/agreement/trees.en.conllu --output pascal.json
  fairseq-syntax contrast data-bin --path lisa.pt --pairs pairs/agreement --beside pascal.json
  fairseq-syntax contrast data-bin --path transformer.pt --pairs lingeval/np_agreement --tokenizer moses --lowercase \\
      --bpe subword_nmt --bpe-codes codes
  fairseq-syntax contrast --pairs pairs/agreement --beside transformer.json pascal.json --format markdown"""


def build_parser() -> argparse.ArgumentParser:
    """The program's options."""
    parser = argparse.ArgumentParser(
        prog="fairseq-syntax contrast",
        description="Accuracy of a model on minimal pairs: does it prefer the right translation to the wrong one?",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_checkpoint_arguments(parser, required=False)
    add = parser.add_argument
    add("--pairs", metavar="FOLDER", help="folder of pairs")
    for name in _FILES:
        add(f"--{name}", metavar="FILE", help=f"without --pairs: {name} sentences of the pairs, one a line")
    add("--details", metavar="FILE", help="what is known of each pair (default: details.tsv of the folder)")
    add("--name", help="of the system (default: its file and architecture)")
    add("--score", choices=["sum", "mean"], default="sum", help="log-probabilities of all tokens: their sum or mean")
    add("--beside", nargs="+", default=[], metavar="FILE", help="records of other systems, the first the baseline")
    add("--output", metavar="FILE", help="record of this system, JSON; - is stdout, instead of the tables")
    add("--tokenizer", choices=["moses"], help="split raw text into words, its punctuation normalised (sacremoses)")
    add("--lowercase", action="store_true", help="lower-case both sides")
    add("--bpe", choices=["subword_nmt", "fastbpe", "sentencepiece", "syntax_char"], help="cut both sides with this")
    add(
        "--bpe-codes", nargs="+", metavar="FILE", help="codes of --bpe: of both sides, or the source's and the target's"
    )
    add("--sentencepiece-model", nargs="+", metavar="FILE", help="in the same way, of --bpe sentencepiece")
    add("--parser", choices=list(find_parsers()), default="stanza", help="what parses the source (default: stanza)")
    for option in fields(ParserOptions):
        add(f"--{option.name.replace('_', '-')}", **option.metadata)
    add("--max-tokens", type=positive, default=4000, metavar="N", help="tokens a batch (default: 4000)")
    add_format(parser)
    add("--overwrite", action="store_true", help="replace the output if it exists")
    return parser


def main(argv: list[str] | None = None) -> int:
    """Entry point. Exit status: 0, 1 for bad data, 2 for bad usage."""
    parser = build_parser()
    args = parser.parse_args(argv)
    logging.basicConfig(level="WARNING", force=True)
    if (args.data is None) != (args.path is None):
        parser.error("DATA and --path go together: give the data directory and the checkpoint")
    if not args.path and (not args.beside or args.output):
        parser.error("give DATA and --path; without a model there is only --beside, of records that are there")
    named = [getattr(args, name) for name in _FILES]
    if (args.pairs is None) != all(named) or (args.pairs and any(named)):
        parser.error("give --pairs, or --source, --correct and --incorrect")
    needed = {"sentencepiece": "sentencepiece_model", "subword_nmt": "bpe_codes", "fastbpe": "bpe_codes"}.get(args.bpe)
    if needed and not getattr(args, needed):
        parser.error(f"--bpe {args.bpe} needs --{needed.replace('_', '-')}")
    if any(len(getattr(args, name) or []) > 2 for name in ("bpe_codes", "sentencepiece_model")):
        parser.error("--bpe-codes and --sentencepiece-model: one file, or one for each side")
    return exit_status(parser.prog, lambda: run(args))


def run(args: argparse.Namespace) -> None:
    """Score the pairs, write the record, print the tables.

    Raises:
        ValueError: pairs, model or records that do not go together.
        OSError: a file is missing.
    """
    refuse_existing([args.output], args.overwrite)
    files, details = find_pairs(args.pairs) if args.pairs else ({name: getattr(args, name) for name in _FILES}, None)
    pairs = read_pairs(**files, details=args.details or details)
    records = [read_record(path) for path in args.beside]
    if args.path:
        records.append(_score(args, pairs))
    check_records(records)
    if records[0].digest != pairs.digest:
        raise ValueError(f"{args.beside[0]}: a record of other pairs than {pairs.source_path}; give those")
    if args.output:
        with written(args.output) as out:
            out.write(records[-1].as_json())
    if args.output != "-":
        print(_tables(records, pairs, args.format))


def _score(args: argparse.Namespace, pairs: Pairs) -> Record:
    """Score the pairs by the model of the options."""
    loaded = load(args.path, args.data, args.cpu)
    cfg = loaded.task.cfg
    if loaded.task.target_dictionary is None:
        raise ValueError(f"{args.path}: {loaded.architecture} scores no translations; give a model that translates")
    if hasattr(loaded.task, "attach_syntax"):
        # the checkpoint has the parser of its training, if any
        cfg.parser = args.parser
        for option in fields(ParserOptions):
            setattr(cfg, option.name, getattr(args, option.name))
    prepare = [_preparation(args, side, language) for side, language in enumerate((cfg.source_lang, cfg.target_lang))]
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


def _preparation(args: argparse.Namespace, side: int, language: str) -> Callable[[str], str]:
    """Text -> pieces as the model reads them; side 0 is the source's, 1 the target's."""
    steps: list[Callable[[str], str]] = []
    if args.tokenizer:
        try:
            import sacremoses
        except ImportError:
            raise ValueError("--tokenizer moses: needs sacremoses, which is not installed; pip install it") from None
        normal, tokens = sacremoses.MosesPunctNormalizer(language), sacremoses.MosesTokenizer(language)
        steps += [normal.normalize, lambda text: tokens.tokenize(text, escape=False, return_str=True)]
    if args.lowercase:
        steps.append(str.lower)
    if args.bpe:
        given = {
            name: (getattr(args, name) or [None])[-1 if side else 0] for name in ("bpe_codes", "sentencepiece_model")
        }
        try:
            steps.append(encoders.build_bpe(argparse.Namespace(bpe=args.bpe, **given)).encode)
        except (RuntimeError, ValueError) as error:
            raise ValueError(f"--bpe {args.bpe}: {error}; give the files of the training") from None

    def prepare(text: str) -> str:
        for step in steps:
            text = step(text)
        return text

    return prepare


# --- tables -------------------------------------------------------------------------------------------------------


def _tables(records: list[Record], pairs: Pairs, form: str) -> str:
    """Accuracies, tests against the first system, and accuracies by group."""
    rows = [
        (record.name, len(pairs), int(record.right.sum()), *_accuracy(record.right), record.ties) for record in records
    ]
    tables = [format_table(["system", "pairs", "right", "accuracy", "low", "high", "ties"], rows, form)]
    if len(records) > 1:
        first, *others = records
        tests = [mcnemar(first.right, other.right) for other in others]
        rows = [(o.name, t.first, t.second, f"{t.p:.4f}") for o, t in zip(others, tests, strict=True)]
        tables.append(format_table([f"against {first.name}", "it alone", "this alone", "p McNemar"], rows, form))
    for name, parts in groups(pairs).items():
        header = [name, "pairs"]
        for record in records:
            header += [record.name if len(records) > 1 else "accuracy", "low", "high"]
        rows = [(label, len(part), *(x for r in records for x in _accuracy(r.right[part]))) for label, part in parts]
        tables.append(format_table(header, rows, form))
    return "\n\n".join(tables)


def _accuracy(right) -> tuple[float, float, float]:
    """Percent, and the ends of its interval."""
    return 100 * float(right.mean()), *(100 * end for end in wilson(int(right.sum()), len(right)))


if __name__ == "__main__":
    sys.exit(main())
