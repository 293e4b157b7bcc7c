"""What to expect of an experiment, and what came out: in words, as tables, and as pages."""

from collections.abc import Callable, Iterator
from pathlib import Path

from ..evaluate.comparison import compare, tables
from ..evaluate.report import page
from ..evaluate.verdicts import verdicts
from ..files import written
from ..trees.text import read_lines
from .corpus import text_of
from .plan import Plan, Split, System
from .run import read_records

# words of a sentence, at most -> pairs -> BLEU of the Transformer with them, docs/corpus.md#the-file
MEASURED = {14: {1_000: 13.2, 10_000: 30.4}, None: {3_000: 1.4, 10_000: 2.0, 30_800: 9.8}}
_ENOUGH = 5  # BLEU with which systems can be compared


def expectation(plan: Plan) -> list[str]:
    """A warning if so little text, with sentences of this length, cannot tell systems apart; of raw text alone."""
    if plan.corpus is None:
        return []
    lines = list(read_lines(text_of(plan.corpus.train, plan.corpus.source)))
    sizes = sum(len(line.split()) for line in lines), sum(map(len, lines))
    # without spaces between words, one is about two characters
    mean = (sizes[0] if 15 * sizes[0] > sizes[1] else sizes[1] / 2) / max(len(lines), 1)
    known = next(measured for most, measured in MEASURED.items() if most is None or mean <= most)
    enough = min(pairs for pairs, bleu in known.items() if bleu >= _ENOUGH)
    if float(f"{len(lines):.3g}") >= enough:  # as it is printed
        return []
    low = max((bleu for pairs, bleu in known.items() if pairs <= len(lines)), default=0)
    high = min(bleu for pairs, bleu in known.items() if pairs > len(lines))
    return [
        f"with {len(lines):,} pairs of {mean:.0f} words, expect {low:.0f} to {high:.0f} BLEU, which cannot answer your "
        f"question; from about {enough:,} pairs on, it can (docs/corpus.md)"
    ]


def rivals(plan: Plan, records: list[dict]) -> dict[str, list[str]]:
    """Baseline -> systems with records beside it, the baseline first; a baseline of each family."""
    return _beside(plan, records, lambda system: plan.families[system.family].baseline)


def controlled(plan: Plan, records: list[dict]) -> dict[str, list[str]]:
    """The same of controls: systems that lack the syntax alone."""
    return _beside(plan, records, lambda system: system.control)


def _beside(plan: Plan, records: list[dict], other: Callable[[System], str]) -> dict[str, list[str]]:
    there, found = {record["system"] for record in records}, {}
    for name, system in plan.systems.items():
        baseline = other(system)
        if name != baseline and {name, baseline} <= there:
            found.setdefault(baseline, [baseline]).append(name)
    return found


def tested(plan: Plan) -> Iterator[tuple[str, Split]]:
    """The splits that systems are compared on: all but the one that checkpoints are chosen on."""
    return ((name, split) for name, split in plan.splits.items() if name != "valid")


def translations(results: Path, records: list[dict], split: str, systems: list[str]) -> dict[str, dict[str, Path]]:
    """System -> seed -> file of its translations."""
    return {
        name: {
            str(record["seed"]): results / f"{name}-{record['seed']}.{split}.txt.gz"
            for record in records
            if record["system"] == name
        }
        for name in systems
    }


def answer(plan: Plan, out: Path, results: Path) -> list[str]:
    """Write the reports of all systems that have records beside their baseline's; returns what they say in words.

    report.html and report.txt are in the output folder; with several test sets or families, their names follow.

    Raises ValueError: a record, or what is needed to compare, is not as it should be; OSError: a text is missing.
    """
    records = read_records(plan, results)
    families, said, tests = rivals(plan, records), [], list(tested(plan))
    for name, split in tests:
        about = f"{name}: " if len(tests) > 1 else ""
        for baseline, systems in families.items():
            controls = {c: of[1:] for c, of in controlled(plan, records).items() if c in systems}
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
            said += [about + line for line in verdicts(compared.content)]
    return said
