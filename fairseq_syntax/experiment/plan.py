"""The TOML file of an experiment: data, systems, training and scoring."""

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
from ..data.text.tokenizers import is_folder
from ..trees.text import quoted

NAME = "experiment.toml"
"""Name of the file in the folder of an experiment."""
# folder of the plug-in, and of the checkout, if it is in one
USER_DIR = Path(__file__).resolve().parents[1]
CHECKOUT = USER_DIR.parent
# linear: the head of each word is the previous word; ud: by a parser of Universal Dependencies
Trees = Literal["gold", "parser", "random", "linear", "ud"]
# kinds of trees that are made from the parser's -> `perturb --trees`
PERTURBED = {"linear": "right", "random": "random"}
_CHECKED = ConfigDict(extra="forbid")  # unknown keys are errors


def _inside(path: str) -> str:
    if Path(path).is_absolute() or ".." in Path(path).parts:
        raise ValueError("leads out of the output folder")
    return path


def _quoted(options: str) -> str:
    shlex.split(options)
    return options


# types of names and paths
Name = Annotated[str, Field(pattern=r"^[^./\\][^/\\]*$")]
Inside = Annotated[str, AfterValidator(_inside)]
Options = Annotated[str, AfterValidator(_quoted)]


class PlanError(ValueError):
    """The file of an experiment, its data or the results of earlier runs are wrong; the message is for the user."""


@typed(frozen=True, config=_CHECKED)
class Family:
    """Settings that the systems of a family share.

    Fields:
        train: options of fairseq-train.
        generate: options of fairseq-generate.
        max_updates: largest number of updates; {updates} in `train`.
        annealed: whether the learning rate is zero after that many, so that training is finished, not cut off.
        patience: number of validations without improvement after which training ends; 0 if `train` sets the end.
        data: data directory below the output folder; {trees} becomes the kind of trees.
        characters: whether translations are characters, to be joined before they are scored.
        baseline: name of the system against which the others are tested; empty for none.
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
        reference: reference text below the output folder, one sentence per line.
        source: source text likewise, for scores by length; empty for none.
        labels: file of labels, one per line, for scores by label; empty for none.
    """

    subset: str
    reference: Inside
    source: Inside = ""
    labels: Inside = ""


@typed(frozen=True, config=_CHECKED)
class CorpusSettings:
    """Raw parallel text: files PREFIX.SOURCE and PREFIX.TARGET, plain or .gz.

    Fields:
        source, target: language codes.
        train, valid: prefixes of the training and validation sets.
        tests: name of a test set -> prefix.
    """

    source: str
    target: str
    train: str
    valid: str
    tests: dict[str, str]

    @property
    def prefixes(self) -> dict[str, str]:
        """Name of each set -> prefix."""
        return {"train": self.train, "valid": self.valid, **self.tests}


@typed(frozen=True, config=_CHECKED)
class Cleaning:
    """Limits of training pairs, see `corpus.clean`; other sets are not cleaned.

    Fields:
        longest: largest number of characters of a side.
        ratio: largest ratio of the lengths of the sides, relative to that of the corpus.
    """

    longest: int = 1000
    ratio: int = 4


@typed(config=_CHECKED)
class TextSettings(ParserOptions):
    """Options of `fairseq-syntax preprocess --raw`; `joined` is --joined-dictionary."""

    source_tokenizer: str = ""
    target_tokenizer: str = ""
    lowercase: tuple[str, ...] = ()
    subword_type: str = ""
    subword_size: int = 8000
    joined: bool = True
    parser: str = "none"


@typed(frozen=True, config=_CHECKED)
class SystemSettings:
    """A system of an experiment.

    Fields:
        name: name in tables and files.
        family: name of its family.
        options: options of fairseq-train beside the family's; $OUT is the output folder.
        trees: kind of trees that it reads; None for no trees.
        seeds: its seeds; empty for those of the experiment.
        paper: gain over the baseline that its paper reports, in BLEU, and on which data.
        control: name of a system that only lacks the syntax, such as one with random trees, against which it is tested,
            too (default: NAME-linear, if there is such a system).
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
    """An experiment. Its data are made from raw text ([corpus], [text]), or by a script.

    Fields:
        name: name of the corpus.
        path: path of the file.
        prepare: script that makes the data, beside the file.
        default_trees: kind of trees of the data directory for systems that read no trees.
        hashed: globs of files below the output folder whose checksums identify the training data.
        detokenize: `tokenizer` and `language` of translations in tokens, if references are raw text; empty where
            references are in tokens as well, or the data have a recipe of the text.
        tokenize: sacrebleu's tokenizer, for BLEU.
    """

    name: Name
    path: Path
    seeds: tuple[int, ...]
    families: dict[Name, Family]
    systems: dict[Name, SystemSettings]
    splits: dict[Name, Split] = field(default_factory=dict)
    prepare: str = ""
    hashed: tuple[Inside, ...] = ()
    detokenize: dict[str, str] = field(default_factory=dict)
    tokenize: str = "none"
    default_trees: Trees = "gold"
    corpus: CorpusSettings | None = None
    cleaning: Cleaning = Cleaning()
    text: TextSettings = field(default_factory=TextSettings)

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

    def runs(self) -> list[tuple[SystemSettings, int]]:
        """All pairs of a system and a seed, sorted by seed."""
        runs = [(system, seed) for system in self.systems.values() for seed in system.seeds or self.seeds]
        return sorted(runs, key=lambda run: run[1])

    def perturbed(self) -> list[str]:
        """Kinds of perturbed trees that systems read."""
        return sorted({system.trees for system in self.systems.values()} & PERTURBED.keys())

    def runs_code(self) -> str:
        """The setting that runs code other than fairseq's and this package's; empty if there is none."""
        options = [text for family in self.families.values() for text in (family.train, family.generate)]
        options += [system.options for system in self.systems.values()]
        code = next((match[0] for text in options if (match := _CODE.search(text))), "")
        text = self.text
        pipelines = (f"{text.parser}:{text.parser_model}", text.source_tokenizer, text.target_tokenizer)
        folder = next((p for p in pipelines if p.startswith("spacy:") and is_folder(p.removeprefix("spacy:"))), "")
        code = f"options with {code!r}" if code else folder
        return f"prepare = {self.prepare!r}" if self.prepare else code

    def within(self, seeds: int, percent: int) -> "Plan":
        """The plan with only the first `seeds` seeds, 0 for all, and a percentage of the updates."""
        families = {
            name: replace(family, max_updates=max(family.max_updates * percent // 100, 1))
            for name, family in self.families.items()
        }
        return replace(self, seeds=self.seeds[: seeds or None], families=families)


# options that import packages, run programs, or that fairseq would evaluate, interpolate or download
_CODE = re.compile(r"--(?:user-dir|post-save-script)\b|__|[\w\])]\s*\(|\$\{|://")


def _inherit(path: Path, families: dict) -> None:
    """Copy into every family with `like` the settings of that family, above it, which it does not set itself."""
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
        value = "" if fault["type"] == "missing" else f" = {quoted(str(fault['input']))}"
        message = fault["msg"].removeprefix("Value error, ")
        raise PlanError(f"{path}: {place}{value}: {message}" if place else f"{path}: {message}") from None
    plan = _with_raw_text_paths(plan)
    if "valid" not in plan.splits:
        raise PlanError(f"{path}: splits.valid is missing; checkpoints are chosen on it")
    return plan


def _with_raw_text_paths(plan: Plan) -> Plan:
    """The plan with the paths of data that are made from raw text; a plan with a script is returned as it is.

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
    hashed = ["raw/[!.]*", *codes, *parsed, *(f"{kind}/*.conllu.gz" for kind in kinds)]
    return replace(plan, splits=splits, hashed=tuple(hashed), default_trees="parser")
