"""Warning of a model trained with the wrong criterion."""

import logging
from typing import Optional

logger = logging.getLogger(__name__)


class TrainingSteps:
    """Mixin of tasks that warns if the criterion does not use trees and the model needs one that does."""

    _wanted_criterion: Optional[str] = None

    def build_model(self, cfg, from_checkpoint=False):
        """As in fairseq; a model may name the `criterion` that it needs."""
        model = super().build_model(cfg, from_checkpoint)
        self._wanted_criterion = None if from_checkpoint else getattr(model, "criterion", None)
        return model

    def build_criterion(self, cfg, from_checkpoint=False):
        """As in fairseq, with a warning if the model names another criterion."""
        wanted = self._wanted_criterion
        if wanted not in (None, cfg._name):
            logger.warning("--criterion %s learns nothing from the trees; give --criterion %s", cfg._name, wanted)
        return super().build_criterion(cfg, from_checkpoint)
