"""Trained models, from their checkpoints."""

from pathlib import Path

from fairseq import checkpoint_utils

from .registration import register


def load_state(path: str, **overrides) -> dict:
    """Load the content of a checkpoint of fairseq, with some options, such as `data`, replaced.

    Raises FileNotFoundError: no such file; ValueError: not a checkpoint.
    """
    register()
    if not Path(path).is_file():
        raise FileNotFoundError(f"{path}: no such checkpoint; give one file that fairseq-train wrote")
    return checkpoint_utils.load_checkpoint_to_cpu(str(path), overrides)


def architecture_of(state: dict) -> str:
    """Name of the architecture of a checkpoint."""
    options = state["cfg"].model
    return str(getattr(options, "arch", None) or getattr(options, "_name", None) or type(options).__name__)


def build(path: str, state: dict) -> tuple:
    """Build the model of a checkpoint, in evaluation mode, and its task; `path` is for messages.

    Raises ValueError: it fits neither its options nor the data.
    """
    (model,), _, task = checkpoint_utils.load_model_ensemble_and_task([str(path)], state=state)
    return model.eval(), task
