"""matplotlib without a screen, and pictures as files."""

import logging
from pathlib import Path

# fairseq shows the messages of everybody, down to where matplotlib looks for fonts
logging.getLogger("matplotlib").setLevel(logging.WARNING)

import matplotlib  # noqa: E402

matplotlib.use("Agg")

import matplotlib.pyplot as plt  # noqa: E402


def save_figure(figure, path: str | Path) -> None:
    """Save under a temporary name, then rename; the format follows the suffix (.png, .svg, .pdf)."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f".{path.stem}.partial{path.suffix}")
    figure.savefig(partial, bbox_inches="tight", dpi=150)
    plt.close(figure)
    partial.replace(path)
