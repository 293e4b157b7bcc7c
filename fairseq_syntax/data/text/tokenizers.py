"""Tokenisers of raw text, and their inverses. Nothing is imported before it is asked for."""

import re
import unicodedata
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

NAMES = ("moses", "spacy", "stanza", "mecab", "none")
"""What `load_tokenizer` knows; `spacy:PIPELINE` names a pipeline."""

# what is not seen and is in no word; Persian and Indic scripts have the joiners, U+200C and U+200D, in theirs
_CONTROL = "\u0000-\u0008\u000e-\u001b\u007f-\u0084\u0086-\u009f"
_UNSEEN = re.compile(f"[{_CONTROL}\u00ad\u061c\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\ufeff]")
# between two of these a space was left out: such languages are written without
_SPACE_BESIDE_WIDE = re.compile(r"(?<![!-~]) | (?![!-~])")
_WITHOUT_SPACES = frozenset("ja zh yue th lo my km bo dz".split())


def normalize(line: str) -> str:
    """One spelling of each character (NFC), single spaces, nothing that cannot be seen."""
    return " ".join(unicodedata.normalize("NFC", _UNSEEN.sub("", line)).split())


def is_folder(pipeline: str) -> bool:
    """Whether a pipeline of spaCy is given as a path; otherwise it is a language or an installed package."""
    return pipeline.startswith((".", "~")) or Path(pipeline).name != pipeline


def load_pipeline(name: str, **options):
    """`spacy.load`, which would also load a folder of that name. Raises OSError or what spaCy raises."""
    import spacy

    if not is_folder(name) and not spacy.util.is_package(name):
        raise OSError(f"no such package is installed; for a folder, give ./{name}")
    return spacy.load(name, **options)


class Tokenizer(Protocol):
    """Cuts lines into tokens, and puts tokens together again."""

    def tokenize(self, lines: list[str]) -> list[list[str]]:
        """The tokens of each line, which is normalised."""
        ...

    def detokenize(self, tokens: list[str]) -> str:
        """The line that these are the tokens of, as a reader would write it."""
        ...


def load_tokenizer(name: str, language: str) -> Tokenizer:
    """Load a tokeniser of `NAMES` for a language, such as "en".

    Raises ValueError: no such tokeniser, or its package or model is missing.
    """
    kind, _, model = name.partition(":")
    if kind not in NAMES or (model and kind != "spacy"):
        raise ValueError(f"tokenizer {name}: choose from {', '.join(NAMES)}, or spacy:PIPELINE")
    if kind == "none":
        return _Split(str.split, " ".join)
    join = _join_wide if language in _WITHOUT_SPACES else _moses_inverse(language, of_treebank=kind == "spacy")
    if kind == "moses":
        from sacremoses import MosesTokenizer

        moses = MosesTokenizer(language)
        return _Split(lambda line: moses.tokenize(line, escape=False), join)
    if kind == "mecab":
        return _Split(_mecab(), join)
    return (_Spacy if kind == "spacy" else _Stanza)(model or language, join)


class _Split:
    """A tokeniser of one line after the other."""

    def __init__(self, split: Callable[[str], list[str]], join: Callable[[list[str]], str]):
        self.split = split
        self.detokenize = join

    def tokenize(self, lines: list[str]) -> list[list[str]]:
        return [self.split(line) for line in lines]


class _Spacy:
    """The tokens of a pipeline of spaCy, or, for the code of a language, of its rules, which need no model."""

    def __init__(self, model: str, join: Callable[[list[str]], str]):
        self.detokenize = join
        try:
            import spacy
        except ImportError as error:
            raise ValueError(
                f"tokenizer spacy: it cannot be imported ({error}); run: pip install 'fairseq-syntax[spacy]'"
            ) from None
        self._tokenizer: Any
        try:
            pipeline = load_pipeline(model, enable=[]) if "_" in model or is_folder(model) else spacy.blank(model)
            self._tokenizer = pipeline.tokenizer
        except Exception as error:  # of whatever sort; all mean "no tokeniser"
            raise ValueError(
                f"tokenizer spacy: {model} cannot be loaded ({' '.join(str(error).split())[:150]}); give the code of a "
                "language, a folder, or the name of a pipeline, after: python -m spacy download NAME"
            ) from None

    def tokenize(self, lines: list[str]) -> list[list[str]]:
        return [[t.text for t in line if not t.is_space] for line in self._tokenizer.pipe(lines)]


class _Stanza:
    """The tokens of Stanza's models; a multi-word token stays whole."""

    def __init__(self, language: str, join: Callable[[list[str]], str]):
        self.detokenize = join
        import stanza

        try:
            self._pipeline = stanza.Pipeline(language, processors="tokenize", tokenize_no_ssplit=True, verbose=False)
        except Exception as error:  # of whatever sort; all mean "no tokeniser"
            raise ValueError(
                f"tokenizer stanza: its models of {language} cannot be loaded ({' '.join(str(error).split())[:150]}); "
                "check the connection, or choose another tokeniser"
            ) from None

    def tokenize(self, lines: list[str]) -> list[list[str]]:
        filled = [line for line in lines if line]
        documents = iter(self._pipeline.bulk_process(filled) if filled else [])
        return [[t.text for s in next(documents).sentences for t in s.tokens] if line else [] for line in lines]


def _mecab() -> Callable[[str], list[str]]:
    try:
        import ipadic
        import MeCab
    except ImportError as error:
        raise ValueError(f"tokenizer mecab: {error}; run: pip install 'fairseq-syntax[ja]'") from None
    tagger = MeCab.Tagger(f"{ipadic.MECAB_ARGS} -Owakati")
    return lambda line: tagger.parse(line).split()


def _join_wide(tokens: list[str]) -> str:
    return _SPACE_BESIDE_WIDE.sub("", " ".join(tokens))


def _moses_inverse(language: str, of_treebank: bool) -> Callable[[list[str]], str]:
    from sacremoses import MosesDetokenizer

    moses = MosesDetokenizer(language)
    if not of_treebank:
        return lambda tokens: moses.detokenize(tokens, unescape=False)
    # the Penn Treebank's tokens, which spaCy's English has, are not those of Moses
    return lambda tokens: re.sub(r"(\w) (n['’]t)\b", r"\1\2", moses.detokenize(tokens, unescape=False))
