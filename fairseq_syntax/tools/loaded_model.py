"""Loading a trained model to look inside."""

from dataclasses import dataclass
from pathlib import Path

import torch
from fairseq import utils
from fairseq.data import data_utils
from fairseq.models import ARCH_MODEL_REGISTRY, BaseFairseqModel
from fairseq.tasks import FairseqTask

import fairseq_syntax  # noqa: F401  (registers the models)

from ..checkpoints import architecture_of, build, load_state
from ..data.arrays import read_manifest
from ..trees.subwords import SubwordType


class NothingToShow(ValueError):
    """A model has no weights of the kind that is asked for."""


@dataclass(frozen=True)
class Loaded:
    """A model in evaluation mode, its task, and where it came from."""

    task: FairseqTask
    model: BaseFairseqModel
    architecture: str
    path: str
    device: torch.device

    @property
    def name(self) -> str:
        """What messages and titles call the model."""
        return f"{Path(self.path).name} ({self.architecture})"

    def subword_type(self, given: str | None) -> str:
        """How the text of the data is cut: `given`, or else what the data directory says, or else subword_nmt."""
        if given:
            return given
        cfg = self.task.cfg
        manifest = read_manifest(utils.split_paths(cfg.data)[0], cfg.source_lang, cfg.target_lang) or {}
        return manifest.get("subword_type", str(SubwordType.subword_nmt))

    def load_split(self, subset: str):
        """A split of the data directory. Raises ValueError: there is no such split."""
        try:
            if subset not in self.task.datasets:
                self.task.load_dataset(subset)
        except FileNotFoundError as error:
            raise ValueError(
                f"--subset {subset}: {self.task.cfg.data} has no such split ({error}); give one that was preprocessed"
            ) from None
        return self.task.dataset(subset)

    def to_device(self, batch: dict) -> dict:
        """The tensors of a batch where the model is."""
        return utils.apply_to_sample(lambda tensor: tensor.to(self.device), batch)


def load(path: str, data: str, cpu: bool = False, **options) -> Loaded:
    """Load a model from a checkpoint, with the dictionaries in `data`; `cpu` leaves a GPU alone.

    Other options of the training are overridden. Raises ValueError: not a checkpoint, or not one of a model with these
    dictionaries; OSError: a file is missing.
    """
    state = load_state(path, data=data, **options)
    cfg = state["cfg"].task
    first = utils.split_paths(data)[0]
    if not (cfg.source_lang and cfg.target_lang) and Path(first).is_dir():
        # fairseq-train was not told the languages, and found them in the names of the splits
        if None in data_utils.infer_language_pair(first):
            raise ValueError(f"{data}: no split tells the languages of the model; give the data it was trained on")
    model, task = build(path, state)
    device = torch.device("cuda" if torch.cuda.is_available() and not cpu else "cpu")
    return Loaded(task, model.to(device), architecture_of(state), path, device)


def architectures(declared: str) -> str:
    """Names of the architectures whose models declare something, or that it lists; without those for tests."""
    names = set()
    for name, model in ARCH_MODEL_REGISTRY.items():
        found = getattr(model, declared, ())
        names.update(found if isinstance(found, tuple) else (name,))
    return ", ".join(sorted(name for name in names if not name.endswith("_tiny")))
