"""Modules that a test makes itself have the same weights every time."""

from __future__ import annotations

import pytest
import torch


@pytest.fixture(autouse=True)
def seeded_generator() -> None:
    torch.manual_seed(0)
