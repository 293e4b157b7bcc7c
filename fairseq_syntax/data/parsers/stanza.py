"""Stanza's tagger and dependency parser."""

import json
import logging
import tempfile
from pathlib import Path
from pickle import UnpicklingError
from typing import TYPE_CHECKING

from ...trees.conllu import Sentence, TreeFormatError
from . import Parser, ParserOptions, first_line, made_tree

if TYPE_CHECKING:
    import stanza

READS = ("parser_language", "parser_dir", "parser_tagger", "parser_model", "parser_device")

_CHUNK = 500  # sentences per call; Stanza is fastest on a few hundred of similar length


def load(options: ParserOptions) -> Parser:
    """See `load_parser`."""
    return StanzaParser(
        options.parser_language or "en",
        options.parser_dir,
        options.parser_tagger,
        options.parser_model,
        options.parser_device,
    )


class StanzaParser:
    """Stanza's tagger and dependency parser (Qi et al. 2020), which splits no words here.

    The models are loaded with the first sentence, by `torch.load(weights_only=True)`, so they cannot run code. Speed:
    2,000 to 3,000 words a second on one CPU thread with the small models of the tests.

    Args:
        language: code of the language, such as "en". Its default models are downloaded when they are missing. With
            `tagger` and `parser` nothing is downloaded and the code is a name only.
        model_dir: folder of the downloaded models; None takes Stanza's own (STANZA_RESOURCES_DIR).
        tagger, parser: model files that Stanza trained, without pre-trained vectors. Both or neither. The words
            then serve as lemmas.
        device: "cpu", "cuda", …; None takes a GPU where there is one.
    """

    def __init__(
        self,
        language: str = "en",
        model_dir: str | Path | None = None,
        tagger: str | Path | None = None,
        parser: str | Path | None = None,
        device: str | None = None,
    ):
        if (tagger is None) != (parser is None):
            raise ValueError("--parser-tagger and --parser-model are both files of Stanza's: give both, or neither")
        self.language = language
        self.model_dir = model_dir
        self.tagger = tagger
        self.parser = parser
        self.device = device
        self._pipeline: stanza.Pipeline | None = None

    def parse(self, sentences: list[list[str]]) -> list[Sentence]:
        """See `Parser.parse`. Raises TreeFormatError if Stanza or its models are missing or it changed a word, too.

        Sentences are sorted by length and parsed some at a time. How they are grouped can change the last bits of
        the scores and so, in a near tie, a tree.
        """
        trees = [Sentence([], [], [], []) for _ in sentences]
        # Stanza fails on empty sentences, and is fast on sentences of equal length
        order = sorted((i for i, words in enumerate(sentences) if words), key=lambda i: len(sentences[i]))
        if not order:
            return trees
        pipeline = self._pipeline = self._pipeline or self._load()
        for start in range(0, len(order), _CHUNK):
            indices = order[start : start + _CHUNK]
            parsed = pipeline([sentences[i] for i in indices]).sentences
            for i, result in zip(indices, parsed, strict=True):
                trees[i] = _tree(result, sentences[i])
        return trees

    def _load(self) -> "stanza.Pipeline":
        try:
            import stanza
        except ImportError as error:
            raise TreeFormatError(f"stanza cannot be imported ({error}); run: pip install 'stanza>=1.15,<2'") from None
        # urllib3 downloads the models
        for name in ("stanza", "urllib3"):
            logging.getLogger(name).setLevel(logging.WARNING)
        options = dict(
            lang=self.language,
            device=self.device,
            tokenize_pretokenized=True,
            pos_batch_size=2000,  # sentences
            depparse_batch_size=5000,  # words
        )
        if self.model_dir is not None and self.tagger is None:
            options["dir"] = str(self.model_dir)
        try:
            if self.tagger is not None:
                return self._load_files(options)
            # every parser of Stanza reads lemmas; "lemma" may stand for "identity" in a language's default package
            return stanza.Pipeline(
                **options,
                processors="tokenize,pos,lemma,depparse",
                download_method=stanza.DownloadMethod.REUSE_RESOURCES,
            )
        except Exception as error:  # of Stanza, requests, pickle and torch; all mean "no parser"
            arguments = f"{self.language!r}" + (f", model_dir={options['dir']!r}" if "dir" in options else "")
            models = f"{self.tagger}, {self.parser}" if self.tagger else f"language {self.language!r}"
            raise TreeFormatError(
                f"{models}: Stanza {stanza.__version__} cannot load tagger and parser on device "
                f"{self.device or 'auto'}, or download them; give files that Stanza trained without pre-trained "
                'vectors (--parser-tagger, --parser-model), or, with a network connection, run: python -c "import '
                f'stanza; stanza.download({arguments})" and copy the folder. It says {_describe(error)}'
            ) from None  # torch advises to load it unsafely

    def _load_files(self, options: dict) -> "stanza.Pipeline":
        import stanza

        # Stanza requires a resources.json even if it does not use it
        with tempfile.TemporaryDirectory() as folder:
            resources: dict = {self.language: {"default_processors": {}, "packages": {}}}
            Path(folder, "resources.json").write_text(json.dumps(resources), encoding="utf-8")
            return stanza.Pipeline(
                **options,
                dir=folder,
                package=None,
                processors={"tokenize": "default", "pos": "default", "lemma": "identity", "depparse": "default"},
                lemma_use_identity=True,
                pos_model_path=str(self.tagger),
                depparse_model_path=str(self.parser),
                download_method=None,
            )


def _describe(error: Exception) -> str:
    if isinstance(error, UnpicklingError) or "weights_only" in str(error):
        # torch's message says how to load it unsafely
        return "not a model of Stanza: it cannot be unpickled"
    return first_line(error)


def _tree(result, words: list[str]) -> Sentence:
    """Convert a sentence of Stanza to our tree."""
    return made_tree(
        "Stanza",
        words,
        [word.text for word in result.words],
        [word.head - 1 for word in result.words],
        [word.deprel for word in result.words],
        [word.upos or "_" for word in result.words],
    )
