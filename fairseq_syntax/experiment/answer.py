"""What to expect of an experiment, and what came out: in words, as tables, and as pages."""

import subprocess
import sys
from pathlib import Path

from ..evaluate.comparison import compare
from ..evaluate.results import read_results, translations
from ..evaluate.verdicts import verdicts
from ..files import written
from ..trees.text import read_lines
from .comparisons import compare_all, controlled, rivals, tested
from .corpus import text_of
from .plan import Plan
from .records import environment
from .run import RunError, read_records

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
    if len(lines) >= enough:
        return []
    low = max((bleu for pairs, bleu in known.items() if pairs <= len(lines)), default=0)
    high = min(bleu for pairs, bleu in known.items() if pairs > len(lines))
    return [
        f"with {len(lines):,} pairs of {mean:.0f} words, expect {low:.0f} to {high:.0f} BLEU, which cannot answer your "
        f"question; from about {enough:,} pairs on, it can (docs/corpus.md)"
    ]


def answer(plan: Plan, out: Path, results: Path) -> list[str]:
    """Write the reports of all systems that have records beside their baseline's; returns what they say in words.

    report.html and report.txt are in the output folder; with several test sets or families, their names follow.

    Raises ValueError: a record, or what is needed to compare, is not as it should be.
    """
    compare_all(plan, out, results)
    records = read_records(plan, results)
    families, said, kept = rivals(plan, records), [], read_results(results)
    tests = list(tested(plan))
    for name, split in tests:
        about = f"{name}: " if len(tests) > 1 else ""
        for baseline, systems in families.items():
            others = [system for system in systems if system != baseline]
            controls = {c: [s for s in of if s != c] for c, of in controlled(plan, records).items() if c in systems}
            compared = compare(
                translations(results, kept, name, list(systems)),
                [str(out / split.reference)],
                str(out / split.source) if split.source else None,
                {baseline: others, **controls},
                records=kept,
                split=name,
                metrics=("BLEU", "chrF"),
                tokenize=plan.tokenize,
            )
            more = [name] * (len(tests) > 1) + [baseline] * (len(families) > 1)
            common = [str(results), "--split", name, "--reference", str(out / split.reference)]
            common += ["--tokenize", plan.tokenize, "--metrics", "BLEU", "chrF"]
            common += [word for each in (baseline, *controls) for word in ("--baseline", each)]
            common += [word for system in systems for word in ("--system", system)]
            common += ["--source", str(out / split.source), "--by", "length"] if split.source else []
            stem = out / "-".join(["report", *more])
            with written(f"{stem}.txt") as file:
                file.write("\n\n".join(compared.tables()) + "\n")
            _call("report", *common, "--title", f"{plan.name}: {name}", "--output", f"{stem}.html", "--overwrite")
            said += [about + line for line in verdicts(compared.content)]
    return said


def _call(verb: str, *arguments: str) -> str:
    command = [sys.executable, "-m", "fairseq_syntax", verb, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, env=environment())
    if done.returncode:
        raise RunError(f"fairseq-syntax {verb}: {done.stderr.strip()[-300:]}")
    return done.stdout
