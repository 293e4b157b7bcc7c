"""Options as their dataclasses declare them: a number out of its range, or an unknown choice, is named in a message.

Presets of architectures give way to options, and an option of several verbs has one help text.
"""

import argparse
import math
from dataclasses import fields
from enum import EnumType
from types import SimpleNamespace
from typing import get_args, get_type_hints

import pytest
from fairseq.data import Dictionary
from fairseq.models import ARCH_CONFIG_REGISTRY, ARCH_MODEL_REGISTRY
from fairseq.models.transformer import TransformerModel
from fairseq.optim.fairseq_optimizer import FairseqOptimizer

import fairseq_syntax
from fairseq_syntax.cli.program import VERBS, verb_module
from fairseq_syntax.systems.latent_tree.reinforce import ReinforceTreeConfig, ReinforceTreeCriterion
from fairseq_syntax.systems.lgp.decayed_sgd import DecayedSGD, DecayedSGDConfig
from fairseq_syntax.systems.lgp.halve_on_drop import HalveOnDrop, HalveOnDropConfig
from fairseq_syntax.systems.parser.task import (
    DependencyParsingConfig,
    DependencyParsingTask,
    InverseEpoch,
    InverseEpochConfig,
)
from fairseq_syntax.task import SyntaxTranslationConfig, SyntaxTranslationTask
from fairseq_syntax.training.blackout import BlackOutConfig, BlackOutCriterion

fairseq_syntax.register()

TASK = SimpleNamespace(
    **dict.fromkeys(("source_dictionary", "target_dictionary"), Dictionary()), attach_syntax=None, builds_trees=True
)
OURS = {name: cls for name, cls in ARCH_MODEL_REGISTRY.items() if cls.__module__.startswith("fairseq_syntax.")}


def model(name):
    def build(given):
        args = argparse.Namespace(**given)
        ARCH_CONFIG_REGISTRY[name](args)
        return OURS[name].build_model(args, TASK)

    return build


def configured(config, make):
    """A component with one option, and what it takes from others."""

    def build(given):
        others = {"lr": [1.0], "fp16": False, "bf16": False, "seed": 1}
        known = {each.name for each in fields(config)}
        cfg = config(**{name: value for name, value in others.items() if name in known})
        for name, value in given.items():
            setattr(cfg, name, value)
        return make(cfg)

    return config, build


BUILDERS = {cls.options: model(name) for name, cls in OURS.items()} | dict(
    [
        configured(ReinforceTreeConfig, lambda cfg: ReinforceTreeCriterion(None, cfg)),
        configured(DependencyParsingConfig, DependencyParsingTask),
        configured(SyntaxTranslationConfig, lambda cfg: SyntaxTranslationTask(cfg, Dictionary(), Dictionary())),
        configured(DecayedSGDConfig, lambda cfg: DecayedSGD(cfg, [])),
        configured(HalveOnDropConfig, lambda cfg: HalveOnDrop(cfg, FairseqOptimizer(cfg))),
        configured(InverseEpochConfig, lambda cfg: InverseEpoch(cfg, FairseqOptimizer(cfg))),
        (BlackOutConfig, lambda given: BlackOutCriterion(TASK, True, **given)),
    ]
)


def wrong_values(config):
    """(option, value, what is said of it) of all that a dataclass declares."""
    types = get_type_hints(config)
    for each in fields(config):
        interval = each.metadata.get("range")
        if interval:
            low, high = map(float, interval[1:-1].split(","))
            whole = int in (types[each.name], *get_args(types[each.name]))
            values = [low if interval[0] == "(" else low - 1] if math.isfinite(low) else []
            values += [high if interval[-1] == ")" else high + 1] if math.isfinite(high) else []
            for value in values + [math.nan] * (not whole):
                yield each.name, int(value) if whole else value, "must be "
        elif any(isinstance(kind, EnumType) for kind in (types[each.name], *get_args(types[each.name]))):
            yield each.name, "no such", "choose from "


@pytest.mark.parametrize("config", BUILDERS, ids=lambda config: config.__name__)
def test_wrong_values_are_named(config):
    cases = list(wrong_values(config))
    for name, value, said in cases:
        if config is BlackOutConfig and said == "choose from ":
            continue  # of fairseq's parser alone
        with pytest.raises(ValueError) as caught:
            BUILDERS[config]({name: value})
        assert str(caught.value).startswith(f"--{name.replace('_', '-')} {value}: {said}"), name


def test_something_is_declared():
    assert len(BUILDERS) > 15 and sum(len(list(wrong_values(config))) for config in BUILDERS) > 120


@pytest.mark.parametrize("arch", [name for name, cls in OURS.items() if not issubclass(cls, TransformerModel)])
def test_presets_give_way_to_options(arch):
    preset, args = ARCH_CONFIG_REGISTRY[arch], argparse.Namespace()
    preset(args)
    given = dict.fromkeys(vars(args), 7)
    args = argparse.Namespace(**given)
    preset(args)
    assert vars(args) == given


# options that name what differs from verb to verb; all others mean the same everywhere
OF_THE_VERB = """--input --output --subword-type --trees --seed --source-lang --target-lang
--sentence --draw --format --source --system --by""".split()


def test_an_option_has_one_name_and_one_wording():
    wordings: dict[str, set[str]] = {}
    dests: dict[str, set[str]] = {}
    for verb in set(VERBS) - {"preprocess"}:  # most of its options are fairseq's
        for action in verb_module(verb).main.build_parser()._actions:
            for option in action.option_strings:
                wordings.setdefault(option, set()).add(action.help)
                dests.setdefault(option, set()).add(action.dest)
    assert {"--overwrite", "--path", "--cpu"} < wordings.keys()
    assert {option for option, texts in wordings.items() if len(texts) > 1} == {*OF_THE_VERB}
    assert not [option for option, names in dests.items() if len(names) > 1]
