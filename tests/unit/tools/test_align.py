"""fairseq-syntax align: links are those of attention of one sentence at a time, its pieces joined by loops."""

import re
from pathlib import Path

import programs
import pytest
import torch
from integration import commands

from fairseq_syntax.tools import align, models
from fairseq_syntax.tools.align import pharaoh
from fairseq_syntax.tools.models import load
from fairseq_syntax.tools.word_attention import join_attention, token_attention

# Transformers of fairseq's and of ours, one with an attention to the source of its own; recurrent models of both
TRANSFORMERS = ["transformer_tiny", "pascal_transformer_tiny"]
RECURRENT = ["lstm", "nmt_lstm_tiny", "sa_nmt_shared_tiny", "lgp_tiny"]
# fairseq's LSTM has no small size
SIZES = {
    "lstm": [
        *("--encoder-embed-dim", "8", "--encoder-hidden-size", "8", "--decoder-embed-dim", "8"),
        *("--decoder-hidden-size", "8", "--decoder-out-embed-dim", "8"),
    ]
}


run = programs.runner(align, read=str.splitlines)


def fairseqs_attention(loaded, dataset, number, layer, head):
    """(S, T) attention of one sentence: what the model returns itself, the mean of layers, or of one of its heads."""
    net_input = dataset.collater([dataset[number]])["net_input"]
    layers = getattr(loaded.model.decoder, "layers", None)
    if layers is None or not hasattr(layers[0], "encoder_attn"):
        extra = loaded.model(**net_input)[1]
        weights = extra["attn"] if isinstance(extra, dict) else extra
        return (weights[0] if isinstance(weights, list) else weights)[0]

    def mean_of_first(index, heads):  # fairseq averages the first ones
        found = loaded.model(**net_input, alignment_layer=index, alignment_heads=heads)[1]["attn"][0][0]
        return found * (heads or 1)

    chosen = range(len(layers)) if layer is None else [layer]
    if head is None:
        return sum(mean_of_first(index, None) for index in chosen) / len(chosen)
    return sum(mean_of_first(index, head + 1) - (mean_of_first(index, head) if head else 0) for index in chosen) / len(
        chosen
    )


def words_of(text):
    """Word of each piece."""
    found, word = [], 0
    for piece in text.split():
        found.append(word)
        word += not piece.endswith("@@")
    return found


def brute_force(weights, source, target):
    """Links of one sentence."""
    of_source, of_target = words_of(source), words_of(target)
    links = []
    for j in range(of_target[-1] + 1 if of_target else 0):
        sums = [0.0] * (of_source[-1] + 1)
        for s, target_word in enumerate(of_target):
            for t, source_word in enumerate(of_source):
                if target_word == j:
                    sums[source_word] += float(weights[s][t])
        links.append(f"{sums.index(max(sums))}-{j}")
    return " ".join(links)


@pytest.mark.parametrize(
    ("arch", "layer", "head"), [*((arch, None, None) for arch in TRANSFORMERS + RECURRENT), (TRANSFORMERS[1], 1, 1)]
)
def test_links_are_those_of_brute_force(arch, layer, head, latent, trained, run, monkeypatch):
    """On either side of padding, by turns."""
    left = layer is not None or arch in RECURRENT[:2]
    checkpoint = trained(arch, *SIZES.get(arch, ()))
    loaded = load(str(checkpoint), str(latent.data), cpu=True)
    loaded.task.cfg.left_pad_source = left
    monkeypatch.setattr(models, "load", lambda *args: loaded)
    options = ["--layer", layer, "--head", head] if layer is not None else []
    found = run(latent.data, "--path", checkpoint, "--cpu", *options)
    dataset = loaded.task.dataset("test")
    lines = [Path(f"{latent.text}.{language}").read_text().splitlines() for language in ("en", "de")]
    pairs = list(zip(*lines, strict=True))
    assert dataset.left_pad_source == left and any("@@" in source for source, _ in pairs)
    with torch.no_grad():
        expected = [
            brute_force(fairseqs_attention(loaded, dataset, number, layer, head), *pair)
            for number, pair in enumerate(pairs)
        ]
    assert found == expected and len({link.split("-")[0] for row in found for link in row.split()}) > 1


@pytest.mark.parametrize("arch", ["pascal_transformer_tiny", "chen17_tiny"])
def test_text_is_aligned_as_the_split_is(arch, latent, trained, run):
    given = [latent.data, "--path", trained(arch), "--cpu"]
    text = ["--source", f"{latent.text}.en", "--parser", "conllu", "--parser-model", f"{latent.text}.en.conllu"]
    assert run(*given, *text, "--target", f"{latent.text}.de") == run(*given, "--subset", "test")


@pytest.mark.parametrize("arch", ["pascal_transformer_tiny", "sa_nmt_shared_tiny"])
def test_own_translations(arch, latent, trained, run, tmp_path, monkeypatch):
    """They are those of fairseq-generate, and attention to them is what the beam search saw."""
    search = ["--beam", 3, "--max-len-b", 12]
    given = [latent.data, "--path", trained(arch), "--cpu", *search]
    found = run(*given, "--translate", tmp_path / "hyp")
    output = commands.run("fairseq-generate", *given, "--remove-bpe")
    expected = {int(n): text for n, text in re.findall(r"^H-(\d+)\t\S+\t(.*)$", output, re.MULTILINE)}
    assert (tmp_path / "hyp").read_text().splitlines() == [expected[n] for n in range(len(expected))]
    assert [len(row.split()) for row in found] == [len(expected[n].split()) for n in range(len(expected))]

    # both files, or none
    def links():
        yield "0-0"
        raise OSError(28, "No space left on device", "links")

    with monkeypatch.context() as patched:
        patched.setattr(align, "align", lambda *_, **search: align.Alignment(links(), ["text"]))
        run(*given, "--output", tmp_path / "links", "--translate", tmp_path / "new", status=1)
    assert "No space left" in run.said and [path.name for path in tmp_path.iterdir()] == ["hyp"]

    loaded = load(str(trained(arch)), str(latent.data), cpu=True)
    dataset = loaded.load_split("test")
    lengths = [len(dataset[i]["source"]) for i in range(len(dataset))]
    best = loaded.translate(dataset, lengths, 100, beam=3, max_len_b=12)
    dataset.tgt = [hypothesis["tokens"] for hypothesis in best]
    last = len(loaded.model.decoder.layers) - 1 if arch in TRANSFORMERS else None
    for number, hypothesis in enumerate(best):
        sample = dataset.collater([dataset[number]])
        attention = token_attention(loaded, sample, last, None)[0]
        # the columns of the search are those of its batch, padded on the right
        torch.testing.assert_close(attention, hypothesis["attention"].T[:, : attention.shape[1]], atol=1e-5, rtol=0)


def test_words_without_tokens_and_tokens_without_words():
    weights = torch.rand(2, 3, 4, dtype=torch.double)
    of_source = torch.tensor([[-1, 0, 0, -1], [-1, -1, -1, -1]])
    of_target = torch.tensor([[0, 1, -1], [0, 0, -1]])
    joined = join_attention(weights, of_source, of_target)
    assert joined.shape == (2, 2, 1) and joined[0, 1, 0].item() == pytest.approx(weights[0, 1, 1:3].sum().item())
    assert not joined[1].any() and pharaoh(joined[1, :2, :0]) == "" and pharaoh(joined[0]) == "0-0 0-1"


@pytest.mark.parametrize(
    ("arch", "options", "message"),
    [
        ("transformer_tiny", ["--layer", 7], "--layer 7: the decoder has layers 0 to 1"),
        ("nmt_lstm_tiny", ["--head", 0], "nmt_lstm_tiny has only one attention"),
    ],
)
def test_what_a_model_has_not(arch, options, message, latent, trained, run):
    run(latent.data, "--path", trained(arch), "--cpu", *options, status=1)
    assert message in run.said
