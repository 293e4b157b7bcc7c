"""Test the systems of a file like agreement.toml against baselines and controls, for the pages that results.py writes.

    python examples/experiments/compared.py examples/experiments/agreement.toml outputs/agreement docs/results/agreement

The second folder gets comparisons/SPLIT.OTHER.json of its records, by references in the first. Records get agreement
on splits with a challenge: corpus/challenge.tsv beside corpus/challenge.de.
"""

import json
import sys
from itertools import chain, product
from pathlib import Path

from fairseq_syntax.evaluate.comparison import FORMAT, compare
from fairseq_syntax.experiment.answer import controlled, rivals, tested, translations
from fairseq_syntax.experiment.plan import CHECKOUT, Split, read_plan
from fairseq_syntax.experiment.run import read_records
from fairseq_syntax.files import written
from fairseq_syntax.trees.text import read_lines

sys.path.append(str(CHECKOUT / "examples" / "agreement"))
import score


def path_of(results: Path, split: str, baseline: str) -> Path:
    """Where a comparison is kept."""
    return results / "comparisons" / f"{split}.{baseline}.json"


def breakdown(split: Split) -> list[str]:
    """What sentences of a split are grouped by, beside baselines: values of `compare --by`."""
    return (["length"] if split.source else []) + ([f"label:{split.labels}"] if split.labels else [])


def is_of(comparison: dict, records: list[dict], split: str, kinds: list[str]) -> bool:
    """True if a comparison is of exactly these records, and has this form and breakdown."""
    if comparison.get("format") != FORMAT or [kind["by"] for kind in comparison["buckets"]] != kinds:
        return False
    compared = {
        (system["name"], run): round(score, 6)
        for system in comparison["systems"]
        for run, score in zip(system["runs"], system["scores"]["BLEU"]["runs"], strict=True)
    }
    return compared == {
        (record["system"], str(record["seed"])): round(record["scores"][split]["BLEU"]["score"], 6)
        for record in records
    }


def main(table: str, out: str, results: str) -> None:
    """Write the comparisons that are missing or older than the records."""
    plan, folder = read_plan(Path(table)), Path(results)
    records = read_records(plan, folder)
    for record, (name, split) in product(records, tested(plan)):
        challenge, scores = Path(out, split.reference).with_suffix(".tsv"), record["scores"][name]
        if challenge.exists() and "agreement" not in scores:
            run = folder / f"{record['system']}-{record['seed']}"
            lines = list(read_lines(f"{run}.{name}.txt.gz"))
            scores["agreement"] = score.score(score.read_challenge(challenge), lines)
            with written(f"{run}.json") as file:
                json.dump(record, file, indent=1, ensure_ascii=False)
    beside = chain(
        ((pair, True) for pair in rivals(plan, records).items()),
        ((pair, False) for pair in controlled(plan, records).items()),
    )
    for (baseline, systems), of_family in beside:
        for name, split in tested(plan):
            kinds, path = breakdown(split) if of_family else [], path_of(folder, name, baseline)
            of_systems = [record for record in records if record["system"] in systems]
            if path.exists() and is_of(json.loads(path.read_text(encoding="utf8")), of_systems, name, kinds):
                continue
            found = compare(
                translations(folder, records, name, systems),
                [f"{out}/{split.reference}"],
                f"{out}/{split.source}" if "length" in kinds else None,
                metrics=["BLEU"],
                tokenize=plan.tokenize,
                by=[kind.replace("label:", f"label:{out}/") for kind in kinds],
            ).content
            for kind, by in zip(found["buckets"], kinds, strict=True):
                kind["by"] = by
                for group in kind["groups"]:
                    del group["sentences"]
            for system in found["systems"]:
                system["files"] = [Path(file).name for file in system["files"]]
            with written(str(path)) as file:
                json.dump(found, file, ensure_ascii=False, indent=1)


if __name__ == "__main__":
    main(*sys.argv[1:])
