"""Batch normalisation that skips what is missing (the embedding padding of the paper)."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional


class PaddedBatchNorm(nn.Module):
    """`nn.BatchNorm1d` over the columns that are present; the others come out as zeros.

    An absent column gives no statistics and gets none, and neither it nor its scale and shift get a
    gradient. Where everything is present, the numbers are those of `nn.BatchNorm1d`.
    """

    weight: nn.Parameter
    bias: nn.Parameter
    running_mean: Tensor
    running_var: Tensor

    def __init__(self, width: int, epsilon: float = 1e-5, momentum: float = 0.1) -> None:
        super().__init__()
        self.epsilon = epsilon
        self.momentum = momentum
        self.weight = nn.Parameter(torch.ones(width))
        self.bias = nn.Parameter(torch.zeros(width))
        self.register_buffer("running_mean", torch.zeros(width))
        self.register_buffer("running_var", torch.ones(width))

    def forward(self, embedding: Tensor, present: Tensor | None = None, valid: int | None = None) -> Tensor:
        """Normalise the first `valid` rows of (batch, width) where the mask (width,) is true.

        `None` stands for everything. Rows past `valid` come out as zeros too. A single valid row
        has no statistics: in training it is normalised with the running ones, and leaves them as
        they are (torch refuses it).
        """
        rows = embedding[:valid]
        if present is None:
            output = self._normalise(rows, self.running_mean, self.running_var)
        else:
            output = self._normalise_present(rows, present)
        missing = len(embedding) - len(rows)
        return functional.pad(output, (0, 0, 0, missing)) if missing else output

    def _normalise_present(self, rows: Tensor, present: Tensor) -> Tensor:
        # Zeros go in as well, since whatever stands in an absent column may not be a number.
        mean, variance = self.running_mean.clone(), self.running_var.clone()
        output = self._normalise(torch.where(present, rows, 0.0), mean, variance)
        keep_absent(present, (mean, variance), (self.running_mean, self.running_var))
        return torch.where(present, output, 0.0)

    def _normalise(self, rows: Tensor, mean: Tensor, variance: Tensor) -> Tensor:
        """Normalise every column; in training, `mean` and `variance` are updated in place."""
        training = self.training and len(rows) > 1
        return functional.batch_norm(
            rows, mean, variance, self.weight, self.bias, training, self.momentum, self.epsilon
        )


def keep_absent(present: Tensor, updated: Sequence[Tensor], running: Sequence[Tensor]) -> None:
    """Write updated statistics over the running ones where the mask (width,) is true."""
    for new, kept in zip(updated, running, strict=True):
        torch.where(present, new, kept, out=kept)
