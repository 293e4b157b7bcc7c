"""fairseq-syntax-parse: dependency trees of a tokenised text, one a line, with Stanza or a parser of the suite."""

import argparse
import gzip
import json
import logging
import os
import shutil
import sys
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from itertools import islice
from pathlib import Path
from typing import IO

from tqdm import tqdm

from ..data.parsers import Parser, StanzaParser
from ..data.publishing import lock
from ..trees.conllu import (
    MAX_WORDS,
    Sentence,
    TreeFormatError,
    format_sentence,
    numbered_lines,
    open_text,
    parse_block,
    quoted,
    without_parse,
)
from ..trees.subwords import SubwordType, check_length, join_subwords
from .outputs import STDIO

_EPILOG = """\
One line of text is one sentence of tokens separated by spaces; one tree comes out for each, also
for empty lines. Work goes into OUTPUT.part, which becomes OUTPUT when it is complete. To resume a
run that was stopped or killed, run the same command again; to start over, delete OUTPUT.part.

Split over four processes, or machines (the sizes of the shards differ by one sentence at most):
  for i in 0 1 2 3; do
    fairseq-syntax-parse --input train.en --output train.en.$i.conllu.gz --shard $i/4 &
  done; wait
  cat train.en.[0-3].conllu.gz > train.en.conllu.gz

With model files, and text that is already cut into subwords:
  fairseq-syntax-parse --input train.bpe.en --output train.bpe.en.conllu.gz \\
    --subword-type subword_nmt --tagger tagger.pt --parser parser.pt

With a parser that fairseq-train made (--task dependency_parsing --arch lgp_parser), without Stanza's
models:
  fairseq-syntax-parse --input train.en --output train.en.conllu.gz --parser checkpoint_best.pt
"""


def read_lines(path: str | Path, name: str | None = None) -> Iterator[str]:
    """The lines of a UTF-8 text, `.gz` or plain, without line ends (LF or CRLF).

    Args:
        path: of the file.
        name: what messages call it; None takes the path.

    Raises:
        TreeFormatError: no such file, not UTF-8, a damaged gzip file; the message names the line.
    """
    with open_text(path) as lines:
        for _, line in numbered_lines(lines, name or str(path)):
            yield line.rstrip("\r\n")


def split_words(line: str, subword_type: str, place: str) -> list[str]:
    """The words of a line, split where fairseq splits it: at every kind of whitespace.

    Args:
        line: tokens.
        subword_type: a `SubwordType`; subwords are joined.
        place: file and line, for messages.

    Raises:
        TreeFormatError: the line ends inside a word.
    """
    try:
        return join_subwords(line.split(), subword_type)[0]
    except ValueError as error:
        raise TreeFormatError(f"{place}: {error}") from None


def shard_bounds(total: int, index: int, count: int) -> tuple[int, int]:
    """First line of a shard, 0-based, and the line after its last.

    The shards 0 … count-1 one after the other are all lines; their sizes differ by one at most.
    """
    return total * index // count, total * (index + 1) // count


def _shard(text: str) -> tuple[int, int]:
    try:
        index, count = (int(part) for part in text.split("/"))
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not of the form i/n, such as 0/4") from None
    if not 0 <= index < count:
        raise argparse.ArgumentTypeError(f"{text!r} does not exist; shards of n are 0/n to n-1/n")
    return index, count


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a positive number")
    return int(text)


def get_parser() -> argparse.ArgumentParser:
    """The command line of fairseq-syntax-parse."""
    parser = argparse.ArgumentParser(
        prog="fairseq-syntax-parse",
        description="Dependency trees (CoNLL-U) of a tokenised text, with Stanza or a parser of this suite.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--input",
        default=STDIO,
        metavar="FILE",
        help="text, plain or .gz; - is stdin (the default)",
    )
    parser.add_argument(
        "--output",
        default=STDIO,
        metavar="FILE",
        help="CoNLL-U, gzipped if it ends in .gz; - is stdout (the default; not resumable)",
    )
    parser.add_argument(
        "--language",
        default="en",
        metavar="CODE",
        help="of the text, a code of Stanza (default: en)",
    )
    parser.add_argument(
        "--model-dir",
        metavar="DIR",
        help="Stanza's models, downloaded to if missing (default: Stanza's own)",
    )
    parser.add_argument("--tagger", metavar="FILE", help="a tagger trained with Stanza; needs --parser")
    parser.add_argument(
        "--parser",
        metavar="FILE",
        help="with --tagger, a parser trained with Stanza; alone, a checkpoint of --arch lgp_parser, which tags, too",
    )
    parser.add_argument(
        "--decoder",
        choices=["mst", "eisner", "greedy"],
        help="with a checkpoint: mst: the best tree, arcs may cross; eisner: the best tree without crossing arcs; "
        "greedy: the best head of every word, which may make cycles or several roots (default: mst)",
    )
    parser.add_argument("--device", metavar="NAME", help="cpu, cuda, cuda:1, … (default: a GPU if there is one)")
    parser.add_argument(
        "--subword-type",
        default=SubwordType.none.value,
        choices=[kind.value for kind in SubwordType],
        help="how the text is cut into subwords, which are joined before parsing (default: none)",
    )
    parser.add_argument(
        "--shard",
        type=_shard,
        default=(0, 1),
        metavar="I/N",
        help="parse the I-th of N parts, I from 0",
    )
    parser.add_argument(
        "--chunk",
        type=_positive,
        default=2000,
        metavar="N",
        help="sentences a write (default: 2000)",
    )
    parser.add_argument(
        "--max-words",
        type=_positive,
        default=MAX_WORDS,
        metavar="N",
        help=f"words of the longest sentence that is accepted; a parser's memory grows with their square (default: "
        f"{MAX_WORDS})",
    )
    parser.add_argument("--overwrite", action="store_true", help="replace OUTPUT if it exists")
    return parser


def main(argv: list[str] | None = None) -> int:
    """Run fairseq-syntax-parse.

    Args:
        argv: arguments; None takes those of the process.

    Returns:
        Exit status: 0; 1 for wrong data, with one message on stderr; 130 when interrupted. Wrong
            usage exits 2.
    """
    parser = get_parser()
    args = parser.parse_args(argv)
    if args.tagger is not None and args.parser is None:
        parser.error("--tagger needs --parser: give both files of Stanza")
    if args.decoder is not None and not _is_own(args):
        parser.error("--decoder is of use with a checkpoint only: --parser without --tagger")
    logging.basicConfig(level="WARNING", force=True)
    try:
        _run(args)
    except KeyboardInterrupt:
        kept = _part(args.output)
        print(
            "fairseq-syntax-parse: interrupted; "
            + (
                f"{kept} is kept, run the same command again to resume"
                if args.output != STDIO and kept.exists()
                else "nothing is kept"
            ),
            file=sys.stderr,
        )
        return 130
    except BrokenPipeError:
        # whoever read stdout has gone (`| head`); keep Python from complaining when it closes it
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except (TreeFormatError, OSError) as error:
        print(f"fairseq-syntax-parse: {error}", file=sys.stderr)
        return 1
    return 0


def _is_own(args: argparse.Namespace) -> bool:
    """Whether the parser is one of this suite."""
    return args.parser is not None and args.tagger is None


def _load_parser(args: argparse.Namespace) -> Parser:
    if not _is_own(args):
        parser = StanzaParser(args.language, args.model_dir, args.tagger, args.parser, args.device)
        parser.arguments = ("--tagger", "--parser")
        return parser
    try:
        # it needs fairseq, which Stanza does not
        from ..systems.parser.own_parser import OwnParser
    except ImportError as error:
        raise TreeFormatError(f"{args.parser}: reading a checkpoint needs fairseq ({error})") from None
    return OwnParser(args.parser, args.decoder or "mst", args.device)


def _part(output: str) -> Path:
    return Path(output + ".part")


def _run(args: argparse.Namespace) -> None:
    output = Path(args.output)
    if args.output != STDIO and output.exists():
        # first of all, as reading the text may take a while
        if not args.overwrite:
            raise TreeFormatError(f"{output}: exists already; give --overwrite to replace it")
        if args.input != STDIO and output.samefile(args.input):
            raise TreeFormatError(f"{output}: is the input; give another --output")
    parser = _load_parser(args)
    with ExitStack() as stack:
        source = stack.enter_context(_seekable(args.input))
        name = "stdin" if args.input == STDIO else args.input
        start, end = shard_bounds(_count_lines(source, args, name), *args.shard)
        words = (
            split_words(line, args.subword_type, f"{name}:{number}")
            for number, line in enumerate(islice(read_lines(source, name), start, end), start + 1)
        )
        bar = stack.enter_context(tqdm(total=end - start, unit="sent"))
        if args.output == STDIO:
            _parse_rest(words, parser, sys.stdout.buffer, args.chunk, bar, name, start + 1)
            return
        output.parent.mkdir(parents=True, exist_ok=True)
        part = stack.enter_context(open(_part(args.output), "a+b"))
        # a shard with the same --output
        lock(part, f"{part.name}: another process is writing it; give every run its own --output")
        header = _header(args)
        done = _resume(part, header, words, args.chunk, name)
        if done:
            bar.write(
                f"fairseq-syntax-parse: {part.name}: {done} of {end - start} sentences are done",
                file=sys.stderr,
            )
            bar.update(done)
        _parse_rest(words, parser, part, args.chunk, bar, name, start + done + 1)
        _finish(part, len(header), output)


def _count_lines(source: str, args: argparse.Namespace, name: str) -> int:
    """Lines of the text. Raises TreeFormatError if a sentence is too long, before hours of work."""
    number = 0
    for number, line in enumerate(read_lines(source, name), 1):
        check_length(line, args.subword_type, args.max_words, f"{name}:{number}")
    return number


@contextmanager
def _seekable(path: str) -> Iterator[str]:
    """A path that can be read twice, for counting first. Stdin and pipes are copied to disk."""
    is_stdin = path == STDIO
    if not is_stdin and (Path(path).is_file() or Path(path).is_dir() or not Path(path).exists()):
        yield path
        return
    with ExitStack() as stack:
        source = sys.stdin.buffer if is_stdin else stack.enter_context(open(path, "rb"))
        copy = stack.enter_context(tempfile.NamedTemporaryFile(prefix="fairseq-syntax-parse."))
        shutil.copyfileobj(source, copy)
        copy.flush()
        yield copy.name


def _header(args: argparse.Namespace) -> bytes:
    """First line of the part file: what made its trees. It is not in the finished file."""
    models = {
        name: [Path(path).name, os.path.getsize(path)]
        for name, path in (("tagger", args.tagger), ("parser", args.parser))
        if path is not None and os.path.exists(path)
    }
    settings = {"language": args.language, "subword_type": args.subword_type, **models}
    if _is_own(args):
        settings["decoder"] = args.decoder or "mst"
    return f"# fairseq-syntax-parse {json.dumps(settings)}\n".encode()


def _resume(part: IO[bytes], header: bytes, words: Iterator[list[str]], chunk: int, name: str) -> int:
    """Find out how far a part file goes, cut off what comes after, and leave it ready for
    appending.

    Only whole chunks are kept, so that the rest is parsed in the same groups as in an uninterrupted
    run and gets the same trees to the last one.

    Args:
        part: file open for reading and appending.
        header: its first line; written if there is none yet.
        words: of the sentences of the input; those of the trees that are kept are taken from it.
        chunk: sentences a chunk.
        name: of the input, for messages.

    Returns:
        Number of trees that are kept, a multiple of `chunk`.

    Raises:
        TreeFormatError: the file was made of another text or with other settings.
    """
    part.seek(0)
    found = part.readline()
    if not part.read(1):  # no tree yet, say because a model file did not load
        part.truncate(0)
        part.write(header)
        return 0
    if found != header:
        raise TreeFormatError(
            f"{part.name}: was begun with other settings "
            f"({found.decode(errors='replace').strip()}); "
            "run with the same ones to resume, or delete it to start over"
        )
    part.seek(len(header))
    blocks = _complete_blocks(part)
    kept, end, line_number = 0, len(header), 2
    while len(group := list(islice(blocks, chunk))) == chunk:
        for number, block in enumerate(group, kept + 1):
            expected = next(words, None)
            forms = _forms(block, part.name, line_number)
            if forms != expected:
                line = "the end" if expected is None else quoted(" ".join(expected))
                raise TreeFormatError(
                    f"{part.name}: sentence {number} (line {line_number}) is {quoted(' '.join(forms))}, but in {name} "
                    f"it is {line}; "
                    "give the same --input and --shard to resume, or delete the part file to "
                    "start over"
                )
            line_number += block.count(b"\n")
        kept += chunk
        end += sum(map(len, group))
    part.seek(end)
    part.truncate()
    return kept


def _forms(block: bytes, name: str, line: int) -> list[str]:
    """The words of a tree that this program wrote, from a line of the part file on.

    Its heads may form cycles (`--decoder greedy`).
    """
    try:
        lines = block.decode("utf-8").removesuffix("\n\n").split("\n")
        if not lines[0]:
            raise TreeFormatError(f"{name}:{line}: an empty line where a tree was expected")
        return parse_block(lines, name, line, cycles=True).forms
    except UnicodeDecodeError as error:
        raise TreeFormatError(f"{name}:{line}: not UTF-8 ({error.reason}); delete the file to start over") from None
    except TreeFormatError as error:
        raise TreeFormatError(f"{error}; this program did not write that: delete the file to start over") from None


def _complete_blocks(lines: Iterable[bytes]) -> Iterator[bytes]:
    """The trees of a part file, each with its final empty line; a tree that is cut off is left."""
    block: list[bytes] = []
    for line in lines:
        block.append(line)
        if line == b"\n":
            yield b"".join(block)
            block = []


def _parse_rest(
    words: Iterator[list[str]], parser: Parser, out: IO[bytes], chunk: int, bar: tqdm, name: str, line: int
) -> None:
    """Parse what is left of `words`, from a line of the input on, and write it; each chunk is on disk before the next
    begins.
    """
    done = bar.n
    while group := list(islice(words, chunk)):
        out.write("".join(map(format_sentence, _trees(group, parser, bar, name, line))).encode("utf-8"))
        line += len(group)
        out.flush()
        if out is not sys.stdout.buffer:  # a pipe cannot be synced
            os.fsync(out.fileno())
        done += len(group)
        bar.update(done - bar.n)  # a parser need not have moved it


def _trees(group: list[list[str]], parser: Parser, bar: tqdm, name: str, line: int) -> list[Sentence]:
    """The trees of a chunk; a sentence that is too long for the parser goes without one, with a warning."""
    longest = getattr(parser, "longest", sys.maxsize)
    trees = parser.parse([words if len(words) <= longest else [] for words in group], bar)
    for number, words in enumerate(group):
        if len(words) > longest:
            bar.write(
                f"fairseq-syntax-parse: {name}:{line + number}: {len(words)} words, but the parser reads {longest}; "
                "written without a parse, which needs fairseq-syntax-preprocess --allow-unparsed; or cut the sentence",
                file=sys.stderr,
            )
            trees[number] = without_parse(words)
    return trees


def _finish(part: IO[bytes], start: int, output: Path) -> None:
    """Make the output of the complete part file, from byte `start`, at once; delete the part."""
    complete = Path(f"{output}.tmp")
    part.seek(start)
    with open(complete, "wb") as raw:
        if output.suffix == ".gz":
            # without time and name, so that the same trees are the same bytes
            with gzip.GzipFile(filename="", mode="wb", fileobj=raw, mtime=0) as packed:
                shutil.copyfileobj(part, packed)
        else:
            shutil.copyfileobj(part, raw)
        raw.flush()
        os.fsync(raw.fileno())
    os.replace(complete, output)
    os.unlink(part.name)


if __name__ == "__main__":
    sys.exit(main())
