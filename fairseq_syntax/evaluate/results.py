"""Folders of results, with a record SYSTEM-SEED.json and the translations of every run of an experiment."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from sacrebleu.metrics import BLEU

from .metrics import Bleu
from .schemas import Run, check_name, read_json


def read_results(folder: str | Path) -> dict[str, dict[str, dict]]:
    """The records of a folder: name of a system, in alphabetical order -> seed -> record.

    Raises ValueError: there are none, or a file is not a record of examples/experiments, or of another run than its
    name says.
    """
    records: dict[str, dict[str, dict]] = {}
    for path in sorted(Path(folder).glob("[!.]*.json")):
        record = read_json(path, Run, "leave it out, or run it again")
        check_name(path, record)
        records.setdefault(record["system"], {})[str(record["seed"])] = record
    if not records:
        raise ValueError(f"{folder}: holds no record (SYSTEM-SEED.json); give a folder such as docs/results/agreement")
    return {
        name: dict(sorted(runs.items(), key=lambda run: (len(run[0]), run[0])))
        for name, runs in sorted(records.items())
    }


def translations(
    folder: str | Path, records: dict[str, dict[str, dict]], split: str, names: Sequence[str] = ()
) -> dict[str, dict[str, Path]]:
    """The files with translations of a split: system -> seed -> path, for the given names or for all systems.

    Raises ValueError: there is no record of a system, or no translation of this split.
    """
    for name in names:
        if name not in records:
            raise ValueError(f"--system {name}: {folder} has no record of it; choose from {', '.join(records)}")
    files: dict[str, dict[str, Path]] = {}
    for name in names or records:
        for seed in records[name]:
            path = Path(folder, f"{name}-{seed}.{split}.txt.gz")
            if not path.is_file():
                splits = sorted({p.name.split(".")[-3] for p in Path(folder).glob(f"{name}-{seed}.*.txt.gz")})
                raise ValueError(f"--split {split}: {path} is not there; choose from {', '.join(splits) or 'none'}")
            files.setdefault(name, {})[seed] = path
    return files


def systems_of(
    named: Sequence[Sequence[str]], results: str | None, split: str | None, baselines: Sequence[str] | None
) -> tuple[dict, dict]:
    """Translations of all systems by run, and the records of systems from a folder of results.

    Args:
        named: name of a system and its translations, or the name alone of a system in the folder.
        results, split: folder of results, see `read_results`, and split; all its systems are taken unless some are
            named.
        baselines: the first one comes first, unless systems of the folder are named.
    """
    own = {name: {str(i + 1): path for i, path in enumerate(files)} for name, *files in named if files}
    if not results or not split:
        return own, {}
    records = read_results(results)
    chosen = [name for name, *files in named if not files]
    recorded = translations(results, records, split, chosen)
    order = [name for name, *_ in named] if chosen else [*recorded, *own]
    if not chosen and baselines:
        order.sort(key=baselines[0].__ne__)
    return {name: own.get(name) or recorded[name] for name in order}, {
        name: records[name] for name in recorded if name not in own
    }


def tokenizer_of(records: Mapping[str, Mapping[str, dict]], split: str | None) -> str | None:
    """sacrebleu's tokenizer, with which records were scored on a split; None without any. ValueError: they differ."""
    scored = [record["scores"].get(split, {}).get("BLEU") for runs in records.values() for record in runs.values()]
    found = {_settings(bleu["signature"]).get("tok", "none") for bleu in scored if bleu}
    if len(found) > 1:
        raise ValueError(f"--split {split}: the records are scored with {', '.join(sorted(found))}; give --tokenize")
    return found.pop() if found else None


def _settings(signature: str) -> dict[str, str]:
    return dict(field.partition(":")[::2] for field in signature.split("|"))


def check_scores(
    record: dict, split: str, hypotheses: Sequence[str], references: Sequence[Sequence[str]], path: str
) -> None:
    """Raise ValueError if the BLEU score of a record differs from that of its translations with these references.

    Records with settings that `Bleu` lacks or with another number of references are not checked. Versions of sacrebleu
    may differ, since they give the same scores. The message names the `path` of the references.
    """
    stored = record["scores"].get(split, {}).get("BLEU")
    if stored is None:
        return
    recorded = stored["signature"].partition("|version:")[0]
    settings = _settings(recorded)
    if settings.get("tok") not in BLEU.TOKENIZERS:
        return
    bleu = Bleu(settings.get("case") == "lc", settings["tok"])
    if bleu.signature(len(references[0])).partition("|version:")[0] != recorded:
        return
    score = bleu.score(bleu.statistics(hypotheses, references))
    if abs(stored["score"] - score) > 0.005:
        raise ValueError(
            f"{path}: BLEU of {record['system']}-{record['seed']} is {score:.2f} with it, but {stored['score']:.2f} in "
            f"its record; give the reference of --split {split}"
        )


def check_records(corpus, records: Mapping, split: str | None, references: Sequence[str] | None) -> None:
    """Raise ValueError if the BLEU scores of a corpus differ from those in the records of its systems."""
    for system in corpus.systems:
        for run, hypotheses in zip(system.runs, system.hypotheses, strict=True):
            record = records.get(system.name, {}).get(run)
            if record and split and references:
                check_scores(record, split, hypotheses, corpus.references, references[0])
