"""Our optimizers against those of torch."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from vfedsec.config.job import Training
from vfedsec.models.optimizers import Adam, Optimizer, Sgd, build_optimizer
from vfedsec.models.state import dump_tensors, load_tensors

FEW = settings(max_examples=12, deadline=None)
SIZES = st.integers(1, 70)
RATES = st.floats(1e-4, 0.3)


def gradients(size: int, seed: int, steps: int = 50) -> list[torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    return list(torch.randn(steps, size, generator=generator))


def ours(optimizer: Optimizer, steps: list[torch.Tensor]) -> torch.Tensor:
    values = torch.zeros_like(steps[0])
    for gradient in steps:
        optimizer.step(values, gradient)
    return values


def torchs(make: Callable[[list[torch.Tensor]], torch.optim.Optimizer], steps: list[torch.Tensor]) -> torch.Tensor:
    parameter = torch.zeros_like(steps[0], requires_grad=True)
    optimizer = make([parameter])
    for gradient in steps:
        parameter.grad = gradient.clone()
        optimizer.step()
    return parameter.detach()


@FEW
@given(SIZES, st.integers(0, 99), RATES, st.sampled_from([0.0, 0.5, 0.9, 0.99]))
def test_sgd_is_that_of_torch(size: int, seed: int, rate: float, momentum: float) -> None:
    steps = gradients(size, seed)
    expected = torchs(lambda p: torch.optim.SGD(p, lr=rate, momentum=momentum), steps)
    torch.testing.assert_close(ours(Sgd(size, rate, momentum), steps), expected, rtol=0, atol=1e-6)


@FEW
@given(SIZES, st.integers(0, 99), st.floats(1e-4, 0.03), st.sampled_from([1e-8, 1e-3]))
def test_adam_is_that_of_torch(size: int, seed: int, rate: float, epsilon: float) -> None:
    steps = gradients(size, seed)
    expected = torchs(lambda p: torch.optim.Adam(p, lr=rate, eps=epsilon), steps)
    found = ours(Adam(size, rate, epsilon=epsilon), steps)
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-6)


@pytest.mark.parametrize("name", ["sgd", "adam"])
def test_a_step_leaves_the_gradient_as_it_was(name: str) -> None:
    gradient = torch.ones(4)
    optimizer = build_optimizer(Training(optimizer=name, momentum=0.9), 4)
    optimizer.step(torch.zeros(4), gradient)
    assert torch.equal(gradient, torch.ones(4))


@pytest.mark.parametrize("name", ["sgd", "adam"])
def test_a_restored_optimizer_goes_on_bit_for_bit(name: str) -> None:
    training, steps = Training(optimizer=name, momentum=0.9), gradients(9, 1)
    optimizer, restored = build_optimizer(training, 9), build_optimizer(training, 9)
    values = ours(optimizer, steps)
    load_tensors(dump_tensors(optimizer.state()), restored.state())
    continued = values.clone()
    optimizer.step(values, steps[0])
    restored.step(continued, steps[0])
    assert torch.equal(values, continued)


def test_sgd_without_momentum_has_no_state() -> None:
    assert Sgd(3, 0.1).state() == {}


def test_the_job_chooses_the_optimizer_and_its_numbers() -> None:
    steps = gradients(3, 0, steps=2)
    built = build_optimizer(Training(optimizer="sgd", learning_rate=0.5, momentum=0.25), 3)
    assert torch.equal(ours(built, steps), ours(Sgd(3, 0.5, 0.25), steps))
    built = build_optimizer(Training(optimizer="adam", learning_rate=0.5), 3)
    assert torch.equal(ours(built, steps), ours(Adam(3, 0.5), steps))
