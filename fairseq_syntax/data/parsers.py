"""Where trees come from: Stanza, or a CoNLL-U file that stands beside the text."""

import json
import logging
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from pickle import UnpicklingError
from typing import TYPE_CHECKING, Protocol

from tqdm import tqdm

from ..trees.conllu import (
    Sentence,
    TreeFormatError,
    block_forms,
    open_text,
    parse_block,
    quoted,
    read_blocks,
    without_parse,
)
from ..trees.universal import universal_labels

if TYPE_CHECKING:
    import stanza

logger = logging.getLogger(__name__)

# A CoNLL-U line cannot hold these inside a word; every other character, spaces of all kinds
# included, survives.
_NOT_IN_CONLLU = ("\t", "\n", "\r")
_TAGGER_BATCH = 2000  # sentences
_PARSER_BATCH = 5000  # words
_LONGEST_CAUSE = 150  # characters of another program's error that a message quotes


Progress = bool | tqdm
"""Whether to show a bar on stderr; or a bar that is there already, to be moved."""


@contextmanager
def moving_bar(progress: Progress, total: int) -> Iterator[Callable[[int], object]]:
    """A function that is told how many of `total` sentences have been parsed since it was called last."""
    if not isinstance(progress, bool):
        yield progress.update
        return
    with tqdm(total=total, unit="sent", disable=not progress) as bar:
        yield bar.update


def check_words(sentences: list[list[str]]) -> None:
    """Raise TreeFormatError if there is an empty word or one that CoNLL-U cannot hold."""
    for words in sentences:
        for word in words:
            if not word or any(character in word for character in _NOT_IN_CONLLU):
                raise TreeFormatError(
                    f"sentence {quoted(' '.join(words))}: the word {quoted(word)} cannot be parsed; "
                    "words are not empty and hold no tab or line end; clean the text"
                )


class Parser(Protocol):
    """Anything that makes dependency trees of tokenised sentences."""

    def parse(self, sentences: list[list[str]], progress: Progress = False) -> list[Sentence]:
        """One tree for each sentence, in the same order, over exactly its words.

        Args:
            sentences: words of each sentence.
            progress: whether to show a bar on stderr, or one to move.

        Returns:
            Trees without multi-word ranges, so `tree.forms == words`. The empty sentence gets the
            empty tree.

        Raises:
            TreeFormatError: a sentence has no tree or cannot be parsed.
        """
        ...


class StanzaParser:
    """Stanza's tagger and dependency parser (Qi et al. 2020), on words that are never split again.

    The models are loaded at the first sentence, not before. Stanza reads them with
    `torch.load(weights_only=True)`, so a model file can hold no code.

    Args:
        language: code of the language, such as "en". Its default models are downloaded when they
            are missing. With `tagger` and `parser` nothing is downloaded and the code is a name
            only.
        model_dir: folder of the downloaded models; None takes Stanza's own (STANZA_RESOURCES_DIR).
        tagger, parser: model files that Stanza trained, without pre-trained vectors. Both or
            neither. The lemmas that the parser asks for are then the words themselves.
        device: "cpu", "cuda", …; None takes a GPU where there is one.
        chunk: sentences a call. Stanza is fastest on some hundred sentences of about one length.

    Attributes:
        arguments: what messages call `tagger` and `parser`; whoever takes them from its own user changes that.

    Raises:
        ValueError: only one of `tagger` and `parser`, or a `chunk` below 1.

    Cost: about 2,000 to 3,000 words a second on one CPU thread with the small models of the tests.
    """

    def __init__(
        self,
        language: str = "en",
        model_dir: str | Path | None = None,
        tagger: str | Path | None = None,
        parser: str | Path | None = None,
        device: str | None = None,
        chunk: int = 500,
    ):
        if (tagger is None) != (parser is None):
            given, missing = ("tagger", "parser") if parser is None else ("parser", "tagger")
            raise ValueError(
                f"StanzaParser: {given} {str(tagger or parser)!r} without a {missing}; "
                "give both model files, or neither to use Stanza's own models of the language"
            )
        if chunk < 1:
            raise ValueError(f"StanzaParser: chunk is {chunk}; it must be at least 1")
        self.language = language
        self.model_dir = model_dir
        self.tagger = tagger
        self.parser = parser
        self.device = device
        self.chunk = chunk
        self.arguments = ("tagger", "parser")
        self._pipeline: stanza.Pipeline | None = None

    def parse(self, sentences: list[list[str]], progress: Progress = False) -> list[Sentence]:
        """See `Parser.parse`.

        Sentences are sorted by length and parsed `chunk` at a time. How they are grouped can change
        the last bits of the scores and so, in a near tie, a tree.

        Raises:
            TreeFormatError: an empty word or one that CoNLL-U cannot hold; Stanza or its models are
                missing or cannot be loaded; Stanza changed a word.
        """
        check_words(sentences)
        trees = [Sentence([], [], [], []) for _ in sentences]
        # Stanza fails on empty sentences, and is fast on sentences of one length
        order = sorted((i for i, words in enumerate(sentences) if words), key=lambda i: len(sentences[i]))
        if not order:
            return trees
        pipeline = self._pipeline = self._pipeline or self._load()
        with moving_bar(progress, len(sentences)) as advance:
            advance(len(sentences) - len(order))
            for start in range(0, len(order), self.chunk):
                indices = order[start : start + self.chunk]
                parsed = pipeline([sentences[i] for i in indices]).sentences
                if len(parsed) != len(indices):
                    raise TreeFormatError(
                        f"Stanza made {len(parsed)} sentences of {len(indices)}; it must keep them "
                        "as they are (tokenize_pretokenized); install the tested version of stanza"
                    )
                for i, result in zip(indices, parsed, strict=True):
                    trees[i] = _tree(result, sentences[i])
                advance(len(indices))
        return trees

    def _load(self) -> "stanza.Pipeline":
        for option, path in (("tagger", self.tagger), ("parser", self.parser)):
            if path is not None and not Path(path).is_file():
                raise TreeFormatError(f"{path}: no such file; give the .pt file of a {option} that Stanza trained")
        try:
            import stanza
        except ImportError as error:
            raise TreeFormatError(f"stanza cannot be imported ({error}); run: pip install 'stanza>=1.15,<2'") from None
        # urllib3 is what downloads
        for name in ("stanza", "urllib3"):
            logging.getLogger(name).setLevel(logging.WARNING)
        options = dict(
            lang=self.language,
            device=self.device,
            tokenize_pretokenized=True,
            pos_batch_size=_TAGGER_BATCH,
            depparse_batch_size=_PARSER_BATCH,
        )
        # Stanza, requests, pickle and torch fail here in all sorts of ways; all mean "no parser",
        # and the user needs to know what was tried
        if self.tagger is not None:
            try:
                return self._load_files(options)
            except Exception as error:
                raise TreeFormatError(
                    f"{self.tagger}, {self.parser}: Stanza {stanza.__version__} cannot load tagger "
                    f"and parser on device {self.device or 'auto'}; give a tagger and a dependency parser that Stanza "
                    f"trained without pre-trained vectors. It says {_describe(error)}"
                ) from None  # a traceback would show torch's advice
        if self.model_dir is not None:
            options["dir"] = str(self.model_dir)
        try:
            # Every dependency parser of Stanza looks at lemmas. A language without a lemmatiser has
            # "identity" in its default package, which the name "lemma" stands for.
            return stanza.Pipeline(
                **options,
                processors="tokenize,pos,lemma,depparse",
                download_method=stanza.DownloadMethod.REUSE_RESOURCES,
            )
        except Exception as error:
            folder = options.get("dir") or "Stanza's own folder"
            arguments = f"{self.language!r}" + (f", model_dir={options['dir']!r}" if "dir" in options else "")
            raise TreeFormatError(
                f"Stanza {stanza.__version__} has no parser for language {self.language!r}: looked "
                f"in {folder} and could not download what is missing; where "
                f'there is a network run: python -c "import stanza; stanza.download({arguments})" '
                f"and copy the folder; or give model files with {' and '.join(self.arguments)}. It says "
                f"{_describe(error)}"
            ) from None

    def _load_files(self, options: dict) -> "stanza.Pipeline":
        import stanza

        # Stanza insists on a resources.json even if nothing of it is used
        with tempfile.TemporaryDirectory() as folder:
            resources = {self.language: {"default_processors": {}, "packages": {}}}
            Path(folder, "resources.json").write_text(json.dumps(resources), encoding="utf-8")
            return stanza.Pipeline(
                **options,
                dir=folder,
                package=None,
                processors={
                    "tokenize": "default",
                    "pos": "default",
                    "lemma": "identity",
                    "depparse": "default",
                },
                lemma_use_identity=True,
                pos_model_path=str(self.tagger),
                depparse_model_path=str(self.parser),
                download_method=None,
            )


def _describe(error: Exception) -> str:
    """One line that names an error of somebody else's code, for the end of a message: it is cut where it is long."""
    if isinstance(error, UnpicklingError) or "weights_only" in str(error):
        # torch says how to load it unsafely
        return "not a model of Stanza: it cannot be unpickled"
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text if len(text) <= _LONGEST_CAUSE else text[:_LONGEST_CAUSE] + '…'}"


def _tree(result, words: list[str]) -> Sentence:
    """Our tree of a Stanza sentence, which must stand over `words`."""
    forms = [word.text for word in result.words]
    if forms != words:
        raise TreeFormatError(
            f"sentence {quoted(' '.join(words))}: Stanza made other words of it ({quoted(' '.join(forms))}); "
            "a tree must stand over the words of the text; clean the text"
        )
    heads = [word.head - 1 for word in result.words]
    return Sentence(
        forms,
        heads,
        universal_labels(heads, [word.deprel for word in result.words]),
        [word.upos or "_" for word in result.words],
    )


class ConlluParser:
    """Trees from a CoNLL-U file that was made beforehand, looked up by their words.

    A sentence is found by its words, or by its surface tokens where the file has multi-word ranges
    ("im" = "in" + "dem"). Where the same words occur several times, their trees are given out in
    the order of the file, over all calls of `parse`, and the last one again and again; so a text
    parsed once from top to bottom gets its own trees.

    Args:
        path: CoNLL-U file, `.gz` or plain. It is read at once and kept: about 3 kB a sentence.
        skip_broken: leave out broken trees, with a warning each; their sentences then have no parse.

    Raises:
        TreeFormatError: see `read_conllu`.
    """

    def __init__(self, path: str | Path, skip_broken: bool = False):
        self.path = path
        self._trees: dict[tuple[str, ...], list[Sentence]] = {}
        self._used: dict[tuple[str, ...], int] = {}
        with open_text(path) as lines:
            for start, block in read_blocks(lines, str(path)):
                try:
                    self._add(parse_block(block, str(path), start))
                except TreeFormatError as error:
                    if not skip_broken:
                        raise
                    logger.warning("left out: %s", error)
                    # in the place of the tree, or an equal sentence further down would lose its own
                    self._add(without_parse(block_forms(block)))

    def _add(self, sentence: Sentence) -> None:
        candidates = [replace(sentence, ranges=[])]
        if sentence.ranges:
            candidates.append(sentence.collapse_ranges())
        # a range may span one word and change nothing; it must not stand in the queue twice
        for words, tree in {tuple(tree.forms): tree for tree in candidates}.items():
            self._trees.setdefault(words, []).append(tree)

    def parse(self, sentences: list[list[str]], progress: Progress = False) -> list[Sentence]:
        """See `Parser.parse`.

        Raises:
            TreeFormatError: the file has no tree over the words of a sentence.
        """
        with moving_bar(progress, len(sentences)) as advance:
            return [self._tree(words, advance) for words in sentences]

    def _tree(self, words: list[str], advance: Callable[[int], object]) -> Sentence:
        advance(1)
        if not words:
            return Sentence([], [], [], [])
        key = tuple(words)
        trees = self._trees.get(key)
        if trees is None:
            raise TreeFormatError(
                f"{self.path}: no tree for the sentence {quoted(' '.join(words))}; "
                "parse the tokenised text with fairseq-syntax-parse"
            )
        used = self._used.get(key, 0)
        self._used[key] = used + 1
        return trees[min(used, len(trees) - 1)]
