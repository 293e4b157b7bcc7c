"""The list of places where fairseq runs what it is given is whole: an updated fairseq may have others."""

import ast
from pathlib import Path

import fairseq
import fairseq_cli
from fairseq.registry import REGISTRIES

from fairseq_syntax.compat.checkpoint_options import _NAMES, EVALUATED

EVALUATE = {"eval_str_list", "eval_str_dict", "eval_bool"}
# however it is imported
LAST = EVALUATE | {
    *("import_module", "import_user_module", "instantiate", "get_class", "get_method", "run_path", "run_module"),
    *("system", "popen", "Popen", "check_output", "check_call", "extractall", "LoadLibrary"),
    *("register_resolver", "register_new_resolver"),
}
# as it stands
WHOLE = {
    *("eval", "exec", "compile", "__import__", "globals", "subprocess.call", "subprocess.run"),
    *("pickle.load", "pickle.loads", "torch.load", "torch.hub.load", "np.load"),
    *("yaml.load", "yaml.safe_load", "yaml.unsafe_load"),
}
# file of fairseq -> options that it evaluates as Python, if they are strings
PLACES = {
    "criterions/ctc.py": "wer_args",
    "data/audio/raw_audio_dataset.py": "feature_encoder_spec",
    "data/multilingual/multilingual_data_manager.py": "left_pad_source left_pad_target",
    "distributed/utils.py": "pipeline_balance pipeline_devices pipeline_encoder_devices pipeline_decoder_devices",
    "model_parallel/models/pipeline_parallel_transformer/layers.py": "adaptive_softmax_cutoff",
    "model_parallel/models/pipeline_parallel_transformer/model.py": (
        "pipeline_balance pipeline_devices pipeline_encoder_balance pipeline_encoder_devices pipeline_decoder_balance "
        "pipeline_decoder_devices"
    ),
    "models/fconv.py": "encoder_layers decoder_layers decoder_attention",
    "models/fconv_lm.py": "decoder_layers decoder_attention adaptive_softmax_cutoff",
    "models/fconv_self_att.py": (
        "pretrained encoder_layers encoder_attention decoder_layers decoder_attention self_attention project_input "
        "gated_attention downsample"
    ),
    "models/hubert/hubert.py": "conv_feature_layers",
    "models/lightconv.py": "adaptive_softmax_cutoff",
    "models/lightconv_lm.py": "character_filters adaptive_input_cutoff",
    "models/lstm.py": "decoder_attention adaptive_softmax_cutoff",
    "models/lstm_lm.py": "adaptive_softmax_cutoff",
    "models/speech_to_text/s2t_wav_transformer.py": "conv_feature_layers",
    "models/transformer/transformer_decoder.py": "adaptive_softmax_cutoff",
    "models/transformer_lm.py": "character_filters adaptive_input_cutoff",
    "models/wav2vec/wav2vec.py": "conv_feature_layers conv_aggregator_layers",
    "models/wav2vec/wav2vec2.py": "conv_feature_layers",
    "modules/multihead_attention.py": "xformers_att_config",
    "optim/adafactor.py": "adafactor_eps",
    "optim/adam.py": "adam_betas",
    "optim/adamax.py": "adamax_betas",
    "optim/cpu_adam.py": "adam_betas",
    "optim/fused_lamb.py": "lamb_betas",
    "tasks/multilingual_translation.py": "left_pad_source left_pad_target",
    "tasks/online_backtranslation.py": "left_pad_source left_pad_target",
    "fairseq_cli/eval_lm.py": "model_overrides",
    "fairseq_cli/validate.py": "model_overrides",
}
HARMLESS = {
    # what is evaluated or imported is fairseq's own, or comes from whoever types the command
    "utils.py eval": "the functions of which the callers are listed above",
    "dataclass/utils.py eval_str_list": "another function of this name, for literals",
    "utils.py importlib.import_module": "--user-dir, of the command line alone: see the next five",
    **dict.fromkeys(
        [f"{name}.py utils.import_user_module" for name in ("hub_utils", "options", "fairseq_cli/preprocess")]
        + [f"fairseq_cli/{name}.py utils.import_user_module" for name in ("eval_lm", "generate", "hydra_validate")]
        + [f"fairseq_cli/{name}.py utils.import_user_module" for name in ("interactive", "train", "validate")],
        "--user-dir of the command line, or of a call of from_pretrained; never that of a checkpoint",
    ),
    **dict.fromkeys(
        [
            f"{folder}/__init__.py importlib.import_module"
            for folder in (
                *("criterions", "data/audio", "data/encoders", "model_parallel/criterions", "model_parallel/models"),
                *("models", "models/ema", "models/huggingface", "optim", "optim/lr_scheduler", "scoring", "tasks"),
            )
        ],
        "the files of that folder of fairseq, or of --user-dir",
    ),
    "models/__init__.py globals": "as above",
    "tasks/__init__.py globals": "as above",
    "modules/quantization/scalar/ops.py globals": "a name that is computed from a number of bits",
    "optim/fused_adam.py importlib.import_module": "a fixed name",
    "scoring/bleu.py ctypes.cdll.LoadLibrary": "a library of fairseq's",
    "models/speech_to_text/hub_interface.py torch.hub.load": "a call of its own, get_prediction with speech",
    # by name, but out of a closed set
    "logging/meters.py globals": "a name of that file, called without arguments: a meter",
    **dict.fromkeys(
        [f"tasks/{name}.py getattr" for name in ("audio_classification", "audio_finetuning", "audio_pretraining")]
        + ["tasks/nlu_finetuning.py getattr"],
        "a member of an enum",
    ),
    "models/text_to_speech/vocoder.py getattr": "a function of torch that ends in _window",
    # programs
    "data/fasta_dataset.py subprocess.check_output": "the repair `data-as-code` lets no shell read a name",
    "data/plasma_utils.py subprocess.Popen": "a fixed program, without a shell",
    "distributed/utils.py subprocess.check_output": "a fixed program, without a shell; environment variables of Slurm",
    "tasks/audio_pretraining.py subprocess.call": "post_save_script, which is refused below",
    # data
    "data/codedataset.py eval": "lines of a manifest; the repair `data-as-code` reads them as literals",
    "data/audio/data_cfg.py yaml.load": "YAML that makes no objects (FullLoader)",
    "quantization_utils.py yaml.safe_load": "YAML that makes no objects",
    "distributed/utils.py pickle.loads": "what the processes of one training send each other",
    "distributed/utils.py torch.load": "what the processes of one training send each other; weights_only",
    "file_utils.py archive.extractall": "the repair `data-as-code` keeps an archive's files in its folder",
    **dict.fromkeys(
        [
            *("data/audio/audio_utils.py np.load", "data/audio/feature_transforms/global_cmvn.py np.load"),
            *("data/codedataset.py np.load", "data/fasta_dataset.py np.load", "speech_generator.py np.load"),
            "tasks/text_to_speech.py np.load",
        ],
        "NumPy's allow_pickle is False unless it is asked for",
    ),
    **dict.fromkeys(
        [
            *("checkpoint_utils.py torch.load", "data/codedataset.py torch.load"),
            *("models/speech_to_text/xm_transformer.py torch.load", "models/text_to_speech/vocoder.py torch.load"),
            "modules/quantization/pq/em.py torch.load",
        ],
        "weights_only, by default; options are read in load_checkpoint_to_cpu alone, which is repaired",
    ),
}
"""File of fairseq and what it calls there -> why no file of a stranger's makes it run anything."""


def _typed(keyword: ast.keyword) -> list[ast.AST]:
    return list(ast.walk(keyword.value)) if keyword.arg == "type" else []


def calls():
    """(file, what is called, call, names that the file imports) of everything that may run what it is given."""
    for package, prefix in ((fairseq, ""), (fairseq_cli, "fairseq_cli/")):
        folder = Path(package.__file__).parent
        for path in sorted(folder.rglob("*.py")):
            file = path.relative_to(folder)
            if file.parts[0] == "examples":
                continue  # what --user-dir names
            tree = ast.parse(path.read_text(encoding="utf-8"))
            imports = [node for node in ast.walk(tree) if isinstance(node, (ast.Import, ast.ImportFrom))]
            names = {(alias.asname or alias.name).split(".")[0] for node in imports for alias in node.names}
            names |= {node.name for node in ast.walk(tree) if isinstance(node, ast.ClassDef)}
            # types of arguments, of the command line
            typed = [word for node in ast.walk(tree) if isinstance(node, ast.keyword) for word in _typed(node)]
            for node in ast.walk(tree):
                if isinstance(node, ast.Call) and node not in typed:
                    called = ast.unparse(node.func)
                    # an attribute of a module or a class, by a name that is computed
                    by_name = called == "getattr" and not isinstance(node.args[1], ast.Constant)
                    listed = called in WHOLE or called.split(".")[-1] in LAST
                    if listed or (by_name and ast.unparse(node.args[0]) in names):
                        yield f"{prefix}{file}", called, node


def option_of(call: ast.Call) -> str | None:
    """The option that a call evaluates, as far as it can be told."""
    given = call.args[0]
    if isinstance(given, ast.Call) and ast.unparse(given.func) == "getattr":
        return given.args[1].value
    return getattr(given, "attr", getattr(given, "id", None))


def places():
    """Options that fairseq evaluates, by file; and the files and calls of everything else that may run something."""
    evaluated, others = {}, set()
    for file, called, call in calls():
        # the functions that all others call are in utils.py
        if (called == "eval" or called.split(".")[-1] in EVALUATE) and f"{file} {called}" not in HARMLESS:
            evaluated.setdefault(file, set()).add(option_of(call))
        else:
            others.add(f"{file} {called}")
    return evaluated, others


def test_all_places_are_listed():
    evaluated, others = places()
    assert evaluated == {file: set(options.split()) for file, options in PLACES.items()}
    assert set().union(*evaluated.values()) == EVALUATED
    assert others == HARMLESS.keys()


def test_every_option_that_names_something_registered_is_known():
    assert REGISTRIES.keys() <= set(_NAMES)
