"""Text of the WMT recipes: Moses tokenisation, its reversal, and cleaning of a parallel corpus.

python wmt_text.py tokenize --language en < raw.en > tokenised.en
python wmt_text.py detokenize --language de < tokenised.de > raw.de
python wmt_text.py clean --input all --output train --source-lang en --target-lang de --max-words 80 --max-ratio 9

needs `pip install sacremoses`; `clean --identify` also `pip install py3langid`. Lines end in LF and nothing else: other
line ends and spaces of all kinds become plain spaces, so that no later program sees more lines or words than this one.
"""

import argparse
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import lru_cache
from itertools import islice, zip_longest

CHUNK = 10_000  # lines that a worker gets at a time


@lru_cache
def _moses(kind: str, language: str):
    import sacremoses

    return getattr(sacremoses, kind)(lang=language)


def tokenize(lines: list[str], language: str) -> list[str]:
    """Moses tokens, separated by spaces. Characters such as & stay as they are: a parser must see words."""
    moses = _moses("MosesTokenizer", language)
    return [" ".join(moses.tokenize(" ".join(line.split()), escape=False)) for line in lines]


def detokenize(lines: list[str], language: str) -> list[str]:
    """The reverse of `tokenize`."""
    moses = _moses("MosesDetokenizer", language)
    return [moses.detokenize(line.split(), unescape=False) for line in lines]


def is_clean(source: str, target: str, max_words: int, max_ratio: float) -> bool:
    """Whether both sides have 1 to `max_words` words and neither has more than `max_ratio` times the other's."""
    lengths = len(source.split()), len(target.split())
    return min(lengths) >= 1 and max(lengths) <= max_words and max(lengths) <= max_ratio * min(lengths)


def keep(pairs: list[tuple[str, str]], languages: tuple[str, str], max_words, max_ratio, identify) -> list[tuple]:
    """The clean pairs; with `identify` only those that py3langid takes for the two languages."""
    pairs = [pair for pair in pairs if is_clean(*pair, max_words, max_ratio)]
    if identify:
        import py3langid as langid

        pairs = [pair for pair in pairs if tuple(langid.classify(text)[0] for text in pair) == languages]
    return pairs


def read_lines(stream: Iterable[bytes]) -> Iterator[str]:
    """Lines of UTF-8 text, split at LF only."""
    for line in stream:
        yield " ".join(line.decode("utf-8").split())


def convert(items: Iterable, function: Callable[..., list], arguments: tuple, workers: int) -> Iterator:
    """`function(chunk, *arguments)` of all items in order, by several processes, without reading everything at once."""
    items = iter(items)
    with ProcessPoolExecutor(workers) as pool:
        while group := [chunk for _ in range(2 * workers) if (chunk := list(islice(items, CHUNK)))]:
            for future in [pool.submit(function, chunk, *arguments) for chunk in group]:
                yield from future.result()


def main(argv: list[str] | None = None) -> None:
    """Entry point."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    for name in ("tokenize", "detokenize"):
        command = commands.add_parser(name, help=f"{name} standard input")
        command.add_argument("--language", required=True)
    clean = commands.add_parser("clean", help="drop pairs that are too long, empty or out of proportion")
    clean.add_argument("--input", required=True, metavar="PREFIX", help="texts are PREFIX.SOURCE and PREFIX.TARGET")
    clean.add_argument("--output", required=True, metavar="PREFIX")
    clean.add_argument("--source-lang", required=True)
    clean.add_argument("--target-lang", required=True)
    clean.add_argument("--max-words", type=int, default=80, help="(default: 80)")
    clean.add_argument("--max-ratio", type=float, default=9, help="longer side over shorter (default: 9, as Moses)")
    clean.add_argument("--identify", action="store_true", help="drop pairs that py3langid takes for other languages")
    for command in commands.choices.values():
        command.add_argument("--workers", type=int, default=os.cpu_count(), help="processes (default: all cores)")
    args = parser.parse_args(argv)
    if args.command != "clean":
        function = {"tokenize": tokenize, "detokenize": detokenize}[args.command]
        for line in convert(read_lines(sys.stdin.buffer), function, (args.language,), args.workers):
            sys.stdout.buffer.write(f"{line}\n".encode())
        return
    languages = (args.source_lang, args.target_lang)
    files = [open(f"{args.input}.{language}", "rb") for language in languages]
    parts = [open(f"{args.output}.{language}.part", "wb") for language in languages]
    total = kept = 0

    def pairs() -> Iterator[tuple[str, str]]:
        nonlocal total
        for pair in zip_longest(*map(read_lines, files)):
            if None in pair:
                sys.exit(f"wmt_text.py: {args.input}: the texts differ in length after {total} lines")
            total += 1
            yield pair

    settings = (languages, args.max_words, args.max_ratio, args.identify)
    for pair in convert(pairs(), keep, settings, args.workers):
        kept += 1
        for part, text in zip(parts, pair, strict=True):
            part.write(f"{text}\n".encode())
    for file, part, language in zip(files, parts, languages, strict=True):
        file.close()
        part.close()
        os.replace(part.name, f"{args.output}.{language}")
    print(f"wmt_text.py: kept {kept} of {total} pairs", file=sys.stderr)


if __name__ == "__main__":
    main()
