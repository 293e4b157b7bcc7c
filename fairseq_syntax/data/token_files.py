"""fairseq's own files of a data directory, checked before fairseq opens them: its errors name no file."""

import itertools
from collections.abc import Iterator, Mapping
from pathlib import Path

from fairseq.data import Dictionary
from fairseq.data.indexed_dataset import data_file_path, index_file_path, infer_dataset_impl

from .. import compat
from ..trees.text import TreeFormatError, numbered_lines, token_lines
from .arrays import ArrayReader
from .collating import EOS

AGAIN = "preprocess again, or copy it again"
CHANGED = "changed since it was written; copy it again, or preprocess again"

# fairseq passes file names to a shell
compat.repair_fairseq()


def load_dictionary(path: str | Path, make=Dictionary.load) -> Dictionary:
    """Load a dictionary of fairseq.

    Args:
        make: loads it from a path.

    Raises FileNotFoundError: no such file; TreeFormatError: it is damaged; fairseq's message does not name the file.
    """
    try:
        return make(str(path))
    except FileNotFoundError:
        raise FileNotFoundError(f"{path}: no such dictionary; {AGAIN}") from None
    except OSError:
        raise
    except Exception as error:  # fairseq raises Exception itself
        reason = " ".join(str(error).split()).partition(". ")[0][:100]
        raise TreeFormatError(f"{path}: not a dictionary of fairseq ({reason}); {AGAIN}") from None


def symbols_of(path: Path) -> list[bytes] | None:
    """The symbols of a dictionary in their order, without their counts; None if there is no such file."""
    return [line.rpartition(b" ")[0] for line in path.read_bytes().split(b"\n")] if path.is_file() else None


def parts_of(split: str) -> Iterator[str]:
    """`split`, `split1`, `split2`, … without end: fairseq trains on the existing ones together."""
    return itertools.chain([split], (f"{split}{number}" for number in itertools.count(1)))


def token_reader(prefix: str | Path) -> ArrayReader | None:
    """The token ids of one language of a split; None if they are absent, or not of fairseq's mmap format.

    Raises TreeFormatError: the files are damaged, or one of the two is missing.
    """
    exist = any(Path(make(str(prefix))).is_file() for make in (index_file_path, data_file_path))
    if not exist or infer_dataset_impl(str(prefix)) in ("raw", "cached", "huffman"):
        return None
    return ArrayReader(prefix)


def split_languages(data_path: str | Path, split: str, source: str, target: str) -> dict[str, str]:
    """Language -> path prefix of the existing text of a split, named for either direction of translation."""
    for pair in (f"{source}-{target}", f"{target}-{source}"):
        prefixes = {language: str(Path(data_path, f"{split}.{pair}.{language}")) for language in (source, target)}
        # raw text has the prefix itself as its name
        existing = {
            language: prefix
            for language, prefix in prefixes.items()
            if any(Path(f"{prefix}{end}").is_file() for end in ("", ".idx", ".bin"))
        }
        if existing:
            return existing
    return {}


def check_text(tokens: ArrayReader, dictionary: Dictionary, path: Path) -> None:
    """Raise TreeFormatError, naming the first line that differs, unless the ids encode this text."""
    sentences = (tokens[i][:-1].tolist() for i in range(len(tokens)))
    pairs = itertools.zip_longest(token_lines(path), sentences, fillvalue=(0, ""))
    for number, ((_, line), ids) in enumerate(pairs, 1):
        if [dictionary.index(token) for token in line.split()] != list(ids):
            raise TreeFormatError(
                f"{path}:{number}: other words than in the binarized text; give the text that was binarized"
            )


def check_tokens(
    data_path: str | Path, split: str, source: str, target: str, dictionaries: Mapping[str, Dictionary]
) -> dict[str, ArrayReader]:
    """Raise TreeFormatError, naming the file, if fairseq could not read a split.

    Args:
        dictionaries: of each language.

    Returns language -> token ids, for files in fairseq's mmap format.
    """
    prefixes = split_languages(data_path, split, source, target)
    if prefixes and source not in prefixes:
        raise TreeFormatError(f"{prefixes[target]}: found, but not its counterpart in {source}; {AGAIN}")
    readers, sizes = {}, {}
    for language, prefix in prefixes.items():
        reader = token_reader(prefix)
        if reader is not None:
            readers[language], sizes[language] = reader, len(reader)
            symbols = len(dictionaries[language])
            wrong = None
            if len(reader.values) and not 0 <= int(reader.values.min()) <= int(reader.values.max()) < symbols:
                wrong = f"a token beyond the {symbols} of dict.{language}.txt"
            elif (reader.sizes < 1).any() or (reader.values[reader.starts + reader.sizes - 1] != EOS).any():
                wrong = "a sentence does not end with </s>"
            if wrong:
                raise TreeFormatError(f"{data_file_path(prefix)}: damaged, or of another dictionary: {wrong}; {AGAIN}")
        elif infer_dataset_impl(prefix) == "raw":
            with open(prefix, encoding="utf-8") as lines:
                sizes[language] = sum(1 for _ in numbered_lines(lines, prefix))
    if len(set(sizes.values())) > 1:
        raise TreeFormatError(
            f"{prefixes[source]}: {sizes[source]} sentences, but {sizes[target]} in {prefixes[target]}; {AGAIN}"
        )
    return readers
