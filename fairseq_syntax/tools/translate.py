"""fairseq-syntax translate: translate raw text, one sentence per line.

It writes one translation per line, in the order of the input; an empty line, or one of invisible characters, stays
empty. So does a line that is too long for the model, or that cannot be parsed, with a warning and, at the end, exit
status 1. If the data were
made from raw text (fairseq-syntax preprocess --raw), the input is raw text and the output detokenised; otherwise both
are as the model reads and writes them, in words or pieces. Several checkpoints, joined with colons, translate together.
For an experiment (fairseq-syntax experiment), the run that is best on the validation set
translates. A folder from fairseq-syntax export --to ctranslate2 runs on that library, without torch: on a CPU with
8-bit integers, 32 sentences of similar length at a time.

examples:
  fairseq-syntax translate study < news.en > news.sw
  fairseq-syntax translate study --system pascal --ensemble < news.en > news.sw
  fairseq-syntax translate data-bin --path checkpoints/pascal/checkpoint_best.pt < news.en > news.sw
  fairseq-syntax translate agreement-pascal --parser checkpoint --parser-model agreement-parser --input text.en
"""

import argparse
import itertools
import logging
import os
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from ..data.text.tokenizers import normalize
from ..files import STDIO, written
from ..progress import progress_bar
from ..trees.conllu import TreeFormatError
from . import verb

logger = logging.getLogger(__name__)

_LINES = 200  # lines that are translated together


def add_arguments(parser: argparse.ArgumentParser) -> None:
    verb.add_checkpoint_arguments(parser)
    add = parser.add_argument
    add("--input", default=STDIO, metavar="FILE", help="text, plain or .gz; - is stdin (default)")
    add("--output", default=STDIO, metavar="FILE", help="translations; - is stdout (default)")
    verb.add_system(parser)
    add("--ensemble", action="store_true", help="for an experiment: all seeds of the system together")
    verb.add_search(parser)
    verb.add_parsers(parser)
    verb.add_shared(parser, "--overwrite")


def check(parser: argparse.ArgumentParser, args: argparse.Namespace) -> None:
    args.served = bool(args.data) and not args.path and Path(args.data, "model.bin").is_file()
    if args.served:
        if args.system or args.ensemble or args.parser or any(vars(verb.parser_options(args)).values()):
            parser.error(f"{args.data} is an exported model: leave out --system, --ensemble and --parser options")
        return
    if args.ensemble and not verb.is_experiment(args):
        parser.error("--ensemble needs an experiment; give its folder")
    verb.check_model_arguments(parser, args)


def translate(
    hub, lines: Iterable[str], name: str = "the text", together: int = _LINES, **search
) -> Iterator[str | None]:
    """Yield the translation of each line; None, with a warning, if it is too long for the model or cannot be parsed.

    Args:
        hub: from `from_pretrained` of a model.
        lines: lines of a text, called `name` in messages.
        together: number of lines to read before their translations are written.
        search: options of fairseq-generate: `beam`, `max_len_a`, `max_len_b`; by default the model's own.
    """
    numbers, lines, longest = itertools.count(1), iter(lines), hub.max_positions[0]
    while batch := list(itertools.islice(lines, together)):
        encoded = iter(_encoded(hub, [line for line in batch if normalize(line)]))
        tokens = [next(encoded) if normalize(line) else () for line in batch]
        fits = [ids for ids in tokens if not isinstance(ids, TreeFormatError) and 0 < len(ids) <= longest]
        hyps = iter(hub.generate(fits, **search) if fits else [])
        for ids in tokens:
            number = next(numbers)
            if isinstance(ids, TreeFormatError):
                logger.warning("%s:%d: not translated: %s", name, number, ids)
                yield None
            elif len(ids) > longest:
                message = "%s:%d: %d tokens, but the model reads at most %d; not translated: split the line"
                logger.warning(message, name, number, len(ids) - 1, longest - 1)
                yield None
            else:
                yield hub.decode(next(hyps)[0]["tokens"]) if len(ids) else ""


def _encoded(hub, lines: list[str]) -> list:
    """The token ids of each line, or the TreeFormatError of a line that cannot be parsed."""
    task = getattr(hub, "task", None)
    # if equal sentences get the trees of a file in turn, a call that fails would skip trees
    alone = task is not None and task.required_inputs and getattr(task.live.parser, "in_turn", False)
    if len(lines) == 1 or not alone:
        try:
            return list(hub.encode(lines))
        except TreeFormatError as error:
            if len(lines) == 1:
                return [error]
    return [ids for line in lines for ids in _encoded(hub, [line])]


def open_hub(data: str, paths: str, cpu: bool = False, **overrides):
    """Load checkpoints, joined with colons, as a hub interface on `best_device`."""
    from ..hub import HubModel
    from .loaded_model import best_device

    files = [os.path.abspath(path) for path in paths.split(os.pathsep)]
    for path in files:
        if not Path(path).is_file():
            raise FileNotFoundError(f"{path}: no such checkpoint; give one file that fairseq-train wrote")
    folder = str(Path(files[0]).parent)
    hub = HubModel.from_pretrained(folder, os.pathsep.join(files), os.path.abspath(data), **overrides)
    return hub.to(best_device(cpu)).eval()


def _hub(args: argparse.Namespace):
    if args.served:
        from .export import Served

        return Served(args.data, args.cpu)
    verb.find_model(args, args.ensemble)
    options = {"parser": args.parser, **vars(verb.parser_options(args))}
    overrides = {name: value for name, value in options.items() if value}
    return open_hub(args.data, args.path, args.cpu, **overrides)


def run(args: argparse.Namespace) -> None:
    hub = _hub(args)
    terminal = args.input == STDIO and sys.stdin.isatty()
    lines = verb.input_lines(args.input) if not terminal else (line.rstrip("\n") for line in sys.stdin)
    together = 1 if terminal else _LINES
    name, left = verb.input_name(args.input), 0
    translations = translate(hub, lines, name, together, **verb.search_options(args))
    with written(args.output) as file, progress_bar(unit="sent", disable=args.output == STDIO) as bar:
        for line in translations:
            left += line is None
            file.write(f"{line or ''}\n")
            if args.output == STDIO:
                file.flush()
            bar.update()
    if left:
        raise ValueError(f"{name}: {left} lines are not translated; theirs are empty")


main = verb.Verb(__doc__, add_arguments, run, check, outputs=("output",))
