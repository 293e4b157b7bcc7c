"""Pictures of attention over a sentence, with its tree."""

from pathlib import Path

import matplotlib

matplotlib.use("Agg")  # no screen

import matplotlib.pyplot as plt
import numpy as np


def save_figure(figure, path: str | Path) -> None:
    """Save under a temporary name, then rename; the format follows the suffix (.png, .svg, .pdf)."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f".{path.stem}.partial{path.suffix}")
    figure.savefig(partial, bbox_inches="tight", dpi=150)
    plt.close(figure)
    partial.replace(path)


def draw_attention(weights: np.ndarray, tokens: list[str], parents: np.ndarray | None, title: str):
    """Heat maps of attention heads, the parent of every token framed.

    Args:
        weights: (h, T, T), [head, attending token, attended token], rows sum to one.
        tokens: T labels.
        parents: (T,) positions of the parents, may be fractional; NaN for none. None leaves the frames out.
        title: above the picture.

    Returns:
        A matplotlib figure.
    """
    heads, length, _ = weights.shape
    side = max(3.0, 0.28 * length)  # labels stay readable at 40 tokens
    figure, axes = plt.subplots(1, heads, figsize=(side * heads + 1, side + 1), squeeze=False, layout="constrained")
    for h, axis in enumerate(axes[0]):
        image = axis.imshow(weights[h], cmap="Blues", vmin=0, vmax=1)
        axis.set_xticks(range(length), tokens, rotation=90, fontsize=8)
        axis.set_yticks(range(length), tokens if h == 0 else [], fontsize=8)
        axis.set_xlabel(f"head {h + 1} attends to")
        if parents is not None:
            for t, p in enumerate(parents):
                if np.isfinite(p):
                    axis.add_patch(plt.Rectangle((p - 0.5, t - 0.5), 1, 1, fill=False, edgecolor="tab:red"))
    figure.colorbar(image, ax=axes[0].tolist(), shrink=0.7, label="attention weight")
    figure.suptitle(title if parents is None else f"{title} (red: syntactic parent)")
    return figure
