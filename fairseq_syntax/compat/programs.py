"""Repairs of loading and batching in fairseq's programs."""

import argparse
import ast
import collections
import os
import shlex
import typing
from collections.abc import Mapping, MutableMapping

from .checkpoint_files import check_architecture, check_state, no_checkpoint, open_checkpoint, options_of, reason
from .repair_registry import repair, replace


@repair("checkpoint-classes")
def allow_checkpoint_classes():
    """Let torch >= 2.6 load fairseq checkpoints with `weights_only=True`, fairseq's default through torch.

    The list has only the classes seen in checkpoints of all kinds: the options of models without a dataclass
    (`argparse.Namespace`), NumPy scalars and arrays in the meters of `--eval-bleu`, and, where a run of several
    processes resumes, the configuration that rank 0 broadcasts. Can go when fairseq registers its own classes.
    """
    import numpy as np
    import torch
    from fairseq.distributed.utils import _TensorPlaceholder
    from numpy._core.multiarray import _reconstruct, scalar
    from omegaconf import DictConfig, ListConfig
    from omegaconf.base import ContainerMetadata, Metadata
    from omegaconf.nodes import AnyNode

    torch.serialization.add_safe_globals(
        [
            argparse.Namespace,
            _reconstruct,
            scalar,
            np.ndarray,
            np.dtype,
            # the names that NumPy 1 wrote
            (_reconstruct, "numpy.core.multiarray._reconstruct"),
            (scalar, "numpy.core.multiarray.scalar"),
            *(type(np.dtype(name)) for name in ("bool", "int32", "int64", "float32", "float64")),
            dict,
            list,
            int,
            typing.Any,
            collections.defaultdict,
            DictConfig,
            ListConfig,
            ContainerMetadata,
            Metadata,
            AnyNode,
            _TensorPlaceholder,
        ]
    )


@repair("unknown-words")
def keep_unknown_words():
    """Let `--replace-unk` leave unknown words alone in the translation of an empty line.

    fairseq would take the end of the source, and write `<eos>`. Can go when it does not.
    """
    from fairseq import utils

    def replace_by_words(replace_unk, hypo_str, src_str, *rest, **more):
        return replace_unk(hypo_str, src_str, *rest, **more) if (src_str or "").split() else hypo_str

    replace(utils, "replace_unk", replace_by_words)


@repair("bad-checkpoints")
def refuse_bad_checkpoints():
    """Refuse checkpoints that run code, or cannot be used, in messages that name the file.

    The options of a checkpoint are checked before anything is built from them, because fairseq runs some as code; files
    that they would write or run are removed. fairseq's messages name no file, torch's explain how to load it unsafely,
    and a model with NaN parameters translates without a warning. Can go when fairseq evaluates literals only, and
    checks what it loads.
    """
    from fairseq import checkpoint_utils
    from fairseq.file_io import PathManager

    def load_checked(load, path, arg_overrides=None, *rest, **options):
        open_checkpoint(PathManager.get_local_path(path))
        try:
            state = load(path, arg_overrides, *rest, **options)
        except Exception as error:  # of options that are missing, for instance
            raise no_checkpoint(path, error) from None
        if state.get("cfg") is not None:
            # the same options, of old versions: fairseq would convert them again
            state["args"] = None
        check_state(state, path)
        check_architecture(state, path)
        _forget_places(options_of(state, "task"), arg_overrides or {})
        return state

    def load_by_name(load, filenames, arg_overrides=None, task=None, *rest, **options):
        try:
            return load(filenames, arg_overrides, task, *rest, **options)
        except (RuntimeError, AttributeError, KeyError, TypeError, AssertionError) as error:
            if isinstance(error, RuntimeError) and "state_dict" not in str(error):
                raise
            data = getattr(getattr(task, "cfg", None), "data", "the data")
            raise ValueError(
                f"{', '.join(map(str, filenames))}: parameters are not those of a model of its options and of the "
                f"dictionaries in {data} ({reason(error)}); give the data directory that the model was trained on, or "
                "a file that is not damaged"
            ) from error  # it may be a fault of a model of the user's own

    replace(checkpoint_utils, "load_checkpoint_to_cpu", load_checked)
    replace(checkpoint_utils, "load_model_ensemble_and_task", load_by_name)


def _forget_places(options: MutableMapping, overrides: Mapping) -> None:
    """Forget files that the options of a task would write or run, except those in the user's `overrides`."""
    places = {"parser_dir"}
    # spaCy runs what is in a folder of a pipeline; a package is installed by whoever runs this
    if options.get("parser") == "spacy" and os.path.exists(str(options.get("parser_model"))):
        places.add("parser_model")
    options.update(dict.fromkeys((places & options.keys()) - overrides.keys()))


@repair("data-as-code")
def read_data():
    """Keep data from being run: names of FASTA files by a shell, lines of a manifest of speech units by `eval`.

    Also keep the files of an archive that `from_pretrained` unpacks in one folder. Can go when fairseq does.
    """
    import tarfile

    from fairseq import file_utils
    from fairseq.data import codedataset
    from fairseq.data.fasta_dataset import FastaDataset

    # this name hides the builtin
    codedataset.eval = ast.literal_eval

    def exists(exists_fasta, path):
        return shlex.quote(path) == path and exists_fasta(path)

    def unpack(load, archive_file):
        try:
            return load(archive_file)
        except tarfile.TarError as error:
            raise ValueError(f"{archive_file}: neither a folder nor an archive to unpack ({reason(error)})") from None

    # the default of Python 3.14
    tarfile.TarFile.extraction_filter = staticmethod(tarfile.data_filter)
    replace(FastaDataset, "exists", exists)
    replace(file_utils, "load_archive_file", unpack)


def default_task(task_class: type, names: tuple = ("translation", None)) -> None:
    """Register `task_class`, a superset of fairseq's, under `names` in fairseq's task registry.

    - "translation": fairseq-generate and -interactive build the task from their command line, before they open the
      checkpoint, and default to this name; a plug-in is never asked.
    - None: fairseq-validate without `--task` looks up `TASK_REGISTRY[None]` and dies of KeyError. Without a name no
      options of a task are sent to hydra: fairseq-validate takes the checkpoint's.

    Can go when fairseq takes the task's name from the checkpoint.
    """
    from fairseq.tasks import TASK_DATACLASS_REGISTRY, TASK_REGISTRY
    from hydra.core.config_store import ConfigStore

    dataclass = next(TASK_DATACLASS_REGISTRY[name] for name, known in TASK_REGISTRY.items() if known is task_class)
    for name in names:
        TASK_REGISTRY[name] = task_class
    for name in filter(None, names):
        TASK_DATACLASS_REGISTRY[name] = dataclass
        # hydra checks options against its own store, which register_task filled
        node = dataclass()
        node._name = name
        ConfigStore.instance().store(name=name, group="task", node=node, provider="fairseq")


def batches_without_loss(batches: list, indices) -> list:
    """Append a batch of the last `indices` that fairseq's `batches` omit.

    `fairseq.data.data_utils.batch_by_size` throws its last batch away when its size is not a multiple of
    `--required-batch-size-multiple` (8 unless changed): of 203 sentences, 200 were translated and scored. Can go
    when fairseq keeps that batch.
    """
    covered = sum(len(batch) for batch in batches)
    return batches if covered == len(indices) else [*batches, indices[covered:]]
