"""Options that had other names once: checkpoints of that time load, and compute what they did."""

from argparse import Namespace

from .repair_registry import Replacement, repair

_GOT_PREFIX = {
    "parser": "max_words",
    "pascal": "parent_ignoring",
    "lisa": "gold_parses parse_penalty",
    "sa": "head_selection hard_heads root_scores unscaled_heads punctuation_never_heads",
    "sdatt": (
        "attention_size attention double_context double_context_state sdr sdr_lambda sdr_unit_size sdr_depthwise "
        "local_window local_softmax local_renorm flex_sigma flex_threshold"
    ),
    "lgp": (
        "label_teacher_forcing lr_rho lr_passes pass_clip_norms pos_data dep_data first_k pos_column strip_subtypes "
        "collapse_ranges lowercase mt_dict pos_batch_size dep_batch_size"
    ),
    "rnng": (
        "root_input attn_key attn_scale policy_grad lm_grad value_head max_open max_consecutive actions_per_symbol "
        "tree_output dedup forced_trees source_weight target_weight coverage_weight policy_weight entropy_weight "
        "action_xent terminal_reward nonterminal_reward reward_forced reward_discount gen_count baseline "
        "tree_baseline loo_samples value_weight cross_reward coverage_root valid_trees"
    ),
}
_RENAMED = {
    "syntax_parser": "parser",
    "syntax_conllu": "parser_model",
    "syntax_checkpoint": "parser_model",
    "stanza_language": "parser_language",
    "stanza_dir": "parser_dir",
    "stanza_tagger": "parser_tagger",
    "stanza_parser": "parser_model",
    "stanza_device": "parser_device",
    "unparsed_input": "parser_unparsed",
    "encoder_pascal_heads": "pascal_heads",
    "encoder_lisa_layer": "lisa_layer",
    "dep_bias_sigma": "dasa_sigma",
    "dep_bias_init": "dasa_init",
    "dep_bias_layers": "dasa_layers",
    "syntax_context": "sa_context",
    "syntax_heads": "sdatt_heads",
    "syntax_layers": "sdatt_layers",
    "decoder_kind": "sdatt_decoder",
    "lr_halve_after": "lgp_halve_after",
    "tree_wait": "rnng_wait",
    "tree_preset": "rnng_preset",
    "tree_reward_mode": "rnng_reward_mode",
}
RENAMED = _RENAMED | {name: f"{prefix}_{name}" for prefix, names in _GOT_PREFIX.items() for name in names.split()}
"""Old name -> present name."""


def rename_options(cfg) -> None:
    """Give options of our models, tasks, criterions and schedules in a checkpoint the names they have today."""
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
