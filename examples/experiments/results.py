"""Write the tables of docs/ and the figures in sentences of docs/ and README from the records in docs/results/.

Tables stand between `<!-- records: NAME -->` and `<!-- end of records -->`, those of scores alone between
`<!-- scores: NAME -->` and `<!-- end of scores -->`; their systems are those of NAME.toml here.
A figure between a mark such as `<!-- NAME SYSTEM SPLIT delta -->` (`interval`, `detectable`) and `<!-- -->` is that of
the comparison of a system with its baseline. `<!-- table: by-depth -->` has the tables of deeper.py, `<!-- table:
languages -->` those of languages.py, and `<!-- speed -->` what docs/results/ keeps of benchmarks/.
"""

import argparse
import json
import re
import sys
from pathlib import Path
from statistics import mean

import deeper
import languages
from compared import breakdown, is_of, path_of
from table import commits, controls, differences, interval, scores, signed

from fairseq_syntax.experiment.answer import controlled, rivals, tested
from fairseq_syntax.experiment.plan import CHECKOUT, Plan, PlanError, read_plan
from fairseq_syntax.experiment.run import read_records
from fairseq_syntax.pictures.figures import save_figure

sys.path.append(str(CHECKOUT / "benchmarks"))
import timing

_BLOCK = re.compile(r"(<!-- (records|scores): ([\w-]+) -->\n).*?(<!-- end of \2 -->)", re.DOTALL)
_SPEED = re.compile(r"(<!-- speed -->\n).*?(<!-- end of speed -->)", re.DOTALL)
_TABLE = re.compile(r"(<!-- table: (by-depth|languages) -->\n).*?(<!-- end of table -->)", re.DOTALL)
_FIGURE = re.compile(r"(<!-- ([\w-]+) ([\w-]+) ([\w-]+) (delta|interval|detectable) -->)[^<]*(<!-- -->)")


def generated(plan: Plan, folder: Path, up: str = "", tests: bool = True) -> str:
    """What the records of an experiment say, and how many of its runs have one.

    Args:
        plan: which systems and seeds there are to be.
        folder: with its records.
        up: from the page to docs/.
        tests: whether systems are compared, too.

    Raises:
        PlanError: a record cannot be read.
    """
    wanted = [f"{system.name}-{seed}" for system, seed in plan.runs()]
    records = read_records(plan, folder)
    if not records:
        return f"No run of {len(wanted)} has a record yet."
    signatures = sorted({record["scores"]["valid"]["BLEU"]["signature"] for record in records})
    said, done = "all runs", {f"{record['system']}-{record['seed']}" for record in records}
    if missing := [name for name in wanted if name not in done]:
        minutes = len(missing) * mean(sum(record["minutes"].values()) for record in records)
        left = f"not run: {', '.join(missing)}; about {minutes:.0f} minutes of one core"
        said = f"{len(records)} of {len(wanted)} runs so far ({left})"
    parts = [
        f"{said.capitalize()}; records and translations: [docs/results/{plan.name}]({up}results/{plan.name}), of "
        f"{commits(records)}; BLEU: `{'`, `'.join(signatures)}`. Mean ± standard deviation over seeds.",
        scores(plan, records),
    ]
    if tests:
        against, beside_controls = _compared(plan, records, folder)
        parts += [differences(plan, split, found) for split, found in against.items() if found]
        parts += filter(None, [controls(beside_controls)])
    return "\n\n".join(parts)


def _compared(plan: Plan, records: list[dict], folder: Path) -> tuple[dict[str, list[dict]], dict[str, list[dict]]]:
    """Split -> comparisons with each baseline, and with each control; PlanError if they are older than the records."""

    def read(split: str, baseline: str, systems: list[str], kinds: list[str]) -> dict:
        path = path_of(folder, split, baseline)
        comparison = json.loads(path.read_text(encoding="utf8")) if path.exists() else {}
        if not is_of(comparison, [record for record in records if record["system"] in systems], split, kinds):
            how = "older than the records or this program" if path.exists() else "missing"
            raise PlanError(f"{path}: {how}; run examples/experiments/compared.py {plan.path} FOLDER {folder}")
        return comparison

    baselines, of_controls = rivals(plan, records).items(), controlled(plan, records).items()
    return (
        {name: [read(name, *one, breakdown(split)) for one in baselines] for name, split in tested(plan)},
        {name: [read(name, *one, []) for one in of_controls] for name, _ in tested(plan)},
    )


def plan_of(name: str, boards: Path = Path(__file__).parent) -> Plan:
    """The experiment of a name, from the folder with the files of experiments. Raises PlanError: it cannot be read."""
    if name.startswith(languages.NAME):
        return languages.plan_of(name.removeprefix(languages.NAME))
    return read_plan(boards / f"{name}.toml")


def renewed(text: str, boards: Path, results: Path, up: str = "") -> str:
    """The page with its tables and figures written again.

    Args:
        text: of the page.
        boards: folder with the files of experiments.
        results: folder with a folder of records for each.
        up: from the page to docs/.

    Raises:
        PlanError: a file or a record cannot be read.
    """

    def plan(name: str) -> Plan:
        return plan_of(name, boards)

    def figure(match: re.Match) -> str:
        name, system, split, what = match.group(2, 3, 4, 5)
        baseline = plan(name).families[plan(name).systems[system].family].baseline
        tests = json.loads(path_of(results / name, split, baseline).read_text(encoding="utf8"))["tests"]
        [test] = (test for test in tests if test["system"] == system)
        shown = {"delta": signed, "interval": interval, "detectable": "{:.1f}".format}
        return f"{match[1]}{shown[what](test[what])}{match[6]}"

    def measured(match: re.Match) -> str:
        record = json.loads((results / "speed.json").read_text(encoding="utf8"))
        return f"{match[1]}\n{timing.markdown(record)}\n\n{match[2]}"

    def table(match: re.Match) -> str:
        by_depth = match[2] == "by-depth"
        made = deeper.tables(plan(deeper.NAME), results / deeper.NAME) if by_depth else languages.tables(results)
        return f"{match[1]}\n{made}\n\n{match[3]}"

    def block(match: re.Match) -> str:
        tables = generated(plan(match[3]), results / match[3], up, match[2] == "records")
        return f"{match[1]}\n{tables}\n\n{match[4]}"

    for pattern, write in ((_FIGURE, figure), (_SPEED, measured), (_TABLE, table), (_BLOCK, block)):
        text = pattern.sub(write, text)
    return text


def main(argv: list[str] | None = None) -> int:
    """Entry point. Exit status: 0, 1 if --check finds old tables, 2 if something cannot be read."""
    parser = argparse.ArgumentParser(description="Write the tables and figures of docs/ and README from the records.")
    parser.add_argument("--check", action="store_true", help="write nothing; status 1 if tables are not the records'")
    check, docs, boards = parser.parse_args(argv).check, CHECKOUT / "docs", Path(__file__).parent
    old = {path: path.read_text(encoding="utf8") for path in (*sorted(docs.rglob("*.md")), CHECKOUT / "README.md")}
    try:
        new = {
            path: renewed(text, boards, docs / "results", "../" * (path.parent.name == "records"))
            for path, text in old.items()
        }
    except PlanError as error:
        print(f"results: {error}", file=sys.stderr)
        return 2
    older = [path for path in old if new[path] != old[path]]
    if check:
        for path in older:
            print(f"results: {path}: older than the records; run examples/experiments/results.py", file=sys.stderr)
        return int(bool(older))
    for path in older:
        path.write_text(new[path], encoding="utf8")
    figure = deeper.draw(read_plan(boards / f"{deeper.NAME}.toml"), docs / "results" / deeper.NAME)
    save_figure(figure, docs / "deeper.svg")
    return 0


if __name__ == "__main__":
    sys.exit(main())
