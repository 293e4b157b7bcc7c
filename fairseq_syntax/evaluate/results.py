"""A folder of results: for every run of a leaderboard its record, SYSTEM-SEED.json, and its translations."""

import json
from collections.abc import Sequence
from pathlib import Path


def read_results(folder: str | Path) -> dict[str, dict[str, dict]]:
    """The records of a folder.

    Returns:
        Name of a system, in alphabetical order -> seed, as text -> its record.

    Raises:
        ValueError: there are none, or one is not what examples/leaderboard writes.
    """
    found: dict[str, dict[str, dict]] = {}
    for path in sorted(Path(folder).glob("[!.]*.json")):
        try:
            record = json.loads(path.read_text(encoding="utf8"))
            name, seed, _ = record["system"], str(record["seed"]), record["scores"].keys()
        except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise ValueError(f"{path}: not a record of examples/leaderboard ({error!r}); leave it out") from None
        found.setdefault(name, {})[seed] = record
    if not found:
        raise ValueError(f"{folder}: holds no record (SYSTEM-SEED.json); give a folder such as docs/results/agreement")
    return {name: dict(sorted(found[name].items(), key=lambda run: (len(run[0]), run[0]))) for name in sorted(found)}


def translations(
    folder: str | Path, records: dict[str, dict[str, dict]], split: str, names: Sequence[str] = ()
) -> dict[str, dict[str, Path]]:
    """Where the translations of a split are, of the systems that are named, or of all: system -> seed -> file.

    Raises:
        ValueError: no record of a system, or no translations of this split.
    """
    for name in names:
        if name not in records:
            raise ValueError(f"--system {name}: {folder} has no record of it; choose among {', '.join(records)}")
    found: dict[str, dict[str, Path]] = {}
    for name in names or records:
        for seed in records[name]:
            path = Path(folder, f"{name}-{seed}.{split}.txt.gz")
            if not path.is_file():
                others = sorted({p.name.split(".")[-3] for p in Path(folder).glob(f"{name}-{seed}.*.txt.gz")})
                raise ValueError(f"--split {split}: {path} is not there; choose among {', '.join(others) or 'none'}")
            found.setdefault(name, {})[seed] = path
    return found


def check_scores(record: dict, split: str, metric: str, signature: str, score: float, reference: str) -> None:
    """Raise ValueError if a record has another score with the same signature: the reference is another one.

    Versions of sacrebleu may differ, as scores do not.
    """
    said = record["scores"].get(split, {}).get(metric)
    same = said and said["signature"].partition("|version:")[0] == signature.partition("|version:")[0]
    if same and abs(said["score"] - score) > 0.005:
        raise ValueError(
            f"{reference}: {metric} of {record['system']}-{record['seed']} is {score:.2f} with it, but "
            f"{said['score']:.2f} in its record; give the reference of --split {split}"
        )
