"""The dataset: fairseq's language pairs with the trees of the source side."""

import copy

import numpy as np
import torch
from fairseq.data import LanguagePairDataset

from .. import compat
from ..trees.conllu import UNPARSED, TreeFormatError
from ..trees.distances import unpack_distances
from .arrays import ArrayReader
from .collating import INPUTS, TokenSyntax, collate_syntax


class SplitSyntax:
    """The stored trees of one split (`train`, `train1`, …): a sequence of `TokenSyntax`.

    Args:
        prefix: path prefix of the split's source side.
        inputs: the inputs wanted, keys of `INPUTS`; only their arrays are opened.
        data_path: for messages.

    Raises TreeFormatError: an array is missing; the message names the command that makes it.
    """

    # computed from the heads if they are not stored
    _OPTIONAL = ("distances", "parents")

    def __init__(self, prefix, inputs, data_path):
        self.readers = {}
        names = {name for kind in inputs for name in INPUTS[kind].arrays} | {"words", "heads"}
        for name in sorted(names):
            path = f"{prefix}.{name}"
            try:
                self.readers[name] = ArrayReader(path)
            except FileNotFoundError:
                if name in self._OPTIONAL:
                    continue
                raise TreeFormatError(
                    f"{path}.idx: not found, but the model needs {', '.join(sorted(inputs))}; "
                    f"run fairseq-syntax preprocess --only-syntax --destdir {data_path} …"
                ) from None

    def __len__(self):
        return len(self.readers["words"])

    def __getitem__(self, index):
        arrays = {name: reader[index] for name, reader in self.readers.items()}
        if "distances" in arrays:
            arrays["distances"] = unpack_distances(arrays["distances"], len(arrays["heads"]) + 1)
        return TokenSyntax(**arrays)

    @property
    def unparsed(self):
        """Number of sentences without a parse."""
        heads = self.readers["heads"]
        return int((heads.values[heads.starts[heads.sizes > 0]] == UNPARSED).sum())

    @property
    def sizes(self):
        """Tokens of each sentence, EOS included."""
        return self.readers["words"].sizes


class SyntaxPairDataset(LanguagePairDataset):
    """`LanguagePairDataset` whose batches carry `net_input["src_syntax"]`, and that loses no sentence.

    Args:
        syntax: a sequence of `TokenSyntax` in the order of the source sentences; None for models without syntax.
        syntax_inputs: keys of `INPUTS` that batches hold.
        All others as in `LanguagePairDataset`.
    """

    def __init__(self, *args, syntax=None, syntax_inputs=(), **kwargs):
        super().__init__(*args, **kwargs)
        self._attach(syntax, syntax_inputs)

    def _attach(self, syntax, syntax_inputs):
        self.syntax = syntax
        self.in_part = self.withheld = None
        self.syntax_inputs = tuple(sorted(syntax_inputs)) if syntax is not None else ()

    @classmethod
    def from_pairs(cls, pairs, syntax, syntax_inputs):
        """Add trees to a `LanguagePairDataset` loaded by fairseq."""
        dataset = cls.__new__(cls)
        dataset.__dict__.update(vars(pairs))
        dataset._attach(syntax, syntax_inputs)
        return dataset

    @classmethod
    def for_inference(cls, task, src_tokens, src_lengths, constraints, **syntax):
        """A dataset of encoded sentences in their order, padded on the side set by `--left-pad-source`."""
        return cls(
            src_tokens,
            src_lengths,
            task.source_dictionary,
            tgt_dict=task.target_dictionary,
            left_pad_source=task.cfg.left_pad_source,
            shuffle=False,
            constraints=constraints,
            **syntax,
        )

    def epoch_part(self, epoch, parts, seed):
        """A copy that iterates over one of the `parts` of an epoch; fairseq's number `epoch`, from 1, counts parts.

        Together, the parts hold every sentence once. They depend on the arguments alone, so a resumed run sees the
        same ones.
        """
        whole, number = divmod(epoch - 1, parts)
        order = np.random.default_rng([seed % 2**32, whole + 1]).permutation(len(self))
        pairs = copy.copy(self)
        pairs.in_part = np.zeros(len(self), dtype=bool)
        pairs.in_part[order[number::parts]] = True
        return pairs

    def withholding(self, share, seed, epoch, missing):
        """A copy in which a random share of the sentences, drawn by seed and epoch, have no parse.

        Args:
            share: probability, 0 to 1.
            missing: see `TokenSyntax.without_parse`.
        """
        pairs = copy.copy(self)
        pairs.withheld = np.random.default_rng([seed % 2**32, epoch]).random(len(self)) < share
        pairs.missing = missing
        return pairs

    def __getitem__(self, index):
        example = super().__getitem__(index)
        if self.syntax is not None:
            syntax = self.syntax[index]
            if self.withheld is not None and self.withheld[index]:
                syntax = syntax.without_parse(self.missing)
            example["syntax"] = syntax
        return example

    def collater(self, samples, pad_to_length=None):
        """Batch as the base class does, plus `net_input["src_syntax"]` (see `collate_syntax`)."""
        batch = super().collater(samples, pad_to_length=pad_to_length)
        if batch and self.tgt is None:
            _order_equal_lengths(batch)
        if batch and self.syntax_inputs:
            # fairseq sorts the rows by length
            by_id = {sample["id"]: sample["syntax"] for sample in samples}
            batch["net_input"]["src_syntax"] = collate_syntax(
                [by_id[i] for i in batch["id"].tolist()],
                self.syntax_inputs,
                batch["net_input"]["src_tokens"].shape[1],
                self.left_pad_source,
            )
        return batch

    def ordered_indices(self):
        """Indices in fairseq's order, limited to the part of the epoch, if there is one."""
        indices = super().ordered_indices()
        return indices if self.in_part is None else indices[self.in_part[indices]]

    def batch_by_size(self, indices, **kwargs):
        """fairseq's batches, and one of the sentences that they omit (see `compat.batches_without_loss`)."""
        indices = np.asarray(indices)
        return compat.batches_without_loss(super().batch_by_size(indices, **kwargs), indices)

    @property
    def can_reuse_epoch_itr_across_epochs(self):
        """False: otherwise a resumed run sees other batches than the uninterrupted one.

        fairseq freezes the composition of batches at the first epoch a process sees. Can go when fairseq stores it.
        """
        return False


def _order_equal_lengths(batch: dict) -> None:
    """Sort rows of equal length by sentence number, in place; for a batch without targets.

    fairseq's sort by length is not stable, and fairseq-interactive drops the numbers: sentences with the same token ids
    would get each other's trees.
    """
    net_input = batch["net_input"]
    rows = torch.from_numpy(np.lexsort((batch["id"].numpy(), -net_input["src_lengths"].numpy())))
    for values in (batch, net_input):
        for name in ("id", "src_tokens", "src_lengths", "constraints"):
            if values.get(name) is not None:
                values[name] = values[name][rows]
