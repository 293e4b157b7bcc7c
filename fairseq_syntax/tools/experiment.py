"""fairseq-syntax experiment: from raw parallel text to a report on which system is better, and by how much.

The first call, which names the text, writes FOLDER/experiment.toml: settings for a corpus of this size, the systems and
their baselines. Then it cleans the training pairs, makes the data, says how long it will take, and trains, translates
and scores every system with several seeds. It ends with FOLDER/report.html and report.txt. Later calls need only
FOLDER; they resume what was stopped and repeat no finished run. They can add --systems and --controls, and change
--budget; other text or another parser is another experiment. Several processes may work on one folder.

examples:
  fairseq-syntax experiment study --source en --target sw --train raw/train --valid raw/dev --test raw/test \\
      --systems pascal tag --parser spacy --parser-model en_core_web_sm
  fairseq-syntax experiment study
  fairseq-syntax experiment study --list
  fairseq-syntax experiment study --only pascal-2 --gpu
  fairseq-syntax experiment examples/experiments/agreement.toml --trust --results docs/results/agreement
"""

import argparse
from dataclasses import fields
from pathlib import Path

from .verb import Verb, add_parsers, positive

_TEXT = ("source", "target", "train", "valid", "test")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("folder", type=Path, metavar="FOLDER", help="folder of the experiment, or a file like its experiment.toml")
    add(
        "--only",
        nargs="+",
        default=[],
        metavar="NAME",
        help="only these systems, or runs such as pascal-2 (default: all)",
    )
    add(
        "--jobs",
        type=positive,
        metavar="N",
        help="trainings to run at once, one thread each (default: one per core; with --gpu, 1)",
    )
    add("--gpu", action="store_true", help="use a GPU (default: CPUs)")
    add("--list", action="store_true", help="only print the runs that have no record yet")
    add("--report", action="store_true", help="only write the reports on runs that have a record")
    add("--dry-run", action="store_true", help="only print the trainings that are left to run")
    add("--output", metavar="DIR", help="data, checkpoints, reports (default: FOLDER, or outputs/NAME for a file)")
    add("--results", metavar="DIR", help="records and translations (default: results in the output folder)")
    add("--trust", action="store_true", help="run the script, the --user-dir or the spaCy folder that the file names")
    group = parser.add_argument_group("first call")
    add = group.add_argument
    add("--source", metavar="LANGUAGE", help="code of the source language, which is the suffix of its files")
    add("--target", metavar="LANGUAGE", help="likewise for the target language")
    add("--train", metavar="PREFIX", help="raw text: PREFIX.SOURCE and PREFIX.TARGET, plain or .gz")
    add("--valid", metavar="PREFIX", help="validation set, on which checkpoints are chosen")
    add("--test", nargs="+", metavar="PREFIX", help="one or more test sets")
    add(
        "--systems",
        nargs="+",
        default=[],
        metavar="NAME",
        help="systems to compare with their baselines (default: pascal)",
    )
    add("--controls", action="store_true", help="train systems with linear and with random trees, too")
    add(
        "--budget",
        default="",
        metavar="TIME",
        help="time limit, such as 8h or 90m, met by fewer seeds, then fewer updates",
    )
    add_parsers(group)


def check(parser: argparse.ArgumentParser, args: argparse.Namespace) -> None:
    named = [name for name in _TEXT if getattr(args, name)]
    if named and len(named) < len(_TEXT) and not (args.folder / "experiment.toml").exists():
        missing = next(name for name in _TEXT if name not in named)
        parser.error(f"--{named[0]} begins an experiment; give --{missing}, too")
    if args.source and args.source == args.target:
        parser.error(f"--source and --target are both {args.source}: give two languages")
    if code := next((code for code in (args.source, args.target) if "-" in (code or "")), ""):
        parser.error(f"{code}: fairseq cuts names at hyphens; name the files and the language {code.replace('-', '_')}")
    if args.gpu and not (args.list or args.dry_run or args.report):
        import torch  # takes a second

        if not torch.cuda.is_available():
            parser.error("--gpu: PyTorch finds no GPU here")
    if named and args.folder.suffix == ".toml":
        parser.error(f"{args.folder}: name a folder for the new experiment")


def run(args: argparse.Namespace) -> None:
    _begin(args)
    from ..experiment import Experiment, say

    experiment = Experiment(args.folder, args.output, args.results, args.trust, args.budget)
    if args.list or args.dry_run:
        left = [run for run in experiment.runs(args.only, args.gpu) if not run.record.exists()]
        for run in left:
            print(run.relative(run.train_command()) if args.dry_run else run.name)
        return
    try:
        if not args.report:
            experiment.run(args.only, args.jobs, args.gpu)
        for line in experiment.answer():
            print(f"{line}.")
    except KeyboardInterrupt:
        raise KeyboardInterrupt(f"; fairseq-syntax experiment {args.folder} resumes it") from None
    for page in sorted(experiment.out.glob("report*.html")):
        print(page)
    unfinished = [run.name for run in experiment.runs() if not run.record.exists()]
    if experiment.failed:
        raise ValueError(
            "\nfairseq-syntax experiment: ".join(f"{name}: {reason}" for name, reason in experiment.failed.items())
        )
    if unfinished:
        say(f"left to run: {', '.join(unfinished)}")


def _begin(args: argparse.Namespace) -> None:
    options = {name: getattr(args, name) for name in _TEXT if getattr(args, name)}
    if not (options or args.folder.is_file() or (args.folder / "experiment.toml").exists()):
        raise ValueError(
            f"{args.folder}: holds no experiment.toml; begin with --source, --target, --train, --valid, --test"
        )
    from ..experiment import begin, say
    from ..experiment.plan import TextSettings
    from ..experiment.settings import named_test_sets

    corpus = options | {name: str(Path(options[name]).resolve()) for name in ("train", "valid") if name in options}
    if tests := corpus.pop("test", None):
        corpus["tests"] = named_test_sets(tests)
    text = {option.name: value for option in fields(TextSettings) if (value := getattr(args, option.name, None))}
    for line in begin(args.folder, corpus, text, args.systems, args.controls):
        say(line)


main = Verb(__doc__, add_arguments, run, check)
