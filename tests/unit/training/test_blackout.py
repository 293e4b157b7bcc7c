"""BlackOut against loops from its definition; word counts against text; training with every kind of model."""

import math
import shutil
from pathlib import Path
from types import SimpleNamespace

import mpmath
import numpy as np
import pytest
import small_models
import torch
from fairseq import options, tasks
from fairseq.criterions.cross_entropy import CrossEntropyCriterion
from fairseq.distributed import ModuleProxyWrapper
from fairseq.logging import metrics
from fairseq.models.lstm import LSTMDecoder
from fairseq_cli import preprocess
from hypothesis import given
from hypothesis import strategies as st
from oracles import blackout as oracle
from small_models import PAD, TASK, WORDS
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from training_options import configuration

from fairseq_syntax.training import blackout, unigrams
from fairseq_syntax.training.blackout import BlackOutCriterion, output_features
from fairseq_syntax.training.blackout_loss import (
    NoiseSharing,
    OutputLayer,
    blackout_loss,
    noise_distribution,
    sampled_losses,
)
from fairseq_syntax.training.unigrams import count_target_words

SHARES = list(NoiseSharing)


def draw_case(seed, rows, words, size, scale=2.0, dtype=torch.double):
    """Logits (rows, words), targets (rows,), noise words (rows, size) with targets among them, log q (words,)."""
    generator = torch.Generator().manual_seed(seed)
    logits = (torch.randn(rows, words, generator=generator, dtype=torch.double) * scale).to(dtype)
    target = torch.randint(words, (rows,), generator=generator)
    noise = torch.randint(words, (rows, size), generator=generator)
    log_q = torch.rand(words, generator=generator, dtype=torch.double).to(dtype) * 3
    return logits, target, noise, log_q


def from_logits(logits, target, noise, log_q):
    """`blackout_loss` of all rows."""
    scores = logits + log_q
    return blackout_loss(scores.gather(1, target.unsqueeze(1)).squeeze(1), scores.gather(1, noise))


# --- the loss of given noise ------------------------------------------------------------------------------------


@given(st.integers(0, 9999), st.integers(1, 4), st.integers(2, 9), st.integers(1, 12))
def test_stable_equals_naive_and_loops(seed, rows, words, size):
    """Numerically stable or not, it is the formula, word by word."""
    logits, target, noise, log_q = draw_case(seed, rows, words, size)
    found = from_logits(logits, target, noise, log_q)
    q = log_q.exp().tolist()
    for row in range(rows):
        expected = oracle.loss(logits[row].tolist(), int(target[row]), noise[row].tolist(), q)
        assert float(found[row]) == pytest.approx(expected, rel=1e-12)


@given(st.integers(0, 9999), st.integers(2, 9), st.integers(1, 12))
def test_gradient_is_that_of_the_formula(seed, words, size):
    logits, target, noise, log_q = draw_case(seed, 3, words, size)
    logits.requires_grad_()
    from_logits(logits, target, noise, log_q).sum().backward()
    q = log_q.exp().tolist()
    for row in range(3):
        expected = oracle.gradient(logits[row].tolist(), int(target[row]), noise[row].tolist(), q)
        assert logits.grad[row].tolist() == pytest.approx(expected, rel=1e-9, abs=1e-11)


GREAT = st.sampled_from([-math.inf, -1e38, -1e30, -3.0, 0.0, 1.5, 1e30, 1e38, math.inf])


def exact_loss(target, noise):
    """The formula in logarithms of 60 digits: 1 - p is what the others have."""

    def log_sum(scores):
        best = max(scores)
        return best + mpmath.log(mpmath.fsum(mpmath.exp(score - best) for score in scores))

    with mpmath.workdps(60):
        scores = [mpmath.mpf(value) for value in (target, *noise)]
        loss = log_sum(scores) - scores[0]
        for i in range(1, len(scores)):
            loss += log_sum(scores) - log_sum(scores[:i] + scores[i + 1 :])
        return float(loss)


@given(GREAT, st.lists(GREAT, min_size=1, max_size=5), st.sampled_from([torch.float32, torch.double]))
def test_great_scores_lose_nothing_and_infinite_ones_have_a_finite_loss_and_gradient(target, noise, dtype):
    given = [torch.tensor(part, dtype=dtype, requires_grad=True) for part in (target, noise)]
    loss = blackout_loss(*given)
    assert loss.isfinite() and loss >= 0
    assert all(part.isfinite().all() for part in torch.autograd.grad(loss, given))
    if max(abs(score) for score in (target, *noise)) <= 1e30:
        expected = exact_loss(given[0].item(), given[1].tolist())
        assert float(loss) == pytest.approx(expected, rel=1e-5, abs=1e-6)


def test_scores_that_are_nan_make_their_loss_nan():
    target, noise = torch.tensor([1.0, math.nan, 1.0]), torch.tensor([[0.0, 2.0], [0.0, 2.0], [0.0, math.nan]])
    assert blackout_loss(target, noise).isnan().tolist() == [False, True, True]


# --- noise ------------------------------------------------------------------------------------------------------

COUNTS = np.array([7, 9, 50, 3, 100, 0, 10, 1])  # <s> <pad> </s> <unk> …


@pytest.mark.parametrize("alpha", [0.0, 0.4, 1.0])
def test_noise_is_drawn_in_proportion_to_a_power_of_the_counts(alpha):
    noise = noise_distribution(COUNTS, alpha, [0, 1])
    power = [0 if word in (0, 1, 5) else float(count) ** alpha for word, count in enumerate(COUNTS)]
    expected = torch.tensor(power, dtype=torch.double) / sum(power)
    torch.testing.assert_close(noise.probabilities, expected, rtol=1e-12, atol=0)
    drawn = expected > 0
    torch.testing.assert_close(noise.log_weights[drawn], -expected[drawn].log())
    assert noise.log_weights.isfinite().all() and float(noise.log_weights[5]) == float(noise.log_weights[7])
    torch.manual_seed(1)
    found = torch.bincount(noise.draw(400, 100).flatten(), minlength=8) / 40000
    assert not found[~drawn].any()
    deviation = (expected * (1 - expected) / 40000).sqrt()
    assert ((found - expected).abs() <= 5 * deviation).all()


def test_no_word_to_draw_is_an_error():
    with pytest.raises(ValueError, match="no word of the target side can be drawn"):
        noise_distribution(np.array([3, 5, 0, 0]), 0.4, [0, 1])


# --- the output layer with drawn noise --------------------------------------------------------------------------


def batch(seed=0, dtype=torch.double):
    """Features (3, 4, 5), targets with padding on both sides, a layer of 8 words with a bias."""
    generator = torch.Generator().manual_seed(seed)
    features = torch.randn(3, 4, 5, generator=generator, dtype=dtype)
    target = torch.tensor([[4, 6, 2, 1], [1, 1, 7, 2], [4, 4, 3, 2]])
    weight = torch.randn(8, 5, generator=generator, dtype=dtype)
    return features, target, OutputLayer(weight, torch.randn(8, generator=generator, dtype=dtype))


@pytest.mark.parametrize("with_bias", [True, False])
@pytest.mark.parametrize("share", SHARES)
def test_sampled_losses_are_those_of_the_words_drawn(share, with_bias):
    features, target, layer = batch()
    layer = layer if with_bias else OutputLayer(layer.weight, None)
    noise = noise_distribution(COUNTS, 0.4, [0, 1])
    torch.manual_seed(5)
    found = sampled_losses(features, target, target != 1, layer, noise, 6, share)
    torch.manual_seed(5)
    words = noise.draw({NoiseSharing.batch: 1, NoiseSharing.sentence: 3}[share], 6)
    q = noise.log_weights.exp().tolist()
    expected = []
    for b, t in (target != 1).nonzero().tolist():
        row = {NoiseSharing.batch: 0, NoiseSharing.sentence: b}[share]
        logits = (layer.weight @ features[b, t] + (layer.bias if with_bias else 0)).tolist()
        expected.append(oracle.loss(logits, int(target[b, t]), words[row].tolist(), q))
    assert found.tolist() == pytest.approx(expected, rel=1e-11)
    assert any(int(y) in words for y in target[target != 1])  # and count like others


@pytest.mark.parametrize(("share", "dtype"), [("batch", torch.half), ("sentence", torch.bfloat16)])
def test_half_precision_is_computed_in_single(share, dtype):
    features, target, layer = batch(dtype=dtype)
    noise = noise_distribution(COUNTS, 0.4, [0, 1])
    results = []
    for cast in (lambda tensor: tensor, torch.Tensor.float):
        inputs = [cast(tensor).detach().requires_grad_() for tensor in (features, *layer)]
        torch.manual_seed(3)
        with torch.autocast("cpu", dtype=torch.bfloat16):
            losses = sampled_losses(inputs[0], target, target != 1, OutputLayer(*inputs[1:]), noise, 6, share)
        losses.sum().backward()
        results.append((losses, inputs[0].grad))
    assert results[0][0].dtype == torch.float
    torch.testing.assert_close(results[0][0], results[1][0])
    torch.testing.assert_close(results[0][1], results[1][1].to(dtype))


# --- counts of the training data --------------------------------------------------------------------------------

GOLDEN = Path(__file__).parents[2] / "golden"


def task_of(data, *more, name="translation"):
    """The task that fairseq-train would set up."""
    return tasks.setup_task(configuration(data, "transformer_tiny", "--task", name, *more).task)


def expected_counts(task, *splits, language="de"):
    lines = [
        line
        for split in splits
        for line in (GOLDEN / "text" / f"{split}.{language}").read_text(encoding="utf-8").splitlines()
    ]
    return oracle.count_words(lines, task.target_dictionary.symbols)


@pytest.mark.parametrize("impl", ["mmap", "cached", "raw"])
def test_words_are_counted_in_the_binarized_data(impl, tmp_path, monkeypatch):
    """In blocks; `</s>` is the number of sentences and `<unk>` that of unknown words, which no dictionary knows."""
    monkeypatch.setattr(unigrams, "_BLOCK", 3)
    given = ["-s", "en", "-t", "de", "--trainpref", GOLDEN / "text/train", "--testpref", GOLDEN / "text/test"]
    given += ["--destdir", tmp_path, "--dataset-impl", impl]
    preprocess.main(options.get_preprocessing_parser().parse_args(list(map(str, given))))
    task = task_of(tmp_path, "--train-subset", "test", *(("--dataset-impl", impl) if impl == "raw" else ()))
    counts, words = count_target_words(task), task.target_dictionary
    assert counts.tolist() == expected_counts(task, "test")
    assert counts[words.eos()] == 8 and counts[words.unk()] > 20
    assert words.count[words.eos()] == words.count[words.unk()] == 1


@pytest.mark.parametrize("name", ["translation", "syntax_translation"])
def test_all_directories_and_parts_of_the_training_set_count(name, tmp_path):
    first = shutil.copytree(GOLDEN / "words", tmp_path / "first")
    for path in first.glob("valid.*"):
        path.rename(first / path.name.replace("valid.", "train1."))
    task = task_of(f"{first}:{GOLDEN / 'words'}", "--upsample-primary", 2, name=name)
    assert count_target_words(task).tolist() == expected_counts(task, "train", "train", "valid", "train")
    other_side = task_of(first, "-s", "de", "-t", "en", "--train-subset", "test")
    assert count_target_words(other_side).tolist() == expected_counts(other_side, "test", language="en")


def test_data_without_a_training_set_and_of_another_dictionary_are_refused(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"words: no split 'absent' of en-de, whose target words"):
        count_target_words(task_of(GOLDEN / "words", "--train-subset", "absent"))
    other = shutil.copytree(GOLDEN / "words", tmp_path / "other")
    (other / "dict.de.txt").write_text("x 2\n")
    with pytest.raises(ValueError, match=r"train.en-de.de.bin: damaged, .*a token beyond the 5 of dict.de.txt"):
        count_target_words(task_of(other))
    with pytest.raises(ValueError, match="the task SimpleNamespace does not have; use --task translation"):
        count_target_words(SimpleNamespace(cfg=SimpleNamespace(data="x")))


# --- output layers ----------------------------------------------------------------------------------------------


LSTM = {"criterion": "cross_entropy", "encoder_hidden_size": 8}
MODELS = {
    "transformer, tied": ("transformer_tiny", {"share_decoder_input_output_embed": True}),
    "transformer": ("transformer_tiny", {}),
    "lstm, tied": ("lstm", {**LSTM, "decoder_out_embed_dim": 8, "share_decoder_input_output_embed": True}),
    "lstm": ("lstm", {**LSTM, "decoder_out_embed_dim": 6}),
    "nmt_lstm, tied": ("nmt_lstm_tiny", {}),
    "nmt_lstm": ("nmt_lstm_tiny", {"untied_output": True, "output_bias": True}),
}
LIGHT = {"encoder_conv_type": "lightweight", "decoder_conv_type": "lightweight", "weight_softmax": True}
OF_WORDS = np.arange(len(WORDS))  # how often each occurs


@pytest.fixture(autouse=True)
def counted(monkeypatch):
    monkeypatch.setattr(blackout, "count_target_words", lambda task: OF_WORDS)


def build(arch, options):
    return small_models.build(arch, 0, **options).float().train()


def sample_of(model):
    """A batch with padding on the target side."""
    sample = small_models.sample(model, (), rows=[1, 0, 2, 3, 4])  # the longest first, for the LSTM
    sample["target"][1, 3:] = PAD
    return sample | {"ntokens": int(sample["target"].ne(PAD).sum())}


@pytest.mark.parametrize(("name", "sentence_avg"), [("transformer", False), ("nmt_lstm", True)])
def test_evaluation_is_cross_entropy(name, sentence_avg):
    model = build(*MODELS[name]).eval()
    sample = sample_of(model)
    loss, size, log = BlackOutCriterion(TASK, sentence_avg)(model, sample)
    expected, expected_size, expected_log = CrossEntropyCriterion(TASK, sentence_avg)(model, sample)
    assert torch.equal(loss, expected) and size == expected_size and log == expected_log
    assert logged([log]) == logged([expected_log], CrossEntropyCriterion) and "ppl" in logged([log])


@pytest.mark.parametrize("name", MODELS)
def test_training_loss_is_the_sum_over_the_target_words(name):
    """Of the scores that the model gives to the words drawn; padding is no target."""
    model = build(*MODELS[name])
    sample, criterion = sample_of(model), BlackOutCriterion(TASK, True, blackout_k=5)
    noise = noise_distribution(OF_WORDS, 0.4, [0, PAD])
    with torch.no_grad():
        scores = model(**sample["net_input"])[0] + noise.log_weights.float()
    criterion(model, sample)  # the first one counts the words
    torch.manual_seed(4)
    loss, size, log = criterion(model, sample)
    torch.manual_seed(4)
    words, target = noise.draw(5), sample["target"]
    expected = blackout_loss(scores.gather(2, target.unsqueeze(2)).squeeze(2), scores[..., words])
    expected = expected.masked_fill(target == PAD, 0)
    torch.testing.assert_close(loss, expected.sum())
    assert size == log["sample_size"] == log["nsentences"] == 5 and log["ntokens"] == sample["ntokens"] == 23
    torch.manual_seed(4)
    apart, _, _ = criterion(model, sample, reduce=False)
    torch.testing.assert_close(apart, expected.view(-1))
    assert BlackOutCriterion(TASK, False, blackout_k=5)(model, sample)[1] == 23
    loss.backward()
    assert all(parameter.grad is not None for parameter in model.parameters())


def logged(logs, criterion=BlackOutCriterion):
    with metrics.aggregate(new_root=True) as aggregator:
        criterion.reduce_metrics(logs)
    return aggregator.get_smoothed_values()


def test_training_logs_bits_and_no_perplexity():
    logs = [
        {"loss": torch.tensor(size * math.log(2)), "bo_loss": torch.tensor(size * math.log(2)), **rest}
        for size, rest in (
            (24.0, {"ntokens": 5, "nsentences": 1, "sample_size": 1}),
            (16.0, {"ntokens": 3, "nsentences": 3, "sample_size": 3}),
        )
    ]
    assert logged(logs) == {"loss": pytest.approx(10.0), "bo_loss": pytest.approx(5.0)}
    summed = {key: sum(log[key] for log in logs) for key in logs[0]}
    assert logged([summed]) == logged(logs) and BlackOutCriterion.logging_outputs_can_be_summed()


def squash(model, monkeypatch):
    stock = LSTMDecoder.output_layer
    monkeypatch.setattr(LSTMDecoder, "output_layer", lambda decoder, x: 30 * stock(decoder, x).tanh())


def shrink(model, monkeypatch):
    model.decoder.fc_out = nn.Linear(6, 5)


@pytest.mark.parametrize(
    ("arch", "spoil", "message"),
    [
        (("fconv_iwslt_de_en", {}), None, "FConvDecoder has no linear output layer"),
        (("lightconv_iwslt_de_en", LIGHT), None, "LightConvModel does not give the features before its output layer"),
        (MODELS["lstm"], squash, "LSTMDecoder does more in its output layer than the linear map"),
        (MODELS["lstm"], shrink, "LSTMDecoder scores 5 words, but its dictionary has 15"),
    ],
)
def test_models_without_a_linear_output_layer_are_refused(monkeypatch, arch, spoil, message):
    model = build(*arch)
    if spoil:
        spoil(model, monkeypatch)
    with pytest.raises(ValueError, match=message):
        BlackOutCriterion(TASK, True)(model, sample_of(model))


def test_features_come_through_the_wrapper_that_gathers_gradients(tmp_path):
    """PyTorch's, which must see every forward; a model that has no way through it is refused."""
    torch.distributed.init_process_group("gloo", init_method=f"file://{tmp_path}/group", rank=0, world_size=1)
    try:
        for name in ("transformer", "nmt_lstm", "lstm"):
            model = build(*MODELS[name])
            sample = sample_of(model)
            wrapped = ModuleProxyWrapper(DistributedDataParallel(model))
            if name == "lstm":
                with pytest.raises(ValueError, match="the gradients; give --ddp-backend legacy_ddp"):
                    output_features(wrapped, sample["net_input"])
                continue
            forwards = []
            wrapped.module.register_forward_hook(lambda *_, seen=forwards: seen.append(1))
            loss, _, _ = BlackOutCriterion(TASK, True, blackout_k=5)(wrapped, sample)
            loss.backward()
            assert forwards and all(parameter.grad is not None for parameter in model.parameters())
    finally:
        torch.distributed.destroy_process_group()
