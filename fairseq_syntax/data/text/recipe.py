"""The recipe of a text: settings for cutting a line into the pieces that a model reads, and for joining them.

It is `text.json` in the data directory, with the codes of subwords beside it:

    version    2
    source     language, tokenizer, lowercase, subwords, codes, sha256, form (see `Side`)
    target     the same
    parser     name of the parser of the source -> its options
    shares     of the training text's source, see `guard.shares`
"""

import hashlib
import io
import json
import re
import unicodedata
from collections.abc import Callable
from contextlib import redirect_stderr
from dataclasses import asdict, dataclass, field, fields
from functools import cached_property
from pathlib import Path

from ...files import checksum, link_or_copy, written
from ...trees.subwords import SPACE, SubwordType, decode_pieces
from ...trees.text import quoted
from .tokenizers import (
    FORMS,
    add_joiners,
    detokenize,
    escape,
    is_folder,
    load_detokenizer,
    load_tokenizer,
    normalize,
    unicode_words,
)

RECIPE = "text.json"
VERSION = 2
_PARSER_OPTIONS = {"parser_model", "parser_tagger", "parser_language"}


@dataclass(frozen=True)
class Side:
    """One language of a text: its settings, and the conversions that they define.

    Attributes:
        language: code of the language.
        tokenizer: one of `tokenizers.NAMES`; ValueError if it is in a folder.
        lowercase: whether the text is lower-cased.
        subwords: a `SubwordType`.
        codes: file of subword-nmt or sentencepiece, in the folder of the recipe; empty for whole words.
        sha256: of that file.
        form: Unicode's normal form of the output; the input becomes NFC.
        folder: where the recipe is; not a setting.
    """

    language: str
    tokenizer: str = "words"
    lowercase: bool = False
    subwords: str = str(SubwordType.none)
    codes: str = ""
    sha256: str = ""
    form: str = "NFC"
    folder: Path = field(default=Path(), compare=False)

    def __post_init__(self):
        _refuse_folder(self.tokenizer.partition(":")[2])
        _refuse_folder(self.language)  # a tokenizer of spaCy that names no pipeline takes that of the language

    @cached_property
    def _tokenizer(self) -> Callable[[list[str]], list[list[str]]]:
        return load_tokenizer(self.tokenizer, self.language)

    @cached_property
    def _detokenizer(self) -> Callable[[list[str]], str]:
        return load_detokenizer("moses", self.language) if self.tokenizer == "moses" else " ".join

    @cached_property
    def _coder(self):
        """subword-nmt's or sentencepiece's. Raises ValueError: not the codes that the recipe was written with."""
        path = self.folder / self.codes
        if not path.is_file() or checksum(path) != self.sha256:
            raise ValueError(f"{path}: missing, or not the file that {RECIPE} names; run preprocess again")
        try:
            if self.subwords == SubwordType.subword_nmt:
                from subword_nmt.apply_bpe import BPE

                # BPE prints a bad line and exits
                with open(path, encoding="utf-8") as file, redirect_stderr(io.StringIO()):
                    return BPE(file)
            from sentencepiece import SentencePieceProcessor

            return SentencePieceProcessor(model_file=str(path))
        except (SystemExit, ValueError, IndexError, RuntimeError):
            raise ValueError(f"{path}: not codes of {self.subwords}; run preprocess again") from None

    def words(self, lines: list[str], tokenized: bool = False) -> list[list[str]]:
        """Tokens of lines for `cut`: raw lines get joiners, tokenised ones do not."""
        lines = [escape(normalize(line), tokenized) for line in lines]
        tokens = [line.split() for line in lines] if tokenized else self._tokenizer(lines)
        if not tokenized and self.tokenizer not in ("moses", "none"):
            pairs = zip(lines, tokens, strict=True)
            # if a tokeniser changes the text, fall back to `unicode_words`
            tokens = [add_joiners(*pair) or add_joiners(pair[0], unicode_words(pair[0])) or [] for pair in pairs]
        return [[token.lower() for token in line] for line in tokens] if self.lowercase else tokens

    def cut(self, words: list[str]) -> str:
        """The pieces of words, separated by spaces."""
        if not words or not self.codes:
            return " ".join(words)
        if self.subwords == SubwordType.subword_nmt:
            return " ".join(self._coder.segment_tokens(words))
        return " ".join(self._coder.encode(" ".join(words), out_type=str))

    def join(self, pieces: str) -> list[str]:
        """Join pieces to words, with joiners; the last word may be incomplete, as in translations."""
        if self.subwords == SubwordType.subword_nmt:
            return re.sub("@@( |$)", "", pieces).split()
        if self.subwords == SubwordType.sentencepiece:
            return decode_pieces(pieces.split()).replace(SPACE, " ").split()
        return pieces.split()

    def encode(self, line: str, tokenized: bool = False) -> str:
        """The pieces of a raw or a tokenised line."""
        return self.cut(self.words([line], tokenized)[0])

    def decode(self, pieces: str) -> str:
        """The detokenised line of pieces."""
        return self.detokenize(self.join(pieces))

    def detokenize(self, words: list[str]) -> str:
        """The detokenised line of words."""
        form = FORMS[self.form == "NFD"]
        return unicodedata.normalize(form, detokenize(self._detokenizer(words)))


@dataclass(frozen=True)
class Recipe:
    """Both sides of a text, the parser of its source (name -> options of `ParserOptions`), and its usual shares."""

    source: Side
    target: Side
    parser: dict[str, dict] = field(default_factory=dict)
    shares: dict[str, float] = field(default_factory=dict)

    @property
    def digest(self) -> str:
        """Hash of the settings that decide the pieces; the parser is not among them."""
        settings = [self._settings(side) for side in (self.source, self.target)]
        for side in settings:
            del side["codes"], side["form"]
        return hashlib.sha256(json.dumps(settings, sort_keys=True).encode()).hexdigest()

    def between(self, source: str | None, target: str | None) -> "Recipe":
        """The recipe for translating between two languages, either way. Raises ValueError: it is for others."""
        pair = self.source.language, self.target.language
        if (source, target) == pair:
            return self
        if (target, source) != pair:
            raise ValueError(f"{self.source.folder / RECIPE}: is of {'-'.join(pair)}; use data of {source}-{target}")
        # other parsers, and the shares, are of this source
        parser: dict = {name: {} for name, options in self.parser.items() if name in ("none", "stanza") and not options}
        return Recipe(self.target, self.source, parser)

    @staticmethod
    def _settings(side: Side) -> dict:
        settings = asdict(side)
        del settings["folder"]
        return settings

    def write(self, folder: Path) -> None:
        """Write the recipe, and the codes beside it, into a folder."""
        for side in (self.source, self.target):
            if side.codes and not (folder / side.codes).exists():
                link_or_copy(side.folder / side.codes, folder / side.codes)
        sides = {name: self._settings(side) for name, side in (("source", self.source), ("target", self.target))}
        with written(str(folder / RECIPE)) as file:
            more = {"parser": self.parser, "shares": self.shares}
            json.dump({"version": VERSION, **sides, **more}, file, indent=1, ensure_ascii=False)
            file.write("\n")


def read_recipe(folder: str | Path) -> Recipe | None:
    """The recipe of a data directory; None if it has none.

    Raises ValueError: it cannot be read, or is of another version.
    """
    path = Path(folder, RECIPE)
    if not path.is_file():
        return None
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        if content["version"] != VERSION:
            raise ValueError(f"version {content['version']}; this is version {VERSION}")
        return Recipe(
            _side(content["source"], path),
            _side(content["target"], path),
            _parser(content["parser"]),
            {name: float(share) for name, share in content["shares"].items()},
        )
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ValueError(
            f"{path}: not a recipe ({type(error).__name__}: {quoted(str(error))}); run preprocess again"
        ) from None


def _side(settings: dict, path: Path) -> Side:
    known = {field.name: field.type for field in fields(Side) if field.name != "folder"}
    if (
        settings.keys() != known.keys()
        or any(type(value) is not known[name] for name, value in settings.items())
        or settings["form"] not in FORMS
        or settings["subwords"] not in list(SubwordType)
        or Path(settings["codes"]).name != settings["codes"]
    ):
        raise ValueError(f"settings {settings}")
    return Side(**settings, folder=path.parent)


def _parser(content: dict) -> dict[str, dict]:
    for options in content.values():
        # parser_dir would be written to; parser_device is of the machine
        plain = all(isinstance(value, str | None) for value in options.values())
        if not plain or not options.keys() <= _PARSER_OPTIONS:
            raise ValueError(f"parser {content}")
        _refuse_folder(options.get("parser_model") if "spacy" in content else None)
    return content


def _refuse_folder(pipeline: str | None) -> None:
    """Raise ValueError for a folder: spaCy runs what is in it, and data may come from a stranger."""
    if pipeline and is_folder(pipeline):
        raise ValueError(f"{pipeline} is a folder, which may hold code; install it as a package")
