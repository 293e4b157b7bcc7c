"""What holds of every architecture that translates, whatever it does with trees: found in fairseq's registry.

Models have random weights, most of them in double precision, and sentences of all kinds: words in pieces, several
roots, no parse, one word, none.
"""

import copy
import math
from types import SimpleNamespace

import pytest
import torch
from fairseq.models import ARCH_MODEL_REGISTRY, MODEL_REGISTRY, FairseqEncoderDecoderModel
from fairseq.models.transformer import TransformerModel
from fairseq.sequence_generator import SequenceGenerator
from small_models import EOS, PAD, SENTENCES, TARGETS, TASK, batch, build

from fairseq_syntax.data.collating import INPUTS
from fairseq_syntax.systems.recurrent.model import RecurrentModel
from fairseq_syntax.systems.transformer.model import SyntaxTransformerModel
from fairseq_syntax.training.blackout import output_features

# beside the settings of an architecture
VARIANTS = {
    "pascal_transformer_tiny": [
        {"pascal_heads": [4, 1]},
        {"pascal_heads": [2, 0], "encoder_normalize_before": True, "decoder_normalize_before": True},
    ],
    "tag_transformer_tiny": [{"tag_inputs": "both"}],
    "dasa_transformer_tiny": [{"encoder_normalize_before": True}],
    "nmt_lstm_tiny": [{"decoder_hidden_size": 7, "encoder_layers": 1, "decoder_layers": 1}],
    "sa_nmt_tiny": [{"sa_punctuation_never_heads": True}],
    "sa_nmt_shared_tiny": [{"sa_root_scores": "query", "sa_scaled_heads": True}],
    "sdatt_tiny": [{"sdatt_position": "hard"}],
    "lgp_tiny": [{"lgp_graph": graph} for graph in ("seq", "dep", "uni")],
}
ARCHITECTURES = sorted(
    name
    for name, cls in ARCH_MODEL_REGISTRY.items()
    if cls.__module__.startswith("fairseq_syntax.") and issubclass(cls, FairseqEncoderDecoderModel)
    if name.endswith(("_tiny", "char_lstm"))
)


def cases(variants):
    return pytest.mark.parametrize(
        ("arch", "options"),
        [
            pytest.param(arch, options, id=" ".join([arch, *(f"{k}={v}" for k, v in options.items())]))
            for arch in ARCHITECTURES
            for options in [{}, *variants.get(arch, [])]
        ],
    )


every_model, every_architecture = cases(VARIANTS), cases({})
# what makes it fairseq's, to the bit
OFF = [
    ("pascal_transformer", {"pascal_heads": [0, 0]}),
    ("pascal_transformer", {"pascal_heads": [1, 2], "pascal_parent_ignoring": 1.0}),
]


def near(model):
    """Softmax of fairseq's Transformer is in single precision."""
    return {"atol": 1e-5 if isinstance(model, TransformerModel) else 1e-11, "rtol": 0}


def shown(extra):
    """What a decoder says of each target word, beside scores."""
    found = {name: value for name, value in extra.items() if isinstance(value, torch.Tensor) and value.dim() > 1}
    return found | {"attn": extra["attn"][0]}


@every_model
@pytest.mark.parametrize("training", [False, True])
def test_a_sentence_is_the_same_in_any_company_and_on_either_side_of_padding(arch, options, training):
    model = build(arch, **options).train(training)
    together = [model(**batch(model, **more))[0] for more in ({}, {"left_pad": True}, {"columns": 11})]
    for row in range(len(SENTENCES)):
        alone, _ = model(**batch(model, [row]))
        for found in together:
            torch.testing.assert_close(found[row], alone[0], **near(model))


@every_architecture
def test_attention_is_to_the_sentence(arch, options):
    model = build(arch, **options)
    for left_pad in (False, True):
        given = batch(model, left_pad=left_pad)
        weights = model(**given)[1]["attn"][0]
        assert weights.shape == (5, 5, 7) and weights.isfinite().all() and (weights.sum(2) > 0).all()
        assert not weights.masked_select(given["src_tokens"].eq(PAD).unsqueeze(1)).any()


@every_architecture
def test_later_words_are_not_seen(arch, options):
    model = build(arch, **options)
    given = batch(model)
    expected, _ = model(**given)
    previous = given["prev_output_tokens"]
    for step in range(2, 5):
        changed = torch.cat((previous[:, :step], previous[:, step:] % 8 + 4), dim=1)
        found, _ = model(**{**given, "prev_output_tokens": changed})
        torch.testing.assert_close(found[:, :step], expected[:, :step], **near(model))
        assert (found[:, step] - expected[:, step]).abs().max() > 1e-3


@every_model
def test_words_one_by_one_are_all_at_once(arch, options):
    """As in beam search: three hypotheses a sentence, reordered within it, then anywhere, then some finished."""
    model, steps = build(arch, **options), 7
    recurrent = isinstance(model, RecurrentModel)
    if not recurrent:  # fairseq's attention keeps keys once a sentence, whose hypotheses it expects together
        model.decoder.set_beam_size(3)
    given = batch(model)
    source = {name: value for name, value in given.items() if name != "prev_output_tokens"}
    sources = torch.arange(5).repeat_interleave(3)
    encoded = model.encoder.reorder_encoder_out(model.encoder(**source), sources)
    generator = torch.Generator().manual_seed(3)
    words = torch.randint(4, 14, (len(sources), steps), generator=generator)
    words[:, 0] = EOS
    state: dict = {}
    for step in range(steps):
        order = None
        if step in (2, 3):  # within sentences, some hypotheses twice
            order = torch.arange(len(sources)) // 3 * 3 + torch.randint(3, (len(sources),), generator=generator)
        elif step == 4 and recurrent:  # any row anywhere
            order = torch.randperm(len(sources), generator=generator)
        elif step == 5:  # some are finished
            order = torch.tensor([9, 10, 11, 0, 1, 2, 3, 4, 5])
        if order is not None:
            kept, encoded = encoded, model.encoder.reorder_encoder_out(encoded, order)
            # nothing is copied where every row's sentence is as before
            assert not recurrent or (encoded is kept) == (step in (2, 3))
            model.decoder.reorder_incremental_state_scripting(state, order)
            sources, words = sources[order], torch.cat((words[order, :step], words[: len(order), step:]), dim=1)
        found, extra = model.decoder(words[:, : step + 1], encoder_out=encoded, incremental_state=state)
        rows = {name: value[sources] for name, value in source.items() if name != "src_syntax"}
        if "src_syntax" in source:
            rows["src_syntax"] = {name: value[sources] for name, value in source["src_syntax"].items()}
        if not recurrent:
            model.decoder.set_beam_size(1)
        expected, whole = model(**rows, prev_output_tokens=words[:, : step + 1])
        if not recurrent:
            model.decoder.set_beam_size(3)
        torch.testing.assert_close(found[:, -1], expected[:, -1], **near(model))
        mine, other = shown(extra), shown(whole)
        assert mine.keys() == other.keys()
        for name, value in mine.items():
            torch.testing.assert_close(value[:, -1], other[name][:, -1], **near(model))
    assert len(sources) == 9 and sources.unique().numel() > 2


@every_architecture
def test_beam_search_scores_are_those_of_teacher_forcing(arch, options):
    """In an ensemble with models that read no trees, and others; with sentences that end at different steps."""
    ensemble = [build(arch, **options), build("nmt_lstm_tiny"), build("sdatt_tiny")]
    readers = SimpleNamespace(syntax_inputs={name for each in ensemble for name in each.syntax_inputs})
    for each in ensemble:  # hypotheses end now and then
        each.decoder.output_projection.weight.data[EOS] *= 4
    generator = SequenceGenerator(ensemble, TASK.target_dictionary, beam_size=2, max_len_a=0, max_len_b=7)
    given = batch(readers)
    del given["prev_output_tokens"]
    with torch.no_grad():
        found = generator.generate(ensemble, {"net_input": given})
        for row, beam in enumerate(found):
            for hypothesis in beam:
                tokens = hypothesis["tokens"]
                alone = batch(readers, [row])
                alone["prev_output_tokens"] = torch.cat((torch.tensor([EOS]), tokens[:-1])).unsqueeze(0)
                chances = [each.get_normalized_probs(each(**alone), log_probs=False) for each in ensemble]
                expected = torch.stack(chances).double().mean(0).log()[0].gather(1, tokens[:, None]).squeeze(1)
                positional = hypothesis["positional_scores"].double()
                torch.testing.assert_close(positional, expected, atol=1e-5, rtol=1e-5)
    assert [len(beam) for beam in found] == [2] * 5


IDLE = ("score.bias", "k_proj.bias")  # shifts of all scores, which a softmax does not feel


@every_model
def test_every_parameter_gets_a_finite_gradient(arch, options):
    """Of usual sentences, and of some with nothing to choose; on either side of the padding."""
    model = build(arch, **{"dropout": 0.2, **options}).train()
    for rows, left_pad in ((range(5), False), (range(5), True), (range(3, 5), False)):
        model.zero_grad()
        torch.manual_seed(0)
        logits, _ = model(**batch(model, rows, left_pad))
        logits.log_softmax(-1)[..., 5].sum().backward()
        for name, parameter in model.named_parameters():
            if parameter.requires_grad:
                assert parameter.grad is not None and parameter.grad.isfinite().all(), name
                assert len(rows) < 5 or parameter.grad.abs().max() > 1e-12 or name.endswith(IDLE), name


@every_architecture
def test_half_precision_and_autocast_stay_near(arch, options):
    wide = {"sdatt_local_window": 20.0, "sdatt_n": 20.0, "sdatt_sigma": 3.0}  # so that nothing jumps
    model = build(arch, 0.3, **{**options, **wide})
    given = batch(model)
    expected, _ = model(**given)
    mixed = copy.deepcopy(model).float().train()
    with torch.autocast("cpu", torch.bfloat16):
        trained, _ = mixed(**given)
        trained.float().logsumexp(-1).sum().backward()
    assert all(p.grad is None or p.grad.isfinite().all() for p in mixed.parameters())
    half, extra = model.half()(**given)
    assert half.dtype == torch.float16 and extra["attn"][0].dtype in (torch.float16, torch.float32)
    # where probabilities are nearly equal, another head may win, and a rounded position choose another word
    for found, apart in ((trained, 0.05), (half, 0.01)):
        assert (found.double() - expected).abs().median() < apart


@every_architecture
def test_features_are_what_the_output_layer_reads(arch, options):
    model = build(arch, **options)
    logits, _ = model(**batch(model))
    features, _ = model(**batch(model), features_only=True)
    torch.testing.assert_close(model.decoder.output_layer(features), logits)
    assert torch.equal(output_features(model, batch(model)), features), "as --criterion blackout asks for them"
    if isinstance(model, RecurrentModel):
        assert torch.equal(model.extract_features(**batch(model))[0], features)


@pytest.mark.parametrize("arch", [arch for arch in ARCHITECTURES if hasattr(ARCH_MODEL_REGISTRY[arch], "latent_heads")])
def test_latent_heads_are_distributions_on_either_side_of_padding(arch):
    model = build(arch)
    assert model.has_latent_trees
    sides = [model.latent_heads(batch(model, left_pad=left_pad)["src_tokens"]) for left_pad in (False, True)]
    for row, (_, _, ids) in enumerate(SENTENCES):
        assert sides[0]["word_mask"][row].tolist() == [column < len(ids) - 1 for column in range(7)]
        found, other = (
            {
                name: value[row][words][:, words] if value.dim() == 3 else value[row][words]
                for name, value in side.items()
            }
            for side in sides
            for words in [side["word_mask"][row]]
        )
        for name, value in found.items():
            assert not value.requires_grad
            torch.testing.assert_close(other[name], value, atol=1e-11, rtol=0)
        total = found["arc_marginals"].sum(1) + found["root_marginals"]
        torch.testing.assert_close(total, torch.ones(len(ids) - 1, dtype=torch.double))


@every_model
def test_trees_are_asked_for_where_they_are_used(arch, options):
    model = build(arch, **options)
    given = batch(model)
    expected, _ = model(**given)
    if not model.syntax_inputs:  # in an ensemble there may be trees
        trees = SimpleNamespace(syntax_inputs=tuple(INPUTS.keys() - set(getattr(model, "clamped_by", ()))))
        assert torch.equal(model(**given, src_syntax=batch(trees)["src_syntax"])[0], expected)
        return
    with pytest.raises(ValueError, match=r"--task syntax_translation|fairseq-syntax preprocess"):
        model(**{name: value for name, value in given.items() if name != "src_syntax"})
    # other trees make other scores, of the sentences that have one
    other = [([-1, 0, 0, 1], *SENTENCES[0][1:]), ([1, -1, 1], *SENTENCES[1][1:]), *SENTENCES[2:]]
    for sentence in (0, 1):
        trees = batch(model, sentences=[*SENTENCES[:sentence], other[sentence], *SENTENCES[sentence + 1 :]])
        changed = (model(**trees)[0] - expected).abs().amax((1, 2))
        if "tag_" not in arch:  # which reads labels, not heads
            assert (changed > 1e-4).nonzero().flatten().tolist() == [sentence]


@pytest.mark.parametrize(("arch", "options"), OFF, ids=str)
@pytest.mark.parametrize("left_pad", [False, True])
@pytest.mark.parametrize("before", [False, True], ids=["post-norm", "pre-norm"])
def test_switched_off_it_is_the_stock_transformer_to_the_bit(arch, options, before, left_pad):
    """Initialization, loss and every gradient, with dropout."""
    sizes = {"encoder_layers": 2, "decoder_layers": 2, "dropout": 0.2, "attention_dropout": 0.1}
    sizes |= {"encoder_normalize_before": before, "decoder_normalize_before": before}
    model, stock = (build(name, 0, **sizes, **options).train() for name in (arch, "transformer"))
    assert list(model.state_dict()) == list(stock.state_dict())
    if arch == "pascal_transformer":  # which has no parameters of its own
        assert build(arch, 0, **sizes).state_dict().keys() == stock.state_dict().keys()
    assert all(torch.equal(ours, theirs) for ours, theirs in zip(model.parameters(), stock.parameters(), strict=True))
    losses = []
    for each, given in ((model, batch(model, left_pad=left_pad)), (stock, batch(stock, left_pad=left_pad))):
        torch.manual_seed(3)
        logits, _ = each(**given)
        losses.append(torch.nn.functional.cross_entropy(logits.flatten(0, 1), torch.tensor(TARGETS).flatten()))
        losses[-1].backward()
    assert torch.equal(*losses)
    gradients = ({name: parameter.grad for name, parameter in each.named_parameters()} for each in (model, stock))
    found, expected = gradients
    assert found.keys() == expected.keys()
    assert all(torch.equal(found[name], value) for name, value in expected.items())


# --- Transformers -----------------------------------------------------------------------------------------------------

TRANSFORMERS = [name for name, cls in MODEL_REGISTRY.items() if issubclass(cls, SyntaxTransformerModel)]
LAYERS = {"encoder_layers": 3, "decoder_layers": 3, "pascal_heads": [2, 0, 1]}


def loss_and_gradients(model, given):
    model.zero_grad()
    loss = torch.nn.functional.cross_entropy(model(**given)[0].flatten(0, 1), torch.tensor(TARGETS).flatten())
    loss.backward()
    return loss.detach(), {name: parameter.grad for name, parameter in model.named_parameters()}


@pytest.mark.parametrize(
    ("arch", "options"),
    [
        ("pascal_transformer", {"pascal_parent_ignoring": 1.0}),
        ("lisa_transformer", None),
        ("planted_transformer", {"planted_heads": [0, 1]}),
        ("dasa_transformer", {"dasa_init": 0.0}),
    ],
)
def test_warm_start_from_a_stock_checkpoint(arch, options, caplog):
    """Strictly, as fairseq loads; with no effect of the trees loss and gradients are those of the checkpoint."""
    model, stock = build(arch, 0, **LAYERS, **(options or {})).train(), build("transformer", seed=2, **LAYERS).train()
    before = model.state_dict()
    own = before.keys() - stock.state_dict().keys()
    before = {name: before[name].clone() for name in own}
    model.load_state_dict(copy.deepcopy(stock.state_dict()), strict=True)
    stock_sized = arch in ("pascal_transformer", "planted_transformer")
    assert bool(own) == (not stock_sized) == ("start afresh" in caplog.text)
    assert all(torch.equal(model.state_dict()[name], value) for name, value in before.items())
    if own:  # a checkpoint with some of them is damaged
        state = model.state_dict()
        del state[min(own)]
        if len(own) > 1:
            with pytest.raises(RuntimeError, match="Missing key"):
                model.load_state_dict(state, strict=True)
    if options is not None:
        (loss, found), (expected_loss, expected) = (loss_and_gradients(each, batch(each)) for each in (model, stock))
        torch.testing.assert_close(loss, expected_loss, atol=1e-5, rtol=1e-6)
        for name, value in expected.items():
            torch.testing.assert_close(found[name], value, atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize(
    ("arch", "options", "adds"),
    [
        ("pascal_transformer", {}, False),
        *(("dasa_transformer", {"dasa_mode": mode}, mode == "add") for mode in ("add", "multiply", "log")),
    ],
)
def test_a_sentence_without_a_parse_gets_the_stock_transformer(arch, options, adds):
    model, stock = build(arch, **LAYERS, **options), build("transformer", **LAYERS)
    own = model.state_dict().keys() - stock.state_dict().keys()
    assert bool(own) == adds
    stock.load_state_dict({name: value for name, value in model.state_dict().items() if name not in own})
    expected, found = stock(**batch(stock))[0], model(**batch(model))[0]
    same = (found - expected).abs().amax((1, 2)) < 1e-5
    assert same.tolist()[:3] == [False, False, True]


@pytest.mark.parametrize("arch", TRANSFORMERS)
def test_activations_may_be_recomputed_and_layers_dropped(arch):
    if arch in ("lisa_transformer", "planted_transformer"):  # see docs/troubleshooting.md
        for option in ({"checkpoint_activations": True}, {"encoder_layerdrop": 0.5}):
            with pytest.raises(ValueError, match="would cut the loss of heads off"):
                build(arch, **LAYERS, **option)
        return
    losses = []
    for recomputed in (False, True):
        model = build(arch, checkpoint_activations=recomputed, **LAYERS).train()
        losses.append(loss_and_gradients(model, batch(model)))
    torch.testing.assert_close(losses[0][0], losses[1][0])
    for name, value in losses[0][1].items():
        torch.testing.assert_close(losses[1][1][name], value, atol=1e-6, rtol=1e-6)
    model = build(arch, encoder_layerdrop=0.5, decoder_layerdrop=0.5, **LAYERS).train()
    for _ in range(5):
        assert model(**batch(model))[0].isfinite().all()


def test_no_layer_with_a_tree_is_left_out():
    with pytest.raises(ValueError, match="--encoder-layers-to-keep: layers that learn from trees"):
        build("pascal_transformer", **LAYERS, encoder_layers_to_keep="0,2")


def test_pascal_takes_a_number_of_heads_and_no_density_that_is_zero():
    """One number is what --model-overrides give; a normal density of infinite variance would have heads average."""
    single, several = (build("pascal_transformer", pascal_heads=heads) for heads in (2, [2]))
    assert single.encoder.cfg.pascal_heads == several.encoder.cfg.pascal_heads
    for wrong in (["2"], [1.5], [-1]):
        with pytest.raises(ValueError, match=r"--pascal-heads .*: give 0 to 4"):
            build("pascal_transformer", pascal_heads=wrong)
    with pytest.raises(ValueError, match="--pascal-variance inf: this normal density is 0"):
        build("pascal_transformer", pascal_variance=math.inf)
    model = build("pascal_transformer", pascal_variance=math.inf, pascal_weight_fn="uniform")
    stock = build("transformer")
    torch.testing.assert_close(model(**batch(model))[0], stock(**batch(stock))[0], atol=1e-5, rtol=1e-5)
