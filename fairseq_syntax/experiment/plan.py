"""An experiment's file, read from TOML: what is trained on what, for how long, how it is scored."""

import json
import re
import shlex
import tomllib
from collections.abc import Iterator
from dataclasses import field, fields, replace
from pathlib import Path

from pydantic import ConfigDict, TypeAdapter, ValidationError
from pydantic.dataclasses import dataclass as typed

NAME = "experiment.toml"
"""The file in the folder of an experiment."""
# the plug-in, and the checkout that it may be in
USER_DIR = Path(__file__).resolve().parents[1]
CHECKOUT = USER_DIR.parent
# linear: the head of each word is the one before it; ud: of a parser of Universal Dependencies
TREES = ("gold", "parser", "random", "linear", "ud")
# those that are made of the parser's: kind -> `perturb --trees`
PERTURBED = {"linear": "right", "random": "random"}
_CHECKED = ConfigDict(extra="forbid")  # what is not a field is refused


class PlanError(ValueError):
    """The file, or what is there of an earlier run, is not what it should be. The message is for the user."""


@typed(frozen=True, config=_CHECKED)
class Family:
    """What the systems of a family have in common.

    Fields:
        train: options of fairseq-train.
        generate: options of fairseq-generate.
        max_updates: where training ends if it does not end by itself; {updates} in `train`.
        annealed: whether the learning rate is zero there, so that training is then finished, not cut off.
        patience: validations without a better one after which it does; 0: something in `train` ends it.
        data: data directory below the output folder; {trees} is replaced.
        characters: whether texts are characters, to be joined before they are scored.
        baseline: the system that the others are tested against, or none.
    """

    train: str
    generate: str
    max_updates: int
    annealed: bool = False
    patience: int = 0
    data: str = "data-bin-{trees}"
    characters: bool = False
    baseline: str = ""


@typed(frozen=True, config=_CHECKED)
class Split:
    """A split to translate.

    Fields:
        subset: its name in the data directory.
        reference: text below the output folder, a sentence a line.
        source: the same in the other language, to tell sentences by their length, or none.
        labels: file with a label a line, to tell sentences by these as well, or none.
    """

    subset: str
    reference: str
    source: str = ""
    labels: str = ""


@typed(frozen=True, config=_CHECKED)
class Corpus:
    """Raw parallel text: files PREFIX.SOURCE and PREFIX.TARGET, plain or .gz.

    Fields:
        source, target: codes of the languages.
        train, valid: prefixes.
        tests: name of a test set -> prefix.
    """

    source: str
    target: str
    train: str
    valid: str
    tests: dict[str, str]

    @property
    def prefixes(self) -> dict[str, str]:
        """Name of a set -> its prefix."""
        return {"train": self.train, "valid": self.valid, **self.tests}


@typed(frozen=True, config=_CHECKED)
class Cleaning:
    """Which training pairs are left out; see `corpus.clean`. Nothing is left out of the other sets.

    Fields:
        longest: most characters of a side.
        ratio: how many times longer, for the corpus, one side may be than the other.
        copies: leave out pairs whose sides are the same.
        repeated: leave out pairs that were there before.
    """

    longest: int = 1000
    ratio: int = 4
    copies: bool = True
    repeated: bool = True


@typed(frozen=True, config=_CHECKED)
class Budget:
    """A limit of time, and as much of the experiment as fits into it; see `settings.fit_budget`.

    Fields:
        time: such as 8h or 90m; empty: no limit.
        seeds: the first so many seeds; 0: all.
        updates: percent of each family's `max_updates`.
    """

    time: str = ""
    seeds: int = 0
    updates: int = 100

    def minutes(self) -> float:
        """The limit. Raises PlanError: it is not a time."""
        found = re.fullmatch(r"(\d+(?:\.\d+)?)([hm])", self.time)
        if not found or not float(found[1]):
            raise PlanError(f"budget: {self.time!r} is not a time such as 8h or 90m")
        return float(found[1]) * (60 if found[2] == "h" else 1)


@typed(frozen=True, config=_CHECKED)
class Text:
    """How raw text becomes pieces and trees: options of `fairseq-syntax preprocess --raw`; `joined`: dictionary."""

    source_tokenizer: str = ""
    target_tokenizer: str = ""
    lowercase: tuple[str, ...] = ()
    subword_type: str = ""
    subword_size: int = 8000
    joined: bool = True
    parser: str = "none"
    parser_model: str = ""
    parser_tagger: str = ""
    parser_language: str = ""
    parser_dir: str = ""
    parser_device: str = ""


@typed(frozen=True, config=_CHECKED)
class System:
    """A line of the table.

    Fields:
        name: in tables and names of files.
        family: by name.
        options: of fairseq-train, beyond the family's; $OUT is the output folder.
        trees: what it reads: one of TREES, or nothing.
        seeds: instead of the table's.
        paper: what its paper says it gains over the baseline, in BLEU, and where.
        control: a system that lacks its syntax alone, such as one with random trees; it is tested against that as well
            (default: the system of its name and `-linear`, if there is one).
    """

    name: str
    family: str
    options: str
    trees: str = ""
    seeds: tuple[int, ...] = ()
    paper: str = ""
    control: str = ""


@typed(frozen=True, config=_CHECKED)
class Plan:
    """An experiment. It begins with raw text ([corpus], [text]), or a script makes its data.

    Fields:
        name: of the corpus.
        path: of the file.
        prepare: script that makes the data, beside the file.
        default_trees: whose data directory systems that read no trees are trained on.
        hashed: files below the output folder that say what was trained on; globs.
        detokenize: tokenizer and language of translations in tokens whose references are raw text; nothing where
            those are in tokens as well, or the data have a recipe of the text.
        tokenize: sacrebleu's tokenizer, for BLEU.
        budget: a limit of time.
    """

    name: str
    path: Path
    seeds: tuple[int, ...]
    families: dict[str, Family]
    systems: dict[str, System]
    splits: dict[str, Split] = field(default_factory=dict)
    prepare: str = ""
    hashed: tuple[str, ...] = ()
    detokenize: dict[str, str] = field(default_factory=dict)
    tokenize: str = "none"
    default_trees: str = "gold"
    corpus: Corpus | None = None
    cleaning: Cleaning = Cleaning()
    text: Text = Text()
    budget: Budget = Budget()

    def runs(self) -> list[tuple[System, int]]:
        """All (system, seed), a seed of every system before the next."""
        seeds = sorted({seed for system in self.systems.values() for seed in self.seeds_of(system)})
        return [(system, seed) for seed in seeds for system in self.systems.values() if seed in self.seeds_of(system)]

    def perturbed(self) -> list[str]:
        """Kinds of perturbed trees that systems read."""
        return sorted({system.trees for system in self.systems.values()} & PERTURBED.keys())

    def hashed_for(self, system: System) -> list[str]:
        """Patterns of the files that a system is trained on; of raw text, not the perturbed trees of others."""
        others = set(PERTURBED) - {system.trees} if self.corpus else ()
        return [pattern for pattern in self.hashed if Path(pattern).parts[0] not in others]

    def runs_code(self) -> str:
        """What of the file runs code that is not fairseq's or this package's; empty if nothing does."""
        options = [text for family in self.families.values() for text in (family.train, family.generate)]
        options += [system.options for system in self.systems.values()]
        code = next((match[0] for text in options if (match := _CODE.search(text))), "")
        return f"prepare = {self.prepare!r}" if self.prepare else code and f"options with {code!r}"

    def seeds_of(self, system: System) -> tuple[int, ...]:
        return system.seeds or self.seeds

    def within_budget(self) -> "Plan":
        """The plan with the seeds and updates of its budget."""
        seeds, percent = self.budget.seeds or len(self.seeds), self.budget.updates
        families = {
            name: replace(family, max_updates=max(family.max_updates * percent // 100, 1))
            for name, family in self.families.items()
        }
        return replace(self, seeds=self.seeds[:seeds], families=families)


# other packages, programs, what fairseq would evaluate, look up or download
_CODE = re.compile(r"--(?:user-dir|post-save-script)\b|__|[\w\])]\s*\(|\$\{|://")
_NAME = re.compile(r"[^./\\][^/\\]*")
_PARTS = {"splits": Split, "families": Family, "systems": System}
_KINDS = {**_PARTS, "corpus": Corpus, "cleaning": Cleaning, "text": Text, "budget": Budget}


def _fault(error: ValidationError) -> str:
    """The first fault of a file: its place, what was found, and what is allowed there."""
    fault = error.errors()[0]
    *inside, last = map(str, fault["loc"])
    if fault["type"] == "unexpected_keyword_argument":
        known = ", ".join(sorted(each.name for each in fields(_KINDS[inside[0]] if inside else Plan)))
        return f"{'.'.join(inside)}: {last} is not a setting; choose from {known}".removeprefix(": ")
    found = "" if fault["type"] == "missing" else f" = {fault['input']!r}"
    return f"{'.'.join([*inside, last])}{found}: {fault['msg'][0].lower()}{fault['msg'][1:]}"


def _inherit(path: Path, families: dict) -> None:
    """Give every family with `like` the settings of that one, which is above it, that it does not set itself."""
    for name, values in families.items():
        like = str(values.pop("like", name)) if isinstance(values, dict) else name
        if not isinstance(families.get(like), dict) or "like" in families[like]:
            known = ", ".join(families)
            raise PlanError(f"{path}: families.{name}: like {like}; choose from {known}, above if it is like another")
        families[name] = {**families[like], **values}


def read_plan(path: Path, whole: bool = False) -> Plan:
    """Read a table.

    Args:
        path: of the file.
        whole: with all seeds and updates, not those of the budget.

    Raises:
        PlanError: it cannot be read, or says something that does not fit; the message names the place.
    """
    try:
        content = tomllib.loads(path.read_text(encoding="utf8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise PlanError(f"{path}: {error}") from None
    tables = {key: content.get(key) for key in _PARTS if isinstance(content.get(key), dict)}
    _inherit(path, tables.get("families", {}))
    for name, values in tables.get("systems", {}).items():
        if isinstance(values, dict):
            control = f"{name}-linear" if f"{name}-linear" in tables["systems"] else ""
            tables["systems"][name] = {"control": control, "name": name} | values
    try:
        plan = TypeAdapter(Plan).validate_json(json.dumps(content | {"path": str(path)}, default=str), strict=True)
    except ValidationError as error:
        raise PlanError(f"{path}: {_fault(error)}") from None
    plan = _of_raw_text(plan)
    for wrong, place, said in _faults(plan):
        if wrong:
            raise PlanError(f"{path}: {place}: {said}")
    return plan if whole else plan.within_budget()


def _of_raw_text(plan: Plan) -> Plan:
    """The plan with the places of data that are made of raw text; another plan as it is.

    Raises PlanError: neither raw text nor a script makes the data.
    """
    if bool(plan.corpus) == bool(plan.prepare):
        raise PlanError(f"{plan.path}: give [corpus], with raw text, or prepare, a script that makes the data")
    if plan.corpus is None:
        return plan
    source, target = plan.corpus.source, plan.corpus.target
    splits = {"valid": Split("valid", f"raw/valid.{target}")}
    for number, name in enumerate(plan.corpus.tests):
        subset = f"test{number or ''}"
        splits[name] = Split(subset, f"raw/{subset}.{target}", f"text/words/{subset}.{source}")
    kinds = plan.perturbed()
    parsed = [] if plan.text.parser == "none" else ["text/*.conllu.gz"]
    codes = [] if plan.text.subword_type == "none" else ["text/codes*"]
    hashed = ["raw/*", *codes, *parsed, *(f"{kind}/*.conllu.gz" for kind in kinds)]
    return replace(plan, splits=splits, hashed=tuple(hashed), default_trees="parser")


def _faults(plan: Plan) -> Iterator[tuple[object, str, str]]:
    """What may be wrong in a plan that is typed: whether it is, the place, and what is said of it."""
    trees, baselines = ", ".join(TREES), {family.baseline for family in plan.families.values()} - {""}
    # names of files and folders are made of these, and what is read lies in the output folder
    for kind, names in {"systems": plan.systems, "families": plan.families, "splits": plan.splits}.items():
        for name in names:
            yield not _NAME.fullmatch(name), f"{kind}.{name!r}", "give a name without / and \\ that begins with no dot"
    wrong = "/" in plan.name or plan.name in ("", ".", "..")
    yield wrong, f"name = {plan.name!r}", "give a name without /"
    inside = [path for split in plan.splits.values() for path in (split.reference, split.source, split.labels)]
    for path in (*inside, *plan.hashed, *(family.data for family in plan.families.values())):
        yield Path(path).is_absolute() or ".." in Path(path).parts, repr(path), "leads out of the output folder"
    for name, family in plan.families.items():
        where, base = f"families.{name}", family.baseline
        for options in (family.train, family.generate):
            yield (fault := _unquoted(options)), where, f"options: {fault}"
        braces = set("{}") & set(family.data.replace("{trees}", ""))
        yield braces, where, f"data = {family.data!r}: may have no braces but {{trees}}"
        yield family.max_updates < 1, where, f"max_updates = {family.max_updates}: give 1 or more"
        yield base and base not in plan.systems, where, f"baseline {base} is not among the systems"
    for name, system in plan.systems.items():
        where, control = f"systems.{name}", system.control
        known = ", ".join(plan.families)
        yield system.name != name, where, f"name = {system.name!r}: is that of the table; leave it out"
        yield system.family not in plan.families, where, f"family {system.family}; choose from {known}"
        wrong = system.trees not in ("", *TREES)
        yield wrong, where, f"trees = {system.trees!r}; choose from {trees}, or leave it out"
        yield (fault := _unquoted(system.options)), where, f"options: {fault}"
        yield control and control not in plan.systems, where, f"control {control} is not among the systems"
        yield control in baselines, where, f"control {control} is a baseline, which others are compared with anyway"
    wrong = plan.default_trees not in TREES
    yield wrong, "default_trees", f"default_trees = {plan.default_trees!r}; choose from {trees}"
    yield "valid" not in plan.splits, "splits", "splits.valid is missing; checkpoints are chosen on it"
    budget = plan.budget
    right = not budget.time or (budget.seeds >= 0 and 1 <= budget.updates <= 100 and budget.minutes())
    yield not right, "budget", "give seeds of 0 or more, and 1 to 100 percent of the updates"


def _unquoted(options: str) -> str:
    """What is wrong with the quotes of options, or nothing."""
    try:
        shlex.split(options)
    except ValueError as error:
        return str(error)
    return ""
