"""The recipe of a text: what turns a line into the pieces that a model reads, and pieces into a line.

It is `text.json` in the data directory, with the codes of subwords beside it:

    version    1
    source     language, tokenizer, lowercase, subwords, codes, sha256 (see `Side`)
    target     the same
    parser     name of the parser of the source -> its options
    shares     of the training text's source, see `guard.shares`
"""

import hashlib
import json
import re
from dataclasses import asdict, dataclass, field, fields
from functools import cached_property
from pathlib import Path

from ...files import checksum, link_or_copy, written
from ...trees.subwords import SubwordType, decode_bytes
from ...trees.text import quoted
from .tokenizers import Tokenizer, is_folder, load_tokenizer, normalize

FILE = "text.json"
VERSION = 1
_PARSER_OPTIONS = {"parser_model", "parser_tagger", "parser_language", "parser_decoder", "parser_lowercase"}


@dataclass(frozen=True)
class Side:
    """One language of a text: its settings, and what they do.

    Attributes:
        language: code of the language.
        tokenizer: one of `tokenizers.NAMES`; ValueError if it is in a folder.
        lowercase: whether the text is lower-cased.
        subwords: a `SubwordType`: how words are cut.
        codes: file of subword-nmt or sentencepiece, in the folder of the recipe; empty for whole words.
        sha256: of that file.
        folder: where the recipe is; not a setting.
    """

    language: str
    tokenizer: str = "moses"
    lowercase: bool = False
    subwords: str = str(SubwordType.none)
    codes: str = ""
    sha256: str = ""
    folder: Path = field(default=Path(), compare=False)

    def __post_init__(self):
        _refuse_folder(self.tokenizer.partition(":")[2])

    @cached_property
    def _tokenizer(self) -> Tokenizer:
        return load_tokenizer(self.tokenizer, self.language)

    @cached_property
    def _coder(self):
        """subword-nmt's or sentencepiece's. Raises ValueError: not the codes that the recipe was written with."""
        path = self.folder / self.codes
        if not path.is_file() or checksum(path) != self.sha256:
            raise ValueError(f"{path}: missing, or not the file that {FILE} names; run preprocess again")
        if self.subwords == SubwordType.subword_nmt:
            from subword_nmt.apply_bpe import BPE

            with open(path, encoding="utf-8") as file:
                return BPE(file)
        from sentencepiece import SentencePieceProcessor

        return SentencePieceProcessor(model_file=str(path))

    def words(self, lines: list[str], tokenized: bool = False) -> list[list[str]]:
        """The tokens of raw lines, or of lines in tokens, as the parser and the subwords get them."""
        lines = [self._writable(normalize(line)) for line in lines]
        tokens = [line.split() for line in lines] if tokenized else self._tokenizer.tokenize(lines)
        return [[token.lower() for token in line] for line in tokens] if self.lowercase else tokens

    def _writable(self, line: str) -> str:
        """A line without what marks a piece."""
        if self.subwords == SubwordType.subword_nmt:
            return re.sub("@(?=@)", "@ ", line)
        return line.replace("\u2581", "_") if self.subwords == SubwordType.sentencepiece else line

    def cut(self, words: list[str]) -> str:
        """The pieces of words, separated by spaces."""
        if not words or not self.codes:
            return " ".join(words)
        if self.subwords == SubwordType.subword_nmt:
            return " ".join(self._coder.segment_tokens(words))
        return " ".join(self._coder.encode(" ".join(words), out_type=str))

    def join(self, pieces: str) -> list[str]:
        """The words of pieces, which may end inside one, as translations do."""
        if self.subwords == SubwordType.subword_nmt:
            return re.sub("@@( |$)", "", pieces).split()
        if self.subwords == SubwordType.sentencepiece:
            return decode_bytes(pieces.replace(" ", "")).replace("\u2581", " ").split()
        return pieces.split()

    def encode(self, line: str, tokenized: bool = False) -> str:
        """The pieces of a raw line, or of one in tokens."""
        return self.cut(self.words([line], tokenized)[0])

    def decode(self, pieces: str) -> str:
        """The line, as a reader would write it, of pieces."""
        return self.detokenize(self.join(pieces))

    def detokenize(self, words: list[str]) -> str:
        """The line, as a reader would write it, of words."""
        return self._tokenizer.detokenize(words)


@dataclass(frozen=True)
class Recipe:
    """Both sides of a text, the parser of its source (name -> options of `ParserOptions`), and what is usual in it."""

    source: Side
    target: Side
    parser: dict[str, dict] = field(default_factory=dict)
    shares: dict[str, float] = field(default_factory=dict)

    @property
    def digest(self) -> str:
        """What recipes have in common that make the same pieces; trees of other parsers may be of the same text."""
        settings = [self._settings(side) for side in (self.source, self.target)]
        for side in settings:
            del side["codes"]
        return hashlib.sha256(json.dumps(settings, sort_keys=True).encode()).hexdigest()

    def between(self, source: str | None, target: str | None) -> "Recipe":
        """The recipe of translating from one language to another, either way. Raises ValueError: it is of others."""
        languages = self.source.language, self.target.language
        if (source, target) == languages:
            return self
        if (target, source) != languages:
            raise ValueError(f"{self.source.folder / FILE}: is of {'-'.join(languages)}; use data of {source}-{target}")
        # other parsers, and the shares, are of this source
        parser: dict = {name: {} for name, given in self.parser.items() if name in ("none", "stanza") and not given}
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
        with written(str(folder / FILE)) as file:
            more = {"parser": self.parser, "shares": self.shares}
            json.dump({"version": VERSION, **sides, **more}, file, indent=1, ensure_ascii=False)
            file.write("\n")


def read_recipe(folder: str | Path) -> Recipe | None:
    """The recipe of a data directory; None if it has none.

    Raises ValueError: it cannot be read, or is of another version.
    """
    path = Path(folder, FILE)
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
    known = {each.name: each.type for each in fields(Side) if each.name != "folder"}
    if settings.keys() != known.keys() or any(type(value) is not known[name] for name, value in settings.items()):
        raise ValueError(f"settings {settings}")
    if settings["subwords"] not in list(SubwordType) or Path(settings["codes"]).name != settings["codes"]:
        raise ValueError(f"subwords {settings['subwords']}, codes {settings['codes']}")
    return Side(**settings, folder=path.parent)


def _parser(content: dict) -> dict[str, dict]:
    for options in content.values():
        # parser_dir would be written to; parser_device is of the machine
        if not options.keys() <= _PARSER_OPTIONS:
            raise ValueError(f"parser {content}")
        if not all(value is None or isinstance(value, (str, bool)) for value in options.values()):
            raise ValueError(f"parser {content}")
        _refuse_folder(options.get("parser_model") if "spacy" in content else None)
    return content


def _refuse_folder(pipeline: str | None) -> None:
    """Raise ValueError for a folder: spaCy runs what is in it, and data may come from a stranger."""
    if pipeline and is_folder(pipeline):
        raise ValueError(f"{pipeline} is a folder, which may hold code; install it as a package")
