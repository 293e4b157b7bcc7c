"""Training steps and translation of this checkout against those of another one, in turn: what changes did to speed.

Each checkout works in a process of its own, with the same weights, on the same made-up sentences (those of corpora.py).
Beside speed stands how far apart losses in evaluation are, which a change of speed should leave as they are, but for
rounding. `latent_tree_rnng` draws trees to have a loss, not necessarily by the same random numbers.
"""

import json
import os
import shlex
import subprocess
import sys
import tempfile
from argparse import Namespace
from functools import partial
from pathlib import Path

from checkout import ROOT
from timing import report, report_table, side_by_side

CRITERION = "--criterion label_smoothed_cross_entropy --label-smoothing 0.1"
TRANSFORMER = f"--optimizer adam {CRITERION} --share-decoder-input-output-embed"
WIDTHS = "--encoder-hidden-size 256 --decoder-embed-dim 256 --encoder-embed-dim 256 --decoder-hidden-size 256"
RECURRENT = f"--optimizer adam {CRITERION} {WIDTHS}"
PARSING = "label_smoothed_cross_entropy_with_heads"
RNNG = "--task tree_translation --arch latent_tree_rnng --criterion reinforce_tree --optimizer adam"
# name -> sentences of a batch, options of fairseq-train; `transformer` and `lstm` are fairseq's own
SYSTEMS = {
    "transformer": (8, f"{TRANSFORMER} --arch transformer_iwslt_de_en"),
    "pascal": (8, f"{TRANSFORMER} --arch pascal_transformer_iwslt_de_en"),
    "lisa": (8, f"{TRANSFORMER} --arch lisa_transformer_iwslt_de_en --criterion {PARSING}"),
    "tag": (8, f"{TRANSFORMER} --arch tag_transformer_iwslt_de_en"),
    "dasa_transformer": (8, f"{TRANSFORMER} --arch dasa_transformer_iwslt_de_en"),
    "lstm": (48, f"{RECURRENT} --decoder-out-embed-dim 256 --arch lstm"),
    "nmt_lstm": (48, f"{RECURRENT} --arch nmt_lstm"),
    "sa_nmt_shared": (48, f"{RECURRENT} --arch sa_nmt_shared"),
    "global_att": (48, f"{RECURRENT} --arch global_att"),
    "sdatt": (48, f"{RECURRENT} --arch sdatt"),
    "chen17": (48, f"{RECURRENT} --arch chen17"),
    "global_plus_chen17": (48, f"{RECURRENT} --arch global_plus_chen17"),
    "lgp": (48, "--arch lgp_small --lgp-src-min-freq 1 --optimizer adam --criterion cross_entropy"),
    "latent_tree_rnng": (64, f"{RNNG} --rnng-size 384"),
}
QUICK = {
    "transformer": (4, f"{TRANSFORMER} --arch transformer_tiny"),
    "latent_tree_rnng": (4, f"{RNNG} --rnng-size 16"),
}
# as in latent_trees.py, which cannot be imported beside an older checkout
POLICY = (0.13, 0.66, 0.21)  # NT, GEN, REDUCE of latent_tree_rnng: untrained policies open phrases without end


def binarize(folder: Path, sentences: int) -> None:
    """Make the data directories: `words`, which has trees, and `characters`."""
    from corpora import make_corpus

    lines = [words[:14] for words in make_corpus(folder, sentences)]
    for language, texts in (("en", lines), ("de", lines[::-1])):
        text = "".join(" ".join("_".join(words)) + "\n" for words in texts)
        (folder / f"spelled.{language}").write_text(text, encoding="utf-8")
    pair = ["--source-lang", "en", "--target-lang", "de"]
    for text, data, program in (
        ("train", "words", ["fairseq_syntax", "preprocess", "--joined-dictionary"]),
        ("spelled", "characters", ["fairseq_cli.preprocess"]),
    ):
        command = [*program, *pair, "--trainpref", folder / text, "--destdir", folder / data]
        ended = subprocess.run([sys.executable, "-m", *command], cwd=ROOT, capture_output=True, text=True)
        if ended.returncode:
            sys.exit(ended.stderr[-2000:])


class Side:
    """A checkout, in a process that answers questions.

    Args:
        checkout: its folder.
    """

    def __init__(self, checkout: Path):
        self.errors = tempfile.TemporaryFile()
        self.process = subprocess.Popen(
            [sys.executable, __file__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.errors,
            env={**os.environ, "PYTHONPATH": f"{checkout}"},
            cwd=checkout,
        )

    def ask(self, what: str, *values):
        """What a method of `Worker` returns. Ends the program: it failed, and why."""
        try:
            self.process.stdin.write(json.dumps([what, *values]).encode() + b"\n")
            self.process.stdin.flush()
            return json.loads(self.process.stdout.readline())
        except (BrokenPipeError, json.JSONDecodeError):
            self.process.wait()
            self.errors.seek(0)
            sys.exit(self.errors.read().decode()[-2000:])

    def end(self) -> None:
        """Let the process end."""
        self.process.communicate()
        self.errors.close()


class Worker:
    """What works in the process of a checkout, the folder that it was started in."""

    def __init__(self):
        import fairseq  # noqa: F401, I001  first, for the package to register
        import fairseq_syntax

        assert Path(fairseq_syntax.__file__).resolve().parents[1] == Path.cwd().resolve(), fairseq_syntax.__file__

    def build(self, data: str, options: str, sentences: int, weights: str) -> float:
        """Build a system; its loss in evaluation. The first checkout writes the weights, the other one reads them."""
        import torch
        from fairseq import options as arguments
        from fairseq.dataclass.utils import convert_namespace_to_omegaconf
        from fairseq.tasks import setup_task
        from fairseq.trainer import Trainer

        line = [data, "--task", "syntax_translation", *shlex.split(options), "--user-dir", "fairseq_syntax", "--cpu"]
        # the smallest of learning rates: policies stay what they are
        line += ["--lr", "1e-12", "--batch-size", f"{sentences}", "--required-batch-size-multiple", "1"]
        cfg = arguments.parse_args_and_arch(arguments.get_training_parser(), input_args=line)
        cfg = convert_namespace_to_omegaconf(cfg)
        self.task = setup_task(cfg.task)
        torch.manual_seed(1)
        self.model = self.task.build_model(cfg.model)
        if Path(weights).exists():
            self.model.load_state_dict(torch.load(weights))
        else:
            with torch.no_grad():
                for name, parameter in self.model.named_parameters():
                    if name.endswith("policy.weight"):
                        parameter.zero_()
                    elif name.endswith("policy.bias"):
                        parameter.copy_(torch.tensor(POLICY).log())
            torch.save(self.model.state_dict(), weights)
        criterion = self.task.build_criterion(cfg.criterion)
        self.task.load_dataset("train")  # last, as in fairseq-train: model and criterion say what they read
        self.trainer = Trainer(cfg, self.task, self.model, criterion)
        batches = self.task.get_batch_iterator(self.task.dataset("train"), max_sentences=sentences)
        self.batch = next(batches.next_epoch_itr(shuffle=False))
        self.trainer.begin_epoch(1)
        torch.manual_seed(1)
        loss, size, _ = self.task.valid_step(self.batch, self.model, criterion)
        return float(loss) / float(size)

    def train(self) -> None:
        """An update."""
        self.trainer.train_step([self.batch])

    def translate(self, beam: int) -> None:
        """Translations, as long as their sentences, since the models are untrained."""
        length = self.batch["net_input"]["src_tokens"].shape[1]
        limits = {"min_len": length, "max_len_a": 0, "max_len_b": length}
        generator = self.task.build_generator([self.model.eval()], Namespace(beam=beam, **limits))
        self.task.inference_step(generator, [self.model], self.batch)


def run(quick: bool, before: Path) -> None:
    """All systems.

    Args:
        quick: two tiny ones, one round.
        before: folder of the other checkout.
    """
    losses = []
    sides = {name: Side(checkout.resolve()) for name, checkout in (("before", before), ("now", ROOT))}
    with tempfile.TemporaryDirectory() as folder:
        binarize(Path(folder), 20 if quick else 256)
        for system, (sentences, options) in (QUICK if quick else SYSTEMS).items():
            trees = system == "latent_tree_rnng"
            data, weights = (f"{folder}/{name}" for name in ("characters" if trees else "words", f"{system}.pt"))
            loss = [side.ask("build", data, options, sentences, weights) for side in sides.values()]
            losses.append([system, f"{loss[1]:.4f}", f"{abs(loss[1] - loss[0]):.0e}"])
            for question in (("train",), ("translate", 1 if trees else 4)):
                seconds = side_by_side(
                    {name: partial(side.ask, *question) for name, side in sides.items()}, 1 if quick else 7, warm_up=1
                )
                report(f"{system}: {question[0]}, {sentences} sentences", seconds, "before")
    report_table("loss in evaluation, and how far it is from that before", ["system", "loss", "apart"], losses)
    for side in sides.values():
        side.end()


if __name__ == "__main__":
    answers, sys.stdout = sys.stdout, sys.stderr  # fairseq may print
    worker = Worker()
    for line in sys.stdin:
        what, *values = json.loads(line)
        print(json.dumps(getattr(worker, what)(*values)), file=answers, flush=True)
