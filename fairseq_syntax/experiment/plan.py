"""An experiment's file, read from TOML: what is trained on what, for how long, how it is scored."""

import json
import re
import shlex
import tomllib
from dataclasses import field, replace
from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, ConfigDict, Field, PositiveInt, TypeAdapter, ValidationError, model_validator
from pydantic.dataclasses import dataclass as typed

from ..data.parsers import ParserOptions
from ..trees.text import quoted

NAME = "experiment.toml"
"""The file in the folder of an experiment."""
# the plug-in, and the checkout that it may be in
USER_DIR = Path(__file__).resolve().parents[1]
CHECKOUT = USER_DIR.parent
# linear: the head of each word is the one before it; ud: of a parser of Universal Dependencies
Trees = Literal["gold", "parser", "random", "linear", "ud"]
# those that are made of the parser's: kind -> `perturb --trees`
PERTURBED = {"linear": "right", "random": "random"}
_CHECKED = ConfigDict(extra="forbid")  # what is not a field is refused


def _inside(path: str) -> str:
    if Path(path).is_absolute() or ".." in Path(path).parts:
        raise ValueError("leads out of the output folder")
    return path


def _quoted(options: str) -> str:
    shlex.split(options)
    return options


# of files and folders
Name = Annotated[str, Field(pattern=r"^[^./\\][^/\\]*$")]
Inside = Annotated[str, AfterValidator(_inside)]
Options = Annotated[str, AfterValidator(_quoted)]


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

    train: Options
    generate: Options
    max_updates: PositiveInt
    annealed: bool = False
    patience: int = 0
    data: Inside = "data-bin-{trees}"
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
    reference: Inside
    source: Inside = ""
    labels: Inside = ""


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
    """

    longest: int = 1000
    ratio: int = 4


@typed(config=_CHECKED)
class Text(ParserOptions):
    """How raw text becomes pieces and trees: options of `fairseq-syntax preprocess --raw`; `joined`: dictionary."""

    source_tokenizer: str = ""
    target_tokenizer: str = ""
    lowercase: tuple[str, ...] = ()
    subword_type: str = ""
    subword_size: int = 8000
    joined: bool = True
    parser: str = "none"


@typed(frozen=True, config=_CHECKED)
class System:
    """A line of the table.

    Fields:
        name: in tables and names of files.
        family: by name.
        options: of fairseq-train, beyond the family's; $OUT is the output folder.
        trees: what it reads: some trees, or nothing.
        seeds: instead of the table's.
        paper: what its paper says it gains over the baseline, in BLEU, and where.
        control: a system that lacks its syntax alone, such as one with random trees; it is tested against that as well
            (default: the system of its name and `-linear`, if there is one).
    """

    name: str
    family: str
    options: Options
    trees: Trees | None = None
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
    """

    name: Name
    path: Path
    seeds: tuple[int, ...]
    families: dict[Name, Family]
    systems: dict[Name, System]
    splits: dict[Name, Split] = field(default_factory=dict)
    prepare: str = ""
    hashed: tuple[Inside, ...] = ()
    detokenize: dict[str, str] = field(default_factory=dict)
    tokenize: str = "none"
    default_trees: Trees = "gold"
    corpus: Corpus | None = None
    cleaning: Cleaning = Cleaning()
    text: Text = field(default_factory=Text)

    @model_validator(mode="after")
    def _names_fit(self) -> "Plan":
        baselines = {family.baseline for family in self.families.values()} - {""}
        for name in baselines - self.systems.keys():
            raise ValueError(f"baseline {name} is not among the systems")
        for name, system in self.systems.items():
            if system.family not in self.families:
                raise ValueError(f"systems.{name}: family {system.family}; choose from {', '.join(self.families)}")
            if system.control and system.control not in self.systems.keys() - baselines:
                raise ValueError(f"systems.{name}: control {system.control} is a baseline, or not among the systems")
        return self

    def runs(self) -> list[tuple[System, int]]:
        """All (system, seed), a seed of every system before the next."""
        runs = [(system, seed) for system in self.systems.values() for seed in system.seeds or self.seeds]
        return sorted(runs, key=lambda run: run[1])

    def perturbed(self) -> list[str]:
        """Kinds of perturbed trees that systems read."""
        return sorted({system.trees for system in self.systems.values()} & PERTURBED.keys())

    def runs_code(self) -> str:
        """What of the file runs code that is not fairseq's or this package's; empty if nothing does."""
        options = [text for family in self.families.values() for text in (family.train, family.generate)]
        options += [system.options for system in self.systems.values()]
        code = next((match[0] for text in options if (match := _CODE.search(text))), "")
        return f"prepare = {self.prepare!r}" if self.prepare else code and f"options with {code!r}"

    def within(self, seeds: int, percent: int) -> "Plan":
        """The plan with the first so many seeds, 0 for all, and so many percent of the updates."""
        families = {
            name: replace(family, max_updates=max(family.max_updates * percent // 100, 1))
            for name, family in self.families.items()
        }
        return replace(self, seeds=self.seeds[: seeds or None], families=families)


# other packages, programs, what fairseq would evaluate, look up or download
_CODE = re.compile(r"--(?:user-dir|post-save-script)\b|__|[\w\])]\s*\(|\$\{|://")


def _inherit(path: Path, families: dict) -> None:
    """Give every family with `like` the settings of that one, which is above it, that it does not set itself."""
    for name, values in families.items():
        like = str(values.pop("like", name)) if isinstance(values, dict) else name
        if not isinstance(families.get(like), dict) or "like" in families[like]:
            known = ", ".join(families)
            raise PlanError(f"{path}: families.{name}: like {like}; choose from {known}, above if it is like another")
        families[name] = {**families[like], **values}


def read_plan(path: Path) -> Plan:
    """Read an experiment's file. Raises PlanError: it cannot be read, or something in it does not fit."""
    try:
        content = tomllib.loads(path.read_text(encoding="utf8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise PlanError(f"{path}: {error}") from None
    families, systems = (content.get(key) for key in ("families", "systems"))
    _inherit(path, families if isinstance(families, dict) else {})
    for name, values in systems.items() if isinstance(systems, dict) else ():
        if isinstance(values, dict):
            control = f"{name}-linear" if f"{name}-linear" in systems else ""
            systems[name] = {"control": control} | values | {"name": name}
    try:
        plan = TypeAdapter(Plan).validate_json(json.dumps(content | {"path": str(path)}, default=str), strict=True)
    except ValidationError as error:
        fault = error.errors()[0]
        place = ".".join(map(str, fault["loc"]))
        found = "" if fault["type"] == "missing" else f" = {quoted(str(fault['input']))}"
        said = fault["msg"].removeprefix("Value error, ")
        raise PlanError(f"{path}: {place}{found}: {said}" if place else f"{path}: {said}") from None
    plan = _of_raw_text(plan)
    if "valid" not in plan.splits:
        raise PlanError(f"{path}: splits.valid is missing; checkpoints are chosen on it")
    return plan


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
