"""Batch normalisation with missing columns, against that of torch on the columns that are there."""

from __future__ import annotations

import copy

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from vfedsec.models.batch_norm import PaddedBatchNorm

WIDTH = 6


def pair(columns: Tensor) -> tuple[PaddedBatchNorm, nn.BatchNorm1d]:
    """Ours over all columns and torch's over these, with the same uneven numbers."""
    ours, torchs = PaddedBatchNorm(WIDTH), nn.BatchNorm1d(len(columns))
    generator = torch.Generator().manual_seed(5)
    with torch.no_grad():
        for tensor in ours.state_dict().values():
            tensor.uniform_(0.5, 2, generator=generator)
        for name, tensor in ours.state_dict().items():
            torchs.state_dict()[name].copy_(tensor[columns])
    return ours, torchs


def rows(count: int, seed: int = 0) -> Tensor:
    return torch.randn(count, WIDTH, generator=torch.Generator().manual_seed(seed)) * 3 + 1


def backward(module: nn.Module, output: Tensor, by: Tensor, weights: Tensor) -> list[Tensor]:
    (output * weights).sum().backward()
    return [by.grad, module.weight.grad, module.bias.grad]


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.booleans(), min_size=WIDTH, max_size=WIDTH).filter(any),
    st.integers(2, 9),
    st.integers(0, 3),
    st.booleans(),
)
def test_it_is_that_of_torch_on_what_is_there(mask: list[bool], valid: int, missing: int, training: bool) -> None:
    present = torch.tensor(mask)
    columns = present.nonzero().squeeze(1)
    ours, torchs = (module.train(training) for module in pair(columns))
    full = rows(valid + missing).requires_grad_()
    part = full.detach()[:valid, columns].clone().requires_grad_()
    weights = rows(valid + missing, seed=1)
    padded, dense = ours(full, present, valid), torchs(part)
    ours_back = backward(ours, padded, full, weights)
    torchs_back = backward(torchs, dense, part, weights[:valid, columns])

    expected = torch.zeros_like(padded)
    expected[:valid, columns] = dense
    torch.testing.assert_close(padded, expected)
    assert (padded[:, ~present] == 0).all()
    assert (padded[valid:] == 0).all()
    expected = torch.zeros_like(full)
    expected[:valid, columns] = torchs_back[0]
    torch.testing.assert_close(ours_back[0], expected, atol=1e-5, rtol=1e-4)
    assert (ours_back[0][:, ~present] == 0).all()
    for ours_one, torchs_one in zip(ours_back[1:], torchs_back[1:], strict=True):
        torch.testing.assert_close(ours_one[columns], torchs_one, atol=1e-4, rtol=1e-4)
        assert (ours_one[~present] == 0).all()
    torch.testing.assert_close(ours.running_mean[columns], torchs.running_mean)
    torch.testing.assert_close(ours.running_var[columns], torchs.running_var)


@pytest.mark.parametrize("training", [True, False])
def test_with_everything_there_it_is_that_of_torch_bit_for_bit(training: bool) -> None:
    ours, torchs = (module.train(training) for module in pair(torch.arange(WIDTH)))
    first, second = rows(8).requires_grad_(), rows(8).requires_grad_()
    weights = rows(8, seed=1)
    left, right = ours(first), torchs(second)
    assert torch.equal(left, right)
    for mine, theirs in zip(
        backward(ours, left, first, weights), backward(torchs, right, second, weights), strict=True
    ):
        assert torch.equal(mine, theirs)
    assert torch.equal(ours.running_mean, torchs.running_mean)
    assert torch.equal(ours.running_var, torchs.running_var)


@pytest.mark.parametrize("mask", [[True] * 3 + [False] * 3, [False] * 6])
def test_running_statistics_of_absent_columns_stay(mask: list[bool]) -> None:
    ours, present = pair(torch.arange(WIDTH))[0], torch.tensor(mask)
    before = copy.deepcopy(ours.state_dict())
    ours(rows(8), present)
    assert torch.equal(ours.running_mean[~present], before["running_mean"][~present])
    assert torch.equal(ours.running_var[~present], before["running_var"][~present])
    assert (ours.running_mean[present] != before["running_mean"][present]).all()


def test_whatever_stands_in_absent_columns_does_not_matter() -> None:
    present, found = torch.tensor([True] * 3 + [False] * 3), []
    for filler in (0.0, 1e30, float("nan"), float("inf")):
        norm, embedding = PaddedBatchNorm(WIDTH), rows(8)
        embedding[:, ~present] = filler
        embedding.requires_grad_()
        output = norm(embedding, present)
        found.append([output, *backward(norm, output, embedding, rows(8, seed=1))])
    for other in found[1:]:
        assert all(torch.equal(*both) for both in zip(found[0], other, strict=True))


def test_rows_past_valid_do_not_matter() -> None:
    norm, other, embedding = PaddedBatchNorm(WIDTH), PaddedBatchNorm(WIDTH), rows(8)
    changed = embedding.clone()
    changed[5:] = float("nan")
    assert torch.equal(norm(embedding, None, 5), other(changed, None, 5))
    assert torch.equal(norm.running_var, other.running_var)


def test_a_single_valid_row_is_normalised_with_the_running_statistics() -> None:
    ours, torchs = pair(torch.arange(WIDTH))
    before = copy.deepcopy(ours.state_dict())
    embedding = rows(4)
    assert torch.equal(ours(embedding, None, 1)[:1], torchs.eval()(embedding[:1]))
    assert all(torch.equal(before[name], tensor) for name, tensor in ours.state_dict().items())


def test_evaluation_moves_no_statistics() -> None:
    ours = pair(torch.arange(WIDTH))[0].eval()
    before = copy.deepcopy(ours.state_dict())
    ours(rows(8), torch.tensor([True] * 3 + [False] * 3))
    assert all(torch.equal(before[name], tensor) for name, tensor in ours.state_dict().items())
