"""Parameters as one vector."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from vfedsec.errors import ConfigError
from vfedsec.models.flat import FlatParameters


def two_layers() -> nn.Module:
    return nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Linear(4, 2, bias=False))


def test_size_counts_every_trainable_number() -> None:
    assert FlatParameters(two_layers()).size == 3 * 4 + 4 + 4 + 4 + 4 * 2


def test_flattening_keeps_the_values() -> None:
    module = two_layers()
    before = torch.cat([p.detach().reshape(-1).clone() for p in module.parameters()])
    assert torch.equal(FlatParameters(module).values, before)


def test_writing_to_the_vector_changes_the_module() -> None:
    module = two_layers()
    FlatParameters(module).values.fill_(7)
    assert all((p == 7).all() for p in module.parameters())


def test_backward_accumulates_into_the_gradient_vector() -> None:
    module, rows = two_layers(), torch.randn(5, 3)
    flat = FlatParameters(module)
    module(rows).square().sum().backward()
    once = flat.gradient.clone()
    module(rows).square().sum().backward()
    assert once.abs().sum() > 0
    torch.testing.assert_close(flat.gradient, 2 * once)


def test_zeroing_the_vector_zeroes_every_gradient() -> None:
    module = two_layers()
    flat = FlatParameters(module)
    module(torch.randn(5, 3)).sum().backward()
    flat.zero_gradient()
    assert all((p.grad == 0).all() for p in module.parameters())


def test_frozen_parameters_are_not_in_the_vector_but_in_the_state() -> None:
    module = nn.Linear(3, 4)
    module.bias.requires_grad_(False)
    flat = FlatParameters(module)
    assert flat.size == 12
    assert set(flat.state()) == {"parameter.weight", "parameter.bias"}


def test_buffers_are_reported_apart() -> None:
    flat = FlatParameters(two_layers())
    assert set(flat.buffers) == {"1.running_mean", "1.running_var", "1.num_batches_tracked"}


def test_a_shared_parameter_is_there_once() -> None:
    first, second = nn.Linear(3, 3, bias=False), nn.Linear(3, 3, bias=False)
    second.weight = first.weight
    assert FlatParameters(nn.Sequential(first, second)).size == 9


def test_a_module_without_parameters_has_size_zero() -> None:
    assert FlatParameters(nn.ReLU()).size == 0


@pytest.mark.parametrize("module", [nn.Linear(2, 2, dtype=torch.float64), nn.LazyLinear(2)])
def test_other_parameters_than_float32_are_refused(module: nn.Module) -> None:
    with pytest.raises(ConfigError, match="parameter 'weight'"):
        FlatParameters(module)
