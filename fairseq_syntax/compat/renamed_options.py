"""Options that had other names once: checkpoints of that time load, and compute what they did."""

from argparse import Namespace

from .repair_registry import Replacement, repair

RENAMED = {
    # what parses raw text
    "syntax_parser": "parser",
    "syntax_conllu": "parser_model",
    "syntax_checkpoint": "parser_model",
    "stanza_language": "parser_language",
    "stanza_dir": "parser_dir",
    "stanza_tagger": "parser_tagger",
    "stanza_parser": "parser_model",
    "stanza_device": "parser_device",
    "unparsed_input": "parser_unparsed",
    "max_words": "parser_max_words",
    # PASCAL
    "encoder_pascal_heads": "pascal_heads",
    "parent_ignoring": "pascal_parent_ignoring",
    # LISA
    "gold_parses": "lisa_gold_parses",
    "encoder_lisa_layer": "lisa_layer",
    "parse_penalty": "lisa_parse_penalty",
    # dasa_transformer
    "dep_bias_sigma": "dasa_sigma",
    "dep_bias_init": "dasa_init",
    "dep_bias_layers": "dasa_layers",
    # SA-NMT
    "head_selection": "sa_head_selection",
    "hard_heads": "sa_hard_heads",
    "root_scores": "sa_root_scores",
    "unscaled_heads": "sa_unscaled_heads",
    "punctuation_never_heads": "sa_punctuation_never_heads",
    "syntax_context": "sa_context",
    # SDAtt, sdatt_transformer
    "syntax_heads": "sdatt_heads",
    "syntax_layers": "sdatt_layers",
    "attention_size": "sdatt_attention_size",
    "attention": "sdatt_attention",
    "double_context": "sdatt_double_context",
    "double_context_state": "sdatt_double_context_state",
    "sdr": "sdatt_sdr",
    "sdr_lambda": "sdatt_sdr_lambda",
    "sdr_unit_size": "sdatt_sdr_unit_size",
    "sdr_depthwise": "sdatt_sdr_depthwise",
    "local_window": "sdatt_local_window",
    "local_softmax": "sdatt_local_softmax",
    "local_renorm": "sdatt_local_renorm",
    "flex_sigma": "sdatt_flex_sigma",
    "flex_threshold": "sdatt_flex_threshold",
    "decoder_kind": "sdatt_decoder",
    # LGP and its parser
    "label_teacher_forcing": "lgp_label_teacher_forcing",
    "lr_rho": "lgp_lr_rho",
    "lr_passes": "lgp_lr_passes",
    "pass_clip_norms": "lgp_pass_clip_norms",
    "pos_data": "lgp_pos_data",
    "dep_data": "lgp_dep_data",
    "first_k": "lgp_first_k",
    "pos_column": "lgp_pos_column",
    "strip_subtypes": "lgp_strip_subtypes",
    "collapse_ranges": "lgp_collapse_ranges",
    "lowercase": "lgp_lowercase",
    "mt_dict": "lgp_mt_dict",
    "pos_batch_size": "lgp_pos_batch_size",
    "dep_batch_size": "lgp_dep_batch_size",
    "lr_halve_after": "lgp_halve_after",
    # latent-tree RNNG
    "root_input": "rnng_root_input",
    "attn_key": "rnng_attn_key",
    "attn_scale": "rnng_attn_scale",
    "policy_grad": "rnng_policy_grad",
    "lm_grad": "rnng_lm_grad",
    "value_head": "rnng_value_head",
    "max_open": "rnng_max_open",
    "max_consecutive": "rnng_max_consecutive",
    "actions_per_symbol": "rnng_actions_per_symbol",
    "tree_output": "rnng_tree_output",
    "dedup": "rnng_dedup",
    "forced_trees": "rnng_forced_trees",
    "source_weight": "rnng_source_weight",
    "target_weight": "rnng_target_weight",
    "coverage_weight": "rnng_coverage_weight",
    "policy_weight": "rnng_policy_weight",
    "entropy_weight": "rnng_entropy_weight",
    "action_xent": "rnng_action_xent",
    "terminal_reward": "rnng_terminal_reward",
    "nonterminal_reward": "rnng_nonterminal_reward",
    "reward_forced": "rnng_reward_forced",
    "reward_discount": "rnng_reward_discount",
    "gen_count": "rnng_gen_count",
    "baseline": "rnng_baseline",
    "tree_baseline": "rnng_tree_baseline",
    "loo_samples": "rnng_loo_samples",
    "value_weight": "rnng_value_weight",
    "cross_reward": "rnng_cross_reward",
    "coverage_root": "rnng_coverage_root",
    "valid_trees": "rnng_valid_trees",
    "tree_wait": "rnng_wait",
    "tree_preset": "rnng_preset",
    "tree_reward_mode": "rnng_reward_mode",
}
"""Old name -> present name."""


def rename_options(cfg) -> None:
    """Give options of our models, tasks, criterions and schedules the names they have today.

    Args:
        cfg: of a checkpoint: group -> options, a mapping or, of models that fairseq-train made, a namespace.
    """
    for group in cfg:
        options = cfg[group]
        options = vars(options) if isinstance(options, Namespace) else options
        if not hasattr(options, "keys") or not _is_ours(group, options):
            continue
        # a file named the parser once
        for file, parser in (("syntax_checkpoint", "checkpoint"), ("syntax_conllu", "conllu")):
            if options.get(file):
                options["syntax_parser"] = parser
        for old, new in RENAMED.items():
            if old in options:
                value = options.pop(old)
                # of several that are one today, that which was given
                options[new] = value if options.get(new) is None else options[new]


def _is_ours(group: str, options) -> bool:
    """Whether what a group of options is of is registered by this package: names such as `attention` are not rare."""
    from fairseq.models import ARCH_MODEL_REGISTRY, MODEL_REGISTRY
    from fairseq.registry import REGISTRIES
    from fairseq.tasks import TASK_REGISTRY

    known = {"model": {**MODEL_REGISTRY, **ARCH_MODEL_REGISTRY}, "task": TASK_REGISTRY}
    known |= {name: parts["registry"] for name, parts in REGISTRIES.items()}
    owner = known.get(group, {}).get(options.get("arch") or options.get("_name"))
    return getattr(owner, "__module__", "").startswith(f"{__name__.partition('.')[0]}.")


@repair("renamed-options")
def load_renamed_options():
    """Let checkpoints load that were trained when options had other names.

    Can go when nobody has such checkpoints any more.
    """
    from fairseq import checkpoint_utils
    from fairseq.dataclass.utils import overwrite_args_by_name
    from omegaconf import DictConfig, open_dict

    def load_renamed(load, path, arg_overrides=None, *rest, **options):
        state = load(path, None, *rest, **options)
        if isinstance(state.get("cfg"), DictConfig):
            with open_dict(state["cfg"]):
                rename_options(state["cfg"])
            # not before: they have the present names
            overwrite_args_by_name(state["cfg"], arg_overrides or {})
        return state

    return [
        Replacement(checkpoint_utils, "load_checkpoint_to_cpu", "path arg_overrides load_on_all_ranks", load_renamed)
    ]
