"""The top model as one module: [padded batch norm] -> activation -> network."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from vfedsec.models.batch_norm import PaddedBatchNorm


class Head(nn.Module):
    """From an embedding (batch, width) to the outputs (valid, outputs) of its first rows."""

    def __init__(self, norm: PaddedBatchNorm | None, rectify: bool, model: nn.Module) -> None:
        super().__init__()
        self.norm = norm
        self.rectify = rectify
        self.model = model

    def forward(self, embedding: Tensor, present: Tensor | None, valid: int) -> Tensor:
        """Columns outside the mask `present` (width,) count as zeros after the batch norm."""
        if self.norm is not None:
            embedding = self.norm(embedding, present, valid)
        elif present is not None:
            embedding = torch.where(present, embedding, 0.0)
        rows = embedding[:valid]
        return self.model(torch.relu(rows) if self.rectify else rows)  # type: ignore[no-any-return]
