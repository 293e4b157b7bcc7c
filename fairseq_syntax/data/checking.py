"""Check of a data directory, as far as it goes without the text that it was made of."""

from pathlib import Path

from ..files import checksum
from .arrays import ARRAY_TYPES, TAG_DICTIONARIES, manifest_path, read_manifest, tag_dictionary_path
from .collating import INPUTS
from .invariants import check_sizes, check_trees
from .length_table import length_table_path, read_length_table
from .splits import open_syntax
from .token_files import CHANGED, check_tokens, load_dictionary, split_languages


def check_pair(data_path: str | Path, source: str, target: str | None) -> tuple[list[str], list[str]]:
    """Check everything of two languages in a data directory.

    Returns a line about each split that is right, and a message, which names the file, for each fault.
    """
    folder, pair = Path(data_path), (source, str(target))
    summary: list[str] = []
    faults: list[str] = []

    def attempt(check, *args):
        """The result of a check, or None after an error, whose message is kept."""
        try:
            return check(*args)
        except (ValueError, OSError) as error:
            missing = error.filename if isinstance(error, FileNotFoundError) else None
            faults.append(f"{missing}: not found; preprocess again" if missing else str(error))

    def check_split(split: str) -> None:
        readers = check_tokens(folder, split, *pair, words)
        sizes = {name: len(dictionary) for name, dictionary in tags.items()}
        syntax = open_syntax(folder, split, pair, manifest, INPUTS, sizes)
        if source in readers:
            check_sizes(readers[source].sizes, syntax.sizes, f"{folder}: split {split!r}")
        check_trees(syntax.readers)
        counts = ", ".join(f"{count:,} {name}" for name, count in syntax.counts().items())
        summary.append(f"{split}: {counts}; arrays: {', '.join(n for n in ARRAY_TYPES if n in syntax.readers)}")

    manifest = attempt(read_manifest, folder, source, target)
    if manifest is None:
        missing = (
            f"{manifest_path(folder, *pair)}: not found: the directory has no trees; run fairseq-syntax preprocess"
        )
        return summary, faults or [f"{missing} --only-syntax"]
    languages = {
        source,
        *(language for split in manifest["splits"] for language in split_languages(folder, split, *pair)),
    }
    words = {language: attempt(load_dictionary, folder / f"dict.{language}.txt") for language in sorted(languages)}
    tags = {name: attempt(load_dictionary, tag_dictionary_path(folder, source, name)) for name in TAG_DICTIONARIES}
    for split in manifest["splits"] if not faults else ():
        attempt(check_split, split)
    table = length_table_path(folder, *pair)
    if table.is_file():
        attempt(read_length_table, table, *pair)
    for name, expected in sorted(manifest["sha256"].items()):
        path = folder / name
        if Path(name).name != name:
            faults.append(f"{path}: listed in the manifest, but not a file of this directory; preprocess again")
        # an earlier message about the same file says more
        elif not any(str(path) in fault for fault in faults):
            if not path.is_file():
                faults.append(f"{path}: not found, though the manifest lists it; copy it again, or preprocess again")
            elif checksum(path) != expected:
                faults.append(f"{path}: {CHANGED}")
    return summary, faults
