"""Data directories, from raw text or from pieces with their trees."""

import logging
import sys
from collections.abc import Iterator, Mapping
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from fairseq import options as fairseq_options

from ..data.binarize import BinarizeOptions
from ..data.preprocessing import Preprocessing, binarize_text
from ..trees.conllu import MAX_WORDS
from ..trees.subwords import SubwordType
from .text import TextPreparation


def preprocess_options(**changed) -> dict:
    """Options of fairseq-preprocess: the defaults, except for those in `changed`."""
    return vars(fairseq_options.get_preprocessing_parser().parse_args([])) | changed


def preprocess(
    options: Mapping,
    splits: Mapping[str, str],
    text: TextPreparation | None = None,
    folder: Path | None = None,
    *,
    subword_type: str | None = None,
    distances: bool = True,
    allow_unparsed: bool = False,
    only_syntax: bool = False,
    syntax_dicts: str | None = None,
    max_words: int = MAX_WORDS,
    overwrite: bool = False,
) -> None:
    """Make a data directory, as `fairseq-syntax preprocess` does.

    Args:
        options: options of fairseq-preprocess, by name.
        splits: name of each split in fairseq-preprocess -> prefix of its text.
        text, folder: preparation of raw text, and folder for its pieces and trees; None for pieces with trees.
        subword_type: type of the pieces; None for that of `text`, or subword_nmt.
        distances, allow_unparsed: see `BinarizeOptions`.
        only_syntax: whether the data directory holds the text already.
        syntax_dicts, max_words, overwrite: see `Preprocessing`.

    Raises ValueError, OSError: see `TextPreparation.prepare`, `Preprocessing.run`; ChildProcessError: a worker died.
    """
    recipe, prefixes = None, dict(splits)
    subword_type = subword_type or str(SubwordType.subword_nmt)
    try:
        if text is not None and folder is not None:
            recipe = text.prepare(folder)
            subword_type, prefixes = recipe.source.subwords, {split: str(folder / split) for split in splits}
            allow_unparsed |= text.parser == "none"
        with _log_to_stderr():
            Preprocessing(
                source=options["source_lang"],
                target=options["target_lang"],
                splits=prefixes,
                destination=Path(options["destdir"]),
                binarize=None if only_syntax else partial(binarize_text, options, prefixes),
                options=BinarizeOptions(subword_type, distances=distances, allow_unparsed=allow_unparsed),
                syntax_dicts=syntax_dicts,
                max_words=max_words,
                workers=options["workers"],
                overwrite=overwrite,
                recipe=recipe,
            ).run()
    except BrokenProcessPool:
        raise ChildProcessError("a worker was killed (out of memory?); lower --workers") from None
    except KeyboardInterrupt:
        raise KeyboardInterrupt("; nothing was written") from None


@contextmanager
def _log_to_stderr() -> Iterator[None]:
    """Replace the log handlers that fairseq installs on import, which write to stdout."""
    root, handler = logging.getLogger(), logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter("%(asctime)s | %(message)s"))
    handlers, level = root.handlers, root.level
    root.handlers = [handler]
    root.setLevel(logging.INFO)
    try:
        yield
    finally:
        root.handlers = handlers
        root.setLevel(level)
