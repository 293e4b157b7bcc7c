"""Source words with most attention, for `--replace-unk` (Jean et al. 2015; Hashimoto et al. 2016).

fairseq looks up `hypo["alignment"][t]`, the source word for target word t, but never sets it.
"""

import logging

import torch
from fairseq.models.lstm import LSTMModel
from fairseq.sequence_generator import SequenceGenerator
from torch import Tensor

logger = logging.getLogger(__name__)


def strongest_words(attention: Tensor, sentence: Tensor, tokens: Tensor, pad: int) -> Tensor:
    """The source word with most attention for each target token, (N,), counted from its sentence's first token.

    EOS and padding are not words. Ties go to the first word; in a sentence without words, it is 0.

    Args:
        attention: (T, N) attention of N target tokens from any sentences of the batch.
        sentence: (N,) row of each target token's sentence in the batch.
        tokens: (B, T) source tokens, ending in EOS, padded on either side.
        pad: index of padding.
    """
    real = tokens.ne(pad)
    first = real.int().argmax(dim=1)
    position = torch.arange(tokens.shape[1], device=tokens.device)
    word = real & (position < (first + real.sum(dim=1) - 1)[:, None])
    chosen = attention.float().masked_fill(~word[sentence].T, -1.0).argmax(dim=0)
    return (chosen - first[sentence]).clamp(min=0)


class AligningGenerator(SequenceGenerator):
    """fairseq's generator with the source word of each target word in the "alignment" of hypotheses.

    It is a LongTensor (words,) on the CPU, with EOS last, for the words that fairseq prints, which do not include a BOS
    inside a hypothesis. The attention of an ensemble is the mean over its members.
    """

    def _generate(self, sample, *args, **kwargs):
        beams = super()._generate(sample, *args, **kwargs)
        hypotheses = [hypothesis for beam in beams for hypothesis in beam]
        tokens = sample["net_input"]["src_tokens"]
        if any(hypothesis["attention"].shape[:1] != tokens.shape[1:] for hypothesis in hypotheses):
            raise ValueError(
                "--replace-unk: the model gives no attention to the source tokens; translate without the option"
            )
        lengths = [len(hypothesis["tokens"]) for hypothesis in hypotheses]
        sentence = torch.arange(len(beams), device=tokens.device).repeat_interleave(
            torch.tensor([sum(len(hypothesis["tokens"]) for hypothesis in beam) for beam in beams]).to(tokens.device)
        )
        attention = torch.cat([hypothesis["attention"] for hypothesis in hypotheses], dim=1)
        words = strongest_words(attention, sentence, tokens, self.pad).cpu().split(lengths)
        # drop tokens that fairseq does not print, which would shift all later words
        silent = torch.tensor(sorted((self.symbols_to_strip_from_output | {self.tgt_dict.bos()}) - {self.eos}))
        for hypothesis, aligned in zip(hypotheses, words, strict=True):
            hypothesis["alignment"] = aligned[~torch.isin(hypothesis["tokens"].cpu(), silent)]
        return beams


def aligning_generator(models, args, left_pad_source: bool, dictionaries) -> type:
    """The generator class for `--replace-unk`, whose models keep their attention.

    Raises ValueError: options conflict.
    """
    for option in ("print_alignment", "score_reference"):
        if getattr(args, option, None):
            raise ValueError(
                f"--replace-unk cannot be combined with --{option.replace('_', '-')}; use them one after the other"
            )
    if left_pad_source and any(isinstance(model, LSTMModel) for model in models):
        raise ValueError(
            "--left-pad-source: with --replace-unk, not for fairseq's lstm, whose attention assumes padding on "
            "the right; leave the option out"
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
