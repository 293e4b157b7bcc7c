"""Preparation of raw parallel text: its pieces and trees in a folder; a killed run can be resumed."""

import io
import json
import os
import re
import sys
import unicodedata
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from itertools import chain, islice
from pathlib import Path

import regex

from ..data.parsers import ParserOptions, load_parser
from ..data.text.guard import shares
from ..data.text.languages import language_of
from ..data.text.recipe import Recipe, Side
from ..data.text.tokenizers import form_of, is_folder, normalize
from ..evaluate.metrics import Bleu
from ..files import checksum, staged, written
from ..progress import progress_bar
from ..trees.conllu import MAX_WORDS, TreeFormatError
from ..trees.subwords import SubwordType, without_joiners
from ..trees.text import quoted, read_lines, sentence_lines
from .parsing import parse, parser_settings

_LINES = 1000  # lines of a batch
LEAST = 99.5
"""Least BLEU, through pieces and back, of a perfect translation; below it, the text is refused."""
# kind of fault -> pattern, share of lines above which there is a warning, and warning
_NOT_RAW = {
    "escapes": (re.compile("&(apos|quot|amp|lt|gt|#[0-9]+);"), 0.01, "have {}; write them as the character"),
    "pieces": (re.compile("@@ |(^| )\u2581"), 0.01, "are already cut into subwords; give the text as it was before"),
    "tokens": (
        re.compile(r" [.?!]$"),
        0.5,
        "end in a separate token ({}); for tokenised text, give the tokenizer none",
    ),
}


@dataclass(frozen=True)
class TextPreparation:
    """Raw text of splits, with the settings of its preparation.

    Attributes:
        splits: name of a split -> prefix of its two files.
        source, target: settings of the sides, without codes, which are learned from the training text.
        size: number of merges of subword-nmt, or of pieces of sentencepiece.
        joined: whether both sides share their subwords, if they have the same type.
        parser, options: parser of the source, and its options.
        max_words: longest sentence to parse, in words.
    """

    splits: Mapping[str, str]
    source: Side
    target: Side
    size: int = 8000
    joined: bool = False
    parser: str = "stanza"
    options: ParserOptions = field(default_factory=ParserOptions)
    max_words: int = MAX_WORDS

    def prepare(self, folder: Path) -> Recipe:
        """Write the pieces and trees of each split into a folder, as SPLIT.LANGUAGE and SPLIT.SOURCE.conllu.gz.

        Files of an earlier call are kept. Raises FileExistsError: the folder has files of another origin; ValueError:
        its files are of other text or settings, the sides of a split differ in length, there is no tokeniser or
        parser, or detokenization does not restore the training target; OSError: a file is missing.
        """
        folder.mkdir(parents=True, exist_ok=True)
        if not (folder / "settings.json").exists() and any(folder.iterdir()):
            raise FileExistsError(f"--raw {folder}: holds what this command did not write; name another folder")
        self._check_lengths()
        self._check_settings(folder)
        for split in self.splits:
            self._tokenize(folder, split, self.source)
            self._tokenize(folder, split, self.target)
        first, *others = self.splits
        source, target = (
            replace(self._with_codes(folder, side), form=form_of(read_lines(self._raw(first, side))))
            for side in (self.source, self.target)
        )
        for split in self.splits:
            self._cut(folder, split, source)
            self._cut(folder, split, target)
        self._check_round_trip(folder, first, target)
        self._parse(folder)
        # subwords are fitted to the training text, and cut other text into more pieces
        usual = next((split for split in others if split.startswith("valid")), first)
        return Recipe(
            source, target, self._inference_parser(), shares(read_lines(folder / f"{usual}.{source.language}"))
        )

    def _raw(self, split: str, side: Side) -> str:
        plain = f"{self.splits[split]}.{side.language}"
        return plain if Path(plain).exists() else f"{plain}.gz"

    def _check_lengths(self) -> None:
        for split, prefix in self.splits.items():
            paths = [self._raw(split, side) for side in (self.source, self.target)]
            for path, side in zip(paths, (self.source, self.target), strict=True):
                if not Path(path).is_file():
                    raise FileNotFoundError(f"{prefix}.{side.language}: no such text; check the prefixes and languages")
            texts = [list(sentence_lines(path)) for path in paths]
            if len(texts[0]) != len(texts[1]):
                raise TreeFormatError(
                    f"{paths[0]}: {len(texts[0])} lines, but {paths[1]} has {len(texts[1])}; each translation must be "
                    "on the same line as its source"
                )
            for path, side, text in zip(paths, (self.source, self.target), texts, strict=True):
                self._check_raw(path, side, text)
            same = sum(bool(line.strip()) and line == other for line, other in zip(*texts, strict=True))
            if 20 * same > len(texts[0]):
                _warn(
                    f"{paths[1]}: {same} of {len(texts[0])} lines are the same as in {paths[0]}; are they translations?"
                )

    def _check_raw(self, path: str, side: Side, text: list[str]) -> None:
        """Warn of signs that a text is not raw, such as escapes, pieces or separate full stops."""
        for kind, (pattern, share, warning) in _NOT_RAW.items():
            if kind != "escapes" and side.tokenizer == "none":
                continue
            matches = [match[0] for line in text if (match := pattern.search(line))]
            if len(matches) > share * len(text):
                _warn(f"{path}: {len(matches)} of {len(text)} lines {warning.format(matches[0].strip())}")

    def _check_settings(self, folder: Path) -> None:
        """Raise ValueError if the folder holds files of other text or settings."""
        sides = self.source, self.target
        settings = {
            "sides": [{**asdict(side), "folder": ""} for side in sides],
            "size": self.size,
            "joined": self.joined,
            "parser": parser_settings(self.parser, self.options),
            "text": {f"{split}.{s.language}": checksum(self._raw(split, s)) for split in self.splits for s in sides},
        }
        path = folder / "settings.json"
        if path.exists():
            old = json.loads(path.read_text(encoding="utf-8"))
            differ = [key for key in settings if key != "text" and old.get(key) != settings[key]]
            differ += [name for name, hashed in settings["text"].items() if old["text"].get(name, hashed) != hashed]
            if differ:
                raise ValueError(
                    f"{folder}: holds text that was made with other settings ({', '.join(differ)}); delete it, or name "
                    "another folder"
                )
            settings["text"] = old["text"] | settings["text"]  # keeps splits of earlier calls
        with written(str(path)) as file:
            json.dump(settings, file, indent=1, ensure_ascii=False)

    def _tokenize(self, folder: Path, split: str, side: Side) -> None:
        path = folder / "words" / f"{split}.{side.language}"
        if path.exists():
            return
        total = sum(1 for _ in read_lines(self._raw(split, side)))
        with progress_bar(desc=f"{path.name}: words", total=total, unit=" lines") as bar, written(str(path)) as file:
            lines = read_lines(self._raw(split, side))
            while batch := list(islice(lines, _LINES)):
                file.writelines(" ".join(words) + "\n" for words in side.words(batch))
                bar.update(len(batch))

    def _with_codes(self, folder: Path, side: Side) -> Side:
        """The side with its subword codes, which are learned from the training text if they do not exist."""
        if side.subwords == SubwordType.none:
            return replace(side, folder=folder)
        if "train" not in self.splits:
            raise ValueError(f"--subword-type {side.subwords}: subwords are learned from --trainpref; give it")
        joined = self.joined and self.source.subwords == self.target.subwords
        languages = [self.source.language, self.target.language] if joined else [side.language]
        name = ".".join(["codes", *([] if joined else languages)])
        path = folder / name
        if not path.exists():
            learn, shortest = (_learn_merges, 2) if side.subwords == SubwordType.subword_nmt else (_learn_pieces, 1)
            files = [folder / "words" / f"train.{language}" for language in languages]
            texts = " and ".join(f"{self.splits['train']}.{language}" for language in languages)
            if not any(len(word) >= shortest for file in files for line in read_lines(file) for word in line.split()):
                raise ValueError(f"{texts}: has no words to learn subwords of; give text, or --subword-type none")
            try:
                with staged(path) as partial:
                    learn(chain.from_iterable(map(read_lines, files)), partial, self.size)
            except RuntimeError as error:  # sentencepiece's message: place in its code, then reason
                reason = str(error).rpartition("] ")[2].strip()
                raise ValueError(f"{texts}: give another --subword-size than {self.size} ({reason})") from None
            if side.subwords == SubwordType.subword_nmt and len(path.read_bytes().splitlines()) < 2:
                path.unlink()
                raise ValueError(
                    f"{texts}: no two characters stand together twice, so there are no subwords to learn; give more "
                    "text, or --subword-type none"
                )
        return replace(side, codes=name, sha256=checksum(path), folder=folder)

    def _cut(self, folder: Path, split: str, side: Side) -> None:
        path = folder / f"{split}.{side.language}"
        if path.exists():
            return
        lines = list(read_lines(folder / "words" / path.name))
        with written(str(path)) as file:
            for line in progress_bar(lines, desc=f"{path.name}: pieces", unit=" lines"):
                file.write(side.cut(line.split()) + "\n")

    def _check_round_trip(self, folder: Path, split: str, side: Side) -> None:
        """Print how much of a text its pieces restore. Raises ValueError: less than `LEAST` BLEU."""
        raw, name = self._raw(split, side), language_of(side.language).scoring

        def pairs() -> Iterator[tuple[str, str]]:
            for line, pieces in zip(read_lines(raw), read_lines(folder / f"{split}.{side.language}"), strict=True):
                line = normalize(line, None)
                yield line.lower() if side.lowercase else line, side.decode(pieces)

        same = [line == restored for line, restored in pairs()]
        bleu = 100.0
        if not all(same):
            metric, rows, sums = Bleu(tokenize=name), pairs(), 0.0
            while batch := list(islice(rows, _LINES)):
                sums = sums + metric.statistics([hyp for _, hyp in batch], [[ref] for ref, _ in batch]).sum(axis=0)
            bleu = float(metric.scores(sums))
        message = (
            f"{raw}: {100 * sum(same) / max(len(same), 1):.4g} % of {len(same):,} lines come back whole from pieces; a "
            f"perfect translation has {bleu:.1f} BLEU (tok:{name})"
        )
        if bleu < LEAST:
            differ = [pair for pair in pairs() if pair[0] != pair[1]]
            changed = [pair for pair in differ if normalize(pair[0]) != normalize(pair[1])]
            line, restored = min(changed or differ, key=lambda pair: len(pair[0]))
            reason = f"--target-tokenizer {side.tokenizer} makes {quoted(restored)} of {quoted(line)}; leave it out"
            if not changed:
                characters = regex.findall(r"\X", line)
                odd = next(text for text in characters if not unicodedata.is_normalized(side.form, text))
                reason = (
                    f"{odd} ({odd!a}) is not in {side.form}; write the text in it: uconv -x any-{side.form} < OLD > NEW"
                )
            raise ValueError(f"{message}: {reason}")
        print(f"fairseq-syntax preprocess: {message}", file=sys.stderr)

    def _parse(self, folder: Path) -> None:
        names = [f"{split}.{self.source.language}" for split in self.splits]
        paths = {name: folder / f"{name}.conllu.gz" for name in names}
        if all(path.exists() for path in paths.values()):
            return
        parser = load_parser(self.parser, self.options, self.source.language)
        settings = parser_settings(self.parser, self.options)
        for name, path in paths.items():
            if path.exists():
                if getattr(parser, "in_turn", False):  # it has to see all sentences
                    parser.parse([without_joiners(line.split()) for line in read_lines(folder / "words" / name)])
                continue
            print(f"fairseq-syntax preprocess: {name}: trees, by {self.parser}", file=sys.stderr)
            parse(str(folder / "words" / name), str(path), parser, settings, max_words=self.max_words)

    def _inference_parser(self) -> dict[str, dict]:
        """Name and options of the parser for the recipe; empty if trees come from a file."""
        if self.parser == "conllu":
            return {}
        settings = {name: value for name, value in asdict(self.options).items() if value}
        for name in ("parser_device", "parser_dir"):  # specific to this machine
            settings.pop(name, None)
        files = {name: value for name, value in settings.items() if isinstance(value, str) and os.path.exists(value)}
        if self.parser == "spacy":  # spaCy runs code in such a folder, so whoever translates must name it
            return {self.parser: {name: value for name, value in settings.items() if name not in files}}
        return {self.parser: settings | {name: os.path.abspath(value) for name, value in files.items()}}


def text_preparation(
    splits: Mapping[str, str],
    source: str,
    target: str,
    *,
    source_tokenizer: str | None = None,
    target_tokenizer: str | None = None,
    lowercase: Collection[str] = (),
    subword_type: str | None = None,
    subword_size: int = 8000,
    joined: bool = False,
    parser: str = "stanza",
    options: ParserOptions | None = None,
    max_words: int = MAX_WORDS,
) -> TextPreparation:
    """A `TextPreparation` from options of `preprocess --raw`; None chooses tokenisers and subwords for the languages.

    Raises ValueError: the language has no spaces, and no tokeniser is known that suits the parser.
    """
    options = options or ParserOptions()
    # instead of a folder, the rules of the language: spaCy runs code in folders, so the recipe must not name any
    pipeline = source if is_folder(str(options.parser_model)) else options.parser_model
    own = {"spacy": f"spacy:{pipeline}", "stanza": "words" if options.parser_model else "stanza"}
    words = source_tokenizer
    if parser != "none":  # trees need words
        words = words or own.get(parser, "words")
        if words == "words" and not (source_tokenizer or language_of(source).spaced):
            raise ValueError(
                f"--source-lang {source}: has no spaces between words; name the tokenizer whose words "
                f"--parser {parser} knows with --source-tokenizer"
            )

    def side(name: str, language: str, tokenizer: str | None) -> Side:
        whole = not (tokenizer or language_of(language).spaced)
        subwords = subword_type or str(SubwordType.sentencepiece if whole else SubwordType.subword_nmt)
        tokenizer = tokenizer or ("none" if subwords == SubwordType.sentencepiece else "words")
        return Side(language, tokenizer, name in lowercase, subwords=subwords)

    sides = side("source", source, words), side("target", target, target_tokenizer)
    return TextPreparation(splits, *sides, subword_size, joined, parser, options, max_words)


def _warn(message: str) -> None:
    print(f"fairseq-syntax preprocess: warning: {message}", file=sys.stderr)


def _learn_merges(lines: Iterable[str], path: Path, size: int) -> None:
    from subword_nmt import learn_bpe

    learn_bpe.tqdm = partial(progress_bar, desc="codes")  # its own bar writes ten lines per second to a log
    with open(path, "w", encoding="utf-8") as file:
        learn_bpe.learn_bpe(lines, file, size)


def _learn_pieces(lines: Iterable[str], path: Path, size: int) -> None:
    from sentencepiece import SentencePieceTrainer

    lines, model = list(lines), io.BytesIO()
    counts = Counter(character for line in lines for character in line)
    # at most half of the pieces are single characters; words are not normalised, because they are those of the trees
    frequent = sum(count for _, count in counts.most_common(size // 2))
    SentencePieceTrainer.train(
        sentence_iterator=iter(lines),
        model_writer=model,
        vocab_size=size,
        hard_vocab_limit=False,
        character_coverage=min(0.9995, max(0.98, frequent / max(counts.total(), 1))),  # sentencepiece's limits
        normalization_rule_name="identity",
        byte_fallback=True,
        minloglevel=2,
    )
    path.write_bytes(model.getvalue())
