"""Tokenisers of raw text, imported when they are first used, and one detokeniser for all of them but Moses.

A joiner marks a missing space beside a token, as in OpenNMT's tokeniser (Klein et al. 2020): punctuation carries
that of the word after it. The trees' words have none, see `trees.subwords`.

    “Stop!” she said.    ->    “\uffed Stop \uffed! \uffed” she said \uffed.
"""

import re
import unicodedata
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Literal

import regex

from ...trees.subwords import JOINER
from .languages import language_of

NAMES = ("words", "moses", "spacy", "stanza", "mecab", "none")
"""Names for `load_tokenizer`; `spacy:PIPELINE` names a pipeline."""
Form = Literal["NFC", "NFD"]
FORMS: tuple[Form, Form] = ("NFC", "NFD")

# invisible characters outside words; words of Persian and Indic scripts have the joiners U+200C and U+200D
_CONTROL = "\u0000-\u0008\u000e-\u001b\u007f-\u0084\u0086-\u009f"
_UNSEEN = re.compile(f"[{_CONTROL}\u00ad\u061c\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\ufeff]")
_SEEN = regex.compile(r"[^\p{Default_Ignorable_Code_Point}\p{Z}\p{Cc}\u2800]")  # all of these are blank
# letters, digits, and what belongs to them, such as tone letters; not accents of ASCII, such as ^
_IN_WORD = r"[\p{L}\p{M}\p{N}\u02b0-\u02ff\ua700-\ua721\ua789\ua78a\u200c\u200d]"
_WORD = regex.compile(
    rf"{_IN_WORD}+(?:(?:['’](?=\p{{L}})|(?<=\p{{N}})[.,](?=\p{{N}})){_IN_WORD}+)*|(?P<mark>\X)(?P=mark)*"
)
_OPENS_WORD = regex.compile(_IN_WORD)
# escapes for marks of pieces and tokens that occur in the text itself
_ESCAPE = "\uffee"
_ESCAPED = {_ESCAPE: f"{_ESCAPE}0", JOINER: f"{_ESCAPE}1", "\u2581": f"{_ESCAPE}2", "": f"{_ESCAPE}3"}
_WRITTEN = {code: character for character, code in _ESCAPED.items()}
# for tokens without joiners: spaces beside wide characters, where the text has none
_SPACE_BESIDE_WIDE = re.compile(r"(?<![!-~]) | (?![!-~])")


def normalize(line: str, form: Form | None = "NFC") -> str:
    """Normalise a line to a Unicode `form` (None keeps its own), single spaces, and no invisible characters."""
    line = _UNSEEN.sub("", line)
    line = " ".join((unicodedata.normalize(form, line) if form else line).split())
    return line if _SEEN.search(line) else ""


def form_of(lines: Iterable[str]) -> Form:
    """The Unicode form, NFC or NFD, of most of the lines in which the two differ."""
    composed = decomposed = 0
    for line in lines:
        if not line.isascii():
            is_composed, is_decomposed = (unicodedata.is_normalized(form, line) for form in FORMS)
            composed += is_composed and not is_decomposed
            decomposed += is_decomposed and not is_composed
    return FORMS[decomposed > composed]


def escape(line: str, tokenized: bool = False) -> str:
    """Escape marks of pieces in a line and, unless it is tokenised, of tokens; `detokenize` restores them."""
    marks = "\u2581" if tokenized else f"{_ESCAPE}{JOINER}\u2581"
    return re.sub(f"[{marks}]|(?<=@)(?=@)", lambda match: _ESCAPED[match[0]], line)


def add_joiners(line: str, tokens: list[str]) -> list[str] | None:
    """Add joiners to the tokens of a line; None if their characters differ from the line's."""
    tokens = [part for token in tokens for part in token.split()]
    if "".join(tokens) != line.replace(" ", ""):
        return None
    joined: list[str] = []
    place, in_word = 0, False
    for token in tokens:
        opens, size = bool(_OPENS_WORD.match(token)), len(token)
        if line[place] == " ":
            place += 1
        elif joined and opens and not in_word:
            joined[-1] += JOINER
        elif joined:
            token = JOINER + token
        place, in_word = place + size, bool(_OPENS_WORD.match(token[-1]))
        joined.append(token)
    return joined


def detokenize(tokens: str) -> str:
    """The line of tokens with joiners, separated by spaces."""
    line = re.sub(f" ?{JOINER} ?", "", tokens)
    return re.sub(f"{_ESCAPE}[0-3]", lambda match: _WRITTEN[match[0]], line)


def load_detokenizer(name: str, language: str) -> Callable[[list[str]], str]:
    """Detokeniser for Moses, and for tokens without joiners, as in earlier studies."""
    if name == "mecab":
        return lambda tokens: _SPACE_BESIDE_WIDE.sub("", " ".join(tokens))
    from sacremoses import MosesDetokenizer

    moses = MosesDetokenizer(language_of(language).code)
    return lambda tokens: moses.detokenize(tokens, unescape=False)


def is_folder(pipeline: str) -> bool:
    """True if a pipeline of spaCy is a path, not a language or an installed package."""
    return pipeline.startswith((".", "~")) or Path(pipeline).name != pipeline


def load_pipeline(name: str, **options):
    """Call `spacy.load`, but not for a folder of that name. Raises OSError or spaCy's errors."""
    import spacy

    if not is_folder(name) and not spacy.util.is_package(name):
        raise OSError(f"no such package is installed; for a folder, give ./{name}")
    return spacy.load(name, **options)


def load_tokenizer(name: str, language: str) -> Callable[[list[str]], list[list[str]]]:
    """A function from normalised lines to the tokens of each, without joiners.

    Args:
        name: one of `NAMES`.
        language: any code of it.

    Raises ValueError: no such tokeniser, or its package or model is missing.
    """
    kind, _, model = name.partition(":")
    if kind not in NAMES or (model and kind != "spacy"):
        raise ValueError(f"tokenizer {name}: choose from {', '.join(NAMES)}, or spacy:PIPELINE")
    if kind in ("spacy", "stanza"):
        return (_spacy if kind == "spacy" else _stanza)(model or language)
    split: Callable[[str], list[str]] = str.split
    if kind == "words":
        split = unicode_words
    elif kind == "mecab":
        split = _mecab()
    elif kind == "moses":
        from sacremoses import MosesTokenizer

        moses = MosesTokenizer(language_of(language).code)
        split = lambda line: moses.tokenize(line, escape=False)  # noqa: E731
    return lambda lines: [split(line) for line in lines]


def unicode_words(line: str) -> list[str]:
    """The words, numbers and other characters of a line: a word keeps its marks, joiners and inner apostrophes."""
    return [match[0] for part in line.split() for match in _WORD.finditer(part)]


def _spacy(model: str) -> Callable[[list[str]], list[list[str]]]:
    """The tokens of a pipeline of spaCy, or, for the code of a language, of its rules, which need no model."""
    import spacy

    tokenizer: Any
    try:
        is_code = re.fullmatch("[a-z]{2,3}(_[A-Z][A-Za-z]+)?", model)
        tokenizer = (spacy.blank(language_of(model).own) if is_code else load_pipeline(model, enable=[])).tokenizer
    except Exception as error:  # of whatever sort; all mean "no tokeniser"
        raise ValueError(
            f"tokenizer spacy: {model} cannot be loaded ({' '.join(str(error).split())[:150]}); give the code of a "
            "language, a folder, or the name of a pipeline, after: python -m spacy download NAME"
        ) from None
    return lambda lines: [[t.text for t in line if not t.is_space] for line in tokenizer.pipe(lines)]


def _stanza(language: str) -> Callable[[list[str]], list[list[str]]]:
    """The tokens of Stanza's models; a multi-word token stays whole."""
    import stanza

    try:
        code = language_of(language).stanza
        pipeline = stanza.Pipeline(code, processors="tokenize", tokenize_no_ssplit=True, verbose=False)
    except Exception as error:  # of whatever sort; all mean "no tokeniser"
        raise ValueError(
            f"tokenizer stanza: its models of {language} cannot be loaded ({' '.join(str(error).split())[:150]}); "
            "check the connection, or choose another tokeniser"
        ) from None

    def tokenize(lines: list[str]) -> list[list[str]]:
        filled = [line for line in lines if line]
        documents = iter(pipeline.bulk_process(filled) if filled else [])
        return [[t.text for s in next(documents).sentences for t in s.tokens] if line else [] for line in lines]

    return tokenize


def _mecab() -> Callable[[str], list[str]]:
    try:
        import ipadic
        import MeCab
    except ImportError as error:
        raise ValueError(f"tokenizer mecab: {error}; run: pip install ipadic mecab-python3") from None
    tagger = MeCab.Tagger(f"{ipadic.MECAB_ARGS} -Owakati")
    return lambda line: tagger.parse(line).split()
