"""Make a small model of a checkpoint, to be bundled with the package.

    python examples/experiments/publish.py CHECKPOINT --data DATA_BIN --name agreement-pascal --parser agreement-parser

Parameters are kept in half precision, with all options, but no optimizer and no paths of this machine.
"""

import argparse
import hashlib
import json
import shutil
from pathlib import Path

import torch
from fairseq import checkpoint_utils
from fairseq.data.data_utils import infer_language_pair
from omegaconf import DictConfig, open_dict

import fairseq_syntax
from fairseq_syntax.files import staged, written
from fairseq_syntax.pretrained import FOLDER, MANIFEST, MODEL

_LARGEST = 4_500_000  # bytes of a model


def slim(state: dict, parser: str, languages: tuple[str | None, str | None]) -> dict:
    """What a checkpoint needs to translate, or to parse.

    Args:
        state: of the checkpoint.
        parser: a bundled model, which parses raw text; nothing for none.
        languages: source and target, of a translator.
    """
    cfg = state["cfg"]
    with open_dict(cfg):
        cfg.task.data = "."
        if languages[0]:
            cfg.task.source_lang, cfg.task.target_lang = languages
        if parser:
            cfg.task.parser, cfg.task.parser_model = "checkpoint", parser
        model = vars(cfg.model) if isinstance(cfg.model, argparse.Namespace) else cfg.model
        for options in (model, *cfg.values()):
            for name, value in options.items() if isinstance(options, (dict, DictConfig)) else ():
                if isinstance(value, str) and value.startswith("/"):
                    options[name] = "."
    halves: dict[int, torch.Tensor] = {}  # those that layers share are written once
    parameters = {
        name: halves.setdefault(value.data_ptr(), value.half()) if value.is_floating_point() else value
        for name, value in state["model"].items()
    }
    history = [{**state["optimizer_history"][-1], "lr_scheduler_state": {}}]
    task = state.get("task_state", {})
    return {"cfg": cfg, "model": parameters, "optimizer_history": history, "task_state": task, "extra_state": {}}


def main(argv: list[str] | None = None) -> None:
    """Write the model, its dictionaries and their hashes."""
    parser = argparse.ArgumentParser(description="Make a small model of a checkpoint, to be bundled with the package.")
    add = parser.add_argument
    add("checkpoint", type=Path, help="that fairseq-train wrote")
    add("--data", type=Path, help="data directory, whose dictionaries the model needs")
    add("--name", required=True, help="of the model")
    add("--parser", default="", help="name of the model by which raw text is parsed")
    args = parser.parse_args(argv)
    fairseq_syntax.register()
    goal = FOLDER / args.name
    goal.mkdir(exist_ok=True)
    languages = infer_language_pair(str(args.data)) if args.data else (None, None)
    with staged(goal / MODEL) as path:
        torch.save(slim(checkpoint_utils.load_checkpoint_to_cpu(str(args.checkpoint)), args.parser, languages), path)
        if (size := path.stat().st_size) > _LARGEST:
            raise SystemExit(f"publish: {goal / MODEL}: {size} bytes are more than {_LARGEST}")
    for dictionary in sorted(args.data.glob("dict.*.txt")) if args.data else ():
        shutil.copy(dictionary, goal)
    manifest = json.loads(MANIFEST.read_text(encoding="utf8"))
    files = sorted(path for path in goal.iterdir() if path.is_file())
    manifest[args.name] = {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in files}
    with written(str(MANIFEST)) as file:
        file.write(json.dumps(manifest, indent=1, sort_keys=True) + "\n")
    print(f"{goal}: {size / 1e6:.1f} MB")


if __name__ == "__main__":
    main()
