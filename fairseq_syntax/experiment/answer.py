"""Reports of an experiment, as sentences, tables and pages, and its expected BLEU before it runs."""

from collections.abc import Callable, Iterator
from pathlib import Path

from ..evaluate.comparison import compare, tables
from ..evaluate.report import page
from ..evaluate.verdicts import verdicts
from ..files import written
from ..trees.text import read_lines
from .corpus import text_path
from .plan import Plan, Split, SystemSettings
from .run import read_records

# largest mean length in words -> number of pairs -> BLEU of the Transformer, docs/corpus.md#the-file
MEASURED = {14: {1_000: 13.2, 10_000: 30.4}, None: {3_000: 1.4, 10_000: 2.0, 30_800: 9.8}}
_ENOUGH = 5  # least BLEU at which systems can be compared


def expectation(plan: Plan) -> list[str]:
    """A warning if the raw text is too small, for the length of its sentences, to tell systems apart."""
    if plan.corpus is None:
        return []
    lines = list(read_lines(text_path(plan.corpus.train, plan.corpus.source)))
    sizes = sum(len(line.split()) for line in lines), sum(map(len, lines))
    # in text without spaces, a word is about two characters
    mean = (sizes[0] if 15 * sizes[0] > sizes[1] else sizes[1] / 2) / max(len(lines), 1)
    known = next(measured for most, measured in MEASURED.items() if most is None or mean <= most)
    enough = min(pairs for pairs, bleu in known.items() if bleu >= _ENOUGH)
    if float(f"{len(lines):.3g}") >= enough:  # rounded as in the message
        return []
    low = max((bleu for pairs, bleu in known.items() if pairs <= len(lines)), default=0)
    high = min(bleu for pairs, bleu in known.items() if pairs > len(lines))
    return [
        f"with {len(lines):,} pairs of {mean:.0f} words, expect {low:.0f} to {high:.0f} BLEU, which cannot answer your "
        f"question; from about {enough:,} pairs on, it can (docs/corpus.md)"
    ]


def rivals(plan: Plan, records: list[dict]) -> dict[str, list[str]]:
    """Baseline of each family -> itself and the systems to compare with it, among those with records."""
    return _beside(plan, records, lambda system: plan.families[system.family].baseline)


def controlled(plan: Plan, records: list[dict]) -> dict[str, list[str]]:
    """Control, a system that only lacks the syntax -> itself and the systems to compare with it."""
    return _beside(plan, records, lambda system: system.control)


def _beside(plan: Plan, records: list[dict], other: Callable[[SystemSettings], str]) -> dict[str, list[str]]:
    recorded, groups = {record["system"] for record in records}, {}
    for name, system in plan.systems.items():
        baseline = other(system)
        if name != baseline and {name, baseline} <= recorded:
            groups.setdefault(baseline, [baseline]).append(name)
    return groups


def tested(plan: Plan) -> Iterator[tuple[str, Split]]:
    """The test sets, by name: all splits but the validation set."""
    return ((name, split) for name, split in plan.splits.items() if name != "valid")


def translations(results: Path, records: list[dict], split: str, systems: list[str]) -> dict[str, dict[str, Path]]:
    """Name of a system -> seed -> file of translations."""
    return {
        name: {
            str(record["seed"]): results / f"{name}-{record['seed']}.{split}.txt.gz"
            for record in records
            if record["system"] == name
        }
        for name in systems
    }


def answer(plan: Plan, out: Path, results: Path) -> list[str]:
    """Write the reports on all systems that can be compared with their baseline; returns their verdicts.

    report.html and report.txt are in the output folder; of several test sets or families, as report-NAME.html.

    Raises ValueError: a record is wrong, or translations and references do not match; OSError: a text is missing.
    """
    records = read_records(plan, results)
    families, lines, tests = rivals(plan, records), [], list(tested(plan))
    for name, split in tests:
        about = f"{name}: " if len(tests) > 1 else ""
        for baseline, systems in families.items():
            controls = {name: others[1:] for name, others in controlled(plan, records).items() if name in systems}
            compared = compare(
                translations(results, records, name, systems),
                [str(out / split.reference)],
                str(out / split.source) if split.source else None,
                {baseline: systems[1:], **controls},
                metrics=("BLEU", "chrF"),
                tokenize=plan.tokenize,
            )
            more = [name] * (len(tests) > 1) + [baseline] * (len(families) > 1)
            stem = out / "-".join(["report", *more])
            for suffix, text in (
                ("txt", "\n\n".join(tables(compared.content)) + "\n"),
                ("html", page(compared, f"{plan.name}: {name}")),
            ):
                with written(f"{stem}.{suffix}") as file:
                    file.write(text)
                if len(families) > 1:  # of before there were several
                    stem.with_name(f"{'-'.join(['report', *more[:-1]])}.{suffix}").unlink(missing_ok=True)
            lines += [about + line for line in verdicts(compared.content)]
    return lines
