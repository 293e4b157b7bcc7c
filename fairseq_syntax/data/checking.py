"""Checks of a data directory that do not need the text it was made from."""

from pathlib import Path

from ..files import checksum
from ..trees.text import TreeFormatError
from .arrays import ARRAY_TYPES, TAG_DICTIONARIES, manifest_path, read_manifest, tag_dictionary_path
from .collating import INPUTS
from .dataset import SplitSyntax
from .invariants import check_sizes, check_trees
from .length_table import length_table_path, read_length_table
from .token_files import CHANGED, check_tokens, load_dictionary, split_languages


def check_pair(data_path: str | Path, source: str, target: str) -> tuple[list[str], list[str]]:
    """Check all files of a language pair in a data directory.

    Returns a line for each correct split, and a message, with the name of the file, for each fault.
    """
    folder, pair = Path(data_path), (source, target)
    summary, faults = [], []
    try:
        manifest = read_manifest(folder, source, target)
        if manifest is None:
            raise TreeFormatError(f"{manifest_path(folder, *pair)}: not found; run fairseq-syntax preprocess")
        splits = manifest["splits"]
        languages = {source, *(language for split in splits for language in split_languages(folder, split, *pair))}
        words = {language: load_dictionary(folder / f"dict.{language}.txt") for language in sorted(languages)}
        tags = {name: load_dictionary(tag_dictionary_path(folder, source, name)) for name in TAG_DICTIONARIES}
        table = length_table_path(folder, *pair)
        if table.is_file():
            read_length_table(table, *pair)
    except (ValueError, OSError) as error:
        return [], [str(error)]
    for name, expected in sorted(manifest["sha256"].items()):
        path = folder / name
        if Path(name).name != name:
            faults.append(f"{path}: listed in the manifest, but not a file of this directory; preprocess again")
        elif not path.is_file():
            faults.append(f"{path}: not found, though the manifest lists it; copy it again, or preprocess again")
        elif checksum(path) != expected:
            faults.append(f"{path}: {CHANGED}")
    for split in splits if not faults else ():
        try:
            readers = check_tokens(folder, split, *pair, words)
            syntax = SplitSyntax(f"{folder}/{split}.{source}-{target}.{source}", INPUTS, folder)
            if source in readers:
                check_sizes(readers[source].sizes, syntax.sizes, f"{folder}: split {split!r}")
            check_trees(syntax.readers, {name: len(dictionary) for name, dictionary in tags.items()})
            arrays = ", ".join(name for name in ARRAY_TYPES if name in syntax.readers)
            summary.append(f"{split}: {len(syntax):,} sentences, {syntax.unparsed:,} unparsed; arrays: {arrays}")
        except (ValueError, OSError) as error:
            faults.append(str(error))
    return summary, faults
