"""Parsing of tokenised text into a file of trees; a killed run can be resumed."""

import os
import re
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from itertools import islice
from pathlib import Path

from tqdm import tqdm

from ..data.parsers import Parser, ParserOptions
from ..data.resumable_conllu import chunks_of
from ..files import STDIO, checksum, written
from ..progress import progress_bar
from ..trees.conllu import MAX_WORDS, Sentence, format_sentence, without_parse
from ..trees.subwords import SubwordType, check_length, split_words
from ..trees.text import read_lines, refuse_spaces

PROGRAM = "fairseq-syntax parse"
_PIECE = re.compile("@@( |$)|(^| )▁")
_ESCAPED = re.compile("&(apos|quot|amp|lt|gt|#[0-9]+);")


def shard_bounds(total: int, index: int, count: int) -> tuple[int, int]:
    """First line of a shard, from 0, and the line after its last. Sizes of shards differ by at most one."""
    return total * index // count, total * (index + 1) // count


def parse(
    source: str,
    output: str,
    parser: Parser,
    settings: dict | None = None,
    subword_type: str = SubwordType.none,
    shard: tuple[int, int] = (0, 1),
    chunk: int = 500,
    max_words: int = MAX_WORDS,
) -> None:
    """Parse a text and write its trees, or resume an interrupted run.

    Args:
        source, output: files; `-` is stdin or stdout.
        parser: parser of words.
        settings: settings of the parser; a run is only resumed with equal settings.
        subword_type: segmentation of the text.
        shard: (i, n) for shard i of n, from 0.
        chunk: number of sentences per call of the parser; a resumed run keeps whole chunks.
        max_words: longest sentence to accept, in words.

    Raises TreeFormatError: a sentence is too long or cannot be parsed; OSError: a file cannot be read or written.
    """
    name = "stdin" if source == STDIO else source
    with ExitStack() as stack:
        path = stack.enter_context(_seekable(source))
        start, end = shard_bounds(_check(path, name, subword_type, max_words), *shard)

        in_turn = getattr(parser, "in_turn", False)  # then it has to see all sentences
        lines = islice(enumerate(read_lines(path, name), 1), 0 if in_turn else start, end)
        words = ((number, split_words(line.split(), subword_type, f"{name}:{number}")[0]) for number, line in lines)
        if in_turn:
            parser.parse([sentence for _, sentence in islice(words, start)])
        groups = iter(lambda: list(islice(words, chunk)), [])
        bar = stack.enter_context(progress_bar(total=end - start, unit="sent", desc=f"{Path(name).name}: trees"))
        if output == STDIO:
            for group in groups:
                sys.stdout.buffer.write("".join(map(format_sentence, _parsed(group, parser, bar, name))).encode())
                sys.stdout.buffer.flush()
            return
        settings = {**(settings or {}), "text": checksum(path), "subword_type": subword_type, "shard": shard}
        folder = stack.enter_context(chunks_of(Path(output), {**settings, "chunk": chunk}))
        try:
            for number, group in enumerate(groups):
                target = folder / f"{number:09}.conllu"
                if target.exists() and not in_turn:
                    bar.update(len(group))
                    continue
                trees = _parsed(group, parser, bar, name)
                with written(str(target)) as file:
                    file.writelines(map(format_sentence, trees))
        except KeyboardInterrupt:
            kept = f"{bar.n} of {end - start} sentences are kept in {folder}"
            print(f"{PROGRAM}: {kept}; run the same command again to resume", file=sys.stderr)
            raise


def _check(path: str, name: str, subword_type: str, max_words: int) -> int:
    """Count the lines of a text, called `name` in messages, and warn about words that no parser knows.

    Raises TreeFormatError: a sentence is too long, or has other spaces than " ".
    """
    total = pieces = escaped = 0
    for total, line in enumerate(read_lines(path, name), 1):
        refuse_spaces(line, f"{name}:{total}")
        check_length(line, subword_type, max_words, f"{name}:{total}")
        pieces += subword_type == SubwordType.none and bool(_PIECE.search(line))
        escaped += bool(_ESCAPED.search(line))
    for count, fault in (
        (pieces, "subwords (@@ or ▁), which are parsed as words; give --subword-type"),
        (escaped, "words such as &apos;, which no parser knows; run the tokenizer with -no-escape"),
    ):
        if 100 * count > total:
            print(f"{PROGRAM}: warning: {name}: {count} of {total} lines have {fault}", file=sys.stderr)
    return total


@contextmanager
def _seekable(path: str) -> Iterator[str]:
    """A path that can be read twice: that of a copy on disk for stdin and pipes."""
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


def parser_settings(parser: str, options: ParserOptions) -> dict:
    """Settings on which the trees depend; files as name and checksum."""
    names = ("parser_language", "parser_model", "parser_tagger")
    settings = {name: value for name in names if (value := getattr(options, name))}
    files = {name: [Path(path).name, checksum(path)] for name, path in settings.items() if os.path.isfile(str(path))}
    return {"parser": parser, **settings, **files}


def _parsed(group: list[tuple[int, list[str]]], parser: Parser, bar: tqdm, name: str) -> list[Sentence]:
    """Parse lines of the input, given as their numbers and words.

    A sentence that is too long for the parser gets no parse, with a warning.
    """
    longest = getattr(parser, "longest", sys.maxsize)
    trees = parser.parse([words if len(words) <= longest else [] for _, words in group])
    for i, (number, words) in enumerate(group):
        if len(words) > longest:
            bar.write(
                f"{PROGRAM}: {name}:{number}: {len(words)} words, but the parser reads at most {longest}; written "
                "without a parse, which needs fairseq-syntax preprocess --allow-unparsed; or split the sentence",
                file=sys.stderr,
            )
            trees[i] = without_parse(words)
    bar.update(len(group))
    return trees
