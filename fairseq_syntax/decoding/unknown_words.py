"""Which source word each target word attends to most, for `--replace-unk` (Jean et al. 2015; Hashimoto et al. 2016).

fairseq looks up `hypo["alignment"][t]`, a source word for target word t, and never fills it in.
"""

import logging

import torch
from fairseq.models.lstm import LSTMModel
from fairseq.sequence_generator import SequenceGenerator
from torch import Tensor

logger = logging.getLogger(__name__)


def strongest_words(attention: Tensor, sentence: Tensor, tokens: Tensor, pad: int) -> Tensor:
    """(N,) the source word of greatest attention, from the sentence's first token; EOS and padding are not words.

    Of equal ones it is the first, and 0 in a sentence without words.

    Args:
        attention: (T, N) one column for each of N target tokens, of any sentences of the batch.
        sentence: (N,) row of the batch that the token is a translation of.
        tokens: (B, T) source tokens, each row ending in EOS, padded on either side.
        pad: index of padding.
    """
    real = tokens.ne(pad)
    first = real.int().argmax(dim=1)
    position = torch.arange(tokens.shape[1], device=tokens.device)
    word = real & (position < (first + real.sum(dim=1) - 1)[:, None])
    chosen = attention.float().masked_fill(~word[sentence].T, -1.0).argmax(dim=0)
    return (chosen - first[sentence]).clamp(min=0)


class AligningGenerator(SequenceGenerator):
    """fairseq's generator, whose hypotheses have in "alignment" the source word of each of their words.

    (words,) LongTensor on the CPU, EOS's last. Words as fairseq prints them: a BOS inside a hypothesis is not a word.
    The attention of an ensemble is the mean of its members'.
    """

    def _generate(self, sample, *args, **kwargs):
        found = super()._generate(sample, *args, **kwargs)
        hypotheses = [hypothesis for beam in found for hypothesis in beam]
        tokens = sample["net_input"]["src_tokens"]
        if any(hypothesis["attention"].shape[:1] != tokens.shape[1:] for hypothesis in hypotheses):
            raise ValueError(
                "--replace-unk: the model gives no attention to the source tokens; translate without the option"
            )
        lengths = [len(hypothesis["tokens"]) for hypothesis in hypotheses]
        sentence = torch.arange(len(found), device=tokens.device).repeat_interleave(
            torch.tensor([sum(len(hypothesis["tokens"]) for hypothesis in beam) for beam in found]).to(tokens.device)
        )
        attention = torch.cat([hypothesis["attention"] for hypothesis in hypotheses], dim=1)
        words = strongest_words(attention, sentence, tokens, self.pad).cpu().split(lengths)
        # what fairseq does not print has no place, or all after it were those of their neighbours
        silent = torch.tensor(sorted((self.symbols_to_strip_from_output | {self.tgt_dict.bos()}) - {self.eos}))
        for hypothesis, aligned in zip(hypotheses, words, strict=True):
            hypothesis["alignment"] = aligned[~torch.isin(hypothesis["tokens"].cpu(), silent)]
        return found


def aligning_generator(models, args, seq_gen_cls, left_pad_source: bool, dictionaries) -> type:
    """The class of the generator for `--replace-unk`; its models keep their attention.

    Raises ValueError: `args` do not go together, or the caller asks for another class.
    """
    if seq_gen_cls is not None:
        raise ValueError(f"--replace-unk: not with a generator of its own kind ({seq_gen_cls.__name__})")
    for option in ("print_alignment", "score_reference"):
        if getattr(args, option, None):
            raise ValueError(
                f"--replace-unk cannot be combined with --{option.replace('_', '-')}; use them one after the other"
            )
    if left_pad_source and any(isinstance(model, LSTMModel) for model in models):
        raise ValueError(
            "--left-pad-source: with --replace-unk, not for fairseq's lstm, whose attention is that of sentences "
            "padded on the right; leave the option out"
        )
    if any(symbol.endswith("@@") or symbol.startswith("\u2581") for words in dictionaries for symbol in words.symbols):
        logger.warning(
            "--replace-unk replaces pieces of words, because the data are cut into subwords; leave out --post-process "
            "and --bpe, which join them before they are replaced, and join the output"
        )
    for model in models:
        # fairseq switches the attention of recurrent and convolutional decoders off unless it is to be printed
        if hasattr(getattr(model, "decoder", None), "need_attn"):
            model.decoder.need_attn = True
    return AligningGenerator
