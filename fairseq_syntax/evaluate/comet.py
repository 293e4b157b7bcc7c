"""COMET (Rei et al., EMNLP 2020), computed by the package unbabel-comet."""

import importlib.metadata
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from .metrics import MeanMetric, Texts


class Comet(MeanMetric):
    """COMET with the first reference; the score of a corpus is the mean over its sentences.

    Models are trained on natural text, so scores of tokenised or lower-cased text are unreliable.

    Args:
        model: a checkpoint (`…/checkpoints/model.ckpt`), the folder above `checkpoints`, or the name of a model, which
            the package downloads if necessary.

    Raises ValueError: unbabel-comet is not installed, or the model cannot be loaded.
    """

    name = "COMET"

    def __init__(self, model: str):
        try:
            from comet import download_model, load_from_checkpoint
        except ImportError as error:
            raise ValueError(
                f"--comet {model}: COMET is computed by a package that is not there ({error}); install it: "
                "pip install 'unbabel-comet>=2'"
            ) from None
        path = Path(model, "checkpoints", "model.ckpt") if Path(model).is_dir() else Path(model)
        try:
            self._model = load_from_checkpoint(str(path) if path.is_file() else download_model(model))
        except Exception as error:  # the package raises KeyError, Exception and the errors of the download
            raise ValueError(f"--comet {model}: cannot be loaded: {' '.join(str(error).split())}") from None
        self._id = path.resolve().parent.parent.name if path.is_file() else model

    def statistics(self, hyps: Texts, refs: Sequence[Texts], sources: Texts | None = None) -> np.ndarray:
        if sources is None:
            raise ValueError("--comet: COMET reads the source, which is not known; give --source")
        if not hyps:
            return np.zeros((0, self.columns))
        from torch import cuda

        samples = [
            {"src": source, "mt": hyp, "ref": of_sentence[0]}
            for source, hyp, of_sentence in zip(sources, hyps, refs, strict=True)
        ]
        prediction = self._model.predict(samples, batch_size=16, gpus=int(cuda.is_available()), progress_bar=False)
        return self._as_statistics(prediction.scores)

    def signature(self, references: int = 1) -> str:
        try:
            version = importlib.metadata.version("unbabel-comet")
        except importlib.metadata.PackageNotFoundError:
            version = "unknown"
        return f"nrefs:1|model:{self._id}|version:{version}"
