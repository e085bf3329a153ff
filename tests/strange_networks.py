"""Networks and losses of somebody else's, each of which fails in a way of its own."""

from torch import nn


class Incomplete(nn.Module):
    """Cannot be made."""

    def __init__(self, inputs, outputs):
        super().__init__()
        self.linear = {}["missing"]


class Forgetful(nn.Module):
    """Cannot be used."""

    def __init__(self, inputs=1, outputs=1):
        super().__init__()

    def forward(self, *rows):
        raise AssertionError("not today")


class Double(nn.Linear):
    """Makes numbers of another type."""

    def forward(self, rows):
        return super().forward(rows).double()


class RowByRow(nn.Module):
    """As a loss it gives a number a row."""

    def forward(self, outputs, targets):
        return outputs - targets
