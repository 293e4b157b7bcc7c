"""What positions follow: the attention of another system, given the references, or the clock.

    python examples/sdatt/positions.py DATA --reference global_att/checkpoint_last.pt sdatt/checkpoint_last.pt …

All systems read the reference translations word by word. Printed are, for each checkpoint:

error       mean distance in tokens between the position and where the attention of the reference system is strongest
clock       correlation of p/J, the position as a share of the source, with t/S
alignment   correlation of p/J with where that attention is strongest, as a share, that is left when t/S is given

A system that predicts no position, such as the reference system itself, looks where its attention is strongest. (In the
log of validation, error and alignment are beside the plain attention of the system itself.)
"""

import argparse
from pathlib import Path

import torch
from fairseq import checkpoint_utils
from fairseq.logging import metrics

import fairseq_syntax  # noqa: F401  registers tasks and models
from fairseq_syntax.systems.sdatt.position_metrics import log_correlations, progress


def load(path: str, data: str):
    """(model in eval mode, its task)."""
    if not Path(path).is_file():
        raise SystemExit(f"positions.py: {path}: no such checkpoint; train one with examples/recipe.sh train sdatt")
    (model,), _, task = checkpoint_utils.load_model_ensemble_and_task([path], arg_overrides={"data": data})
    return model.eval(), task


def strongest(extra, start):
    """(B, S) middle of the token, counted from the sentence's first, where attention (B, S, T) is strongest."""
    return extra["attn"][0].argmax(dim=2) - start + 0.5


@torch.no_grad()
def measure(path: str, reference, data: str, subset: str) -> dict[str, float]:
    """error, clock and alignment of a checkpoint."""
    model, task = load(path, data)
    task.load_dataset(subset)
    rows = []
    for sample in task.get_batch_iterator(task.dataset(subset), max_sentences=50).next_epoch_itr(shuffle=False):
        given = sample["net_input"]
        padding = given["src_tokens"].eq(task.source_dictionary.pad())
        start = padding.long().cumprod(dim=1).sum(dim=1, keepdim=True)
        length = (~padding).sum(dim=1, keepdim=True)
        of_target = sample["target"].ne(task.target_dictionary.pad())
        extra = model(**given)[1]
        position = extra["position"] if "position" in extra else strongest(extra, start)
        wanted = strongest(reference(**given)[1], start)
        values = [values[of_target] for values in (position / length, wanted / length, (position - wanted).abs())]
        rows.append(torch.stack([progress(of_target), *values]))
    time, share, alignment, away = torch.cat(rows, dim=1)
    # here, not above: models log what they think of their positions themselves
    with metrics.aggregate(new_root=True) as log:
        log_correlations(share, time, alignment)
    found = log.get_smoothed_values()
    return {
        "error": float(away.mean()),
        "clock": found["position_clock"],
        "alignment": found["position_alignment"],
    }


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", help="directory of binarized data")
    parser.add_argument("checkpoints", nargs="+", help="systems, of one of the recurrent architectures with positions")
    parser.add_argument("--reference", required=True, help="checkpoint of a trained global_att")
    parser.add_argument("--subset", default="valid", help="split of the data (default: valid)")
    args = parser.parse_args(arguments)
    reference, _ = load(args.reference, args.data)
    print("error  clock  alignment")
    for path in args.checkpoints:
        found = measure(path, reference, args.data, args.subset)
        print(f"{found['error']:5.2f} {found['clock']:6.3f} {found['alignment']:10.3f}  {path}")


if __name__ == "__main__":
    main()
