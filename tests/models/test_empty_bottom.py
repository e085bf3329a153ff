"""The bottom model without columns."""

from __future__ import annotations

import numpy as np
import pytest

from vfedsec.errors import RemoteProtocolError
from vfedsec.models.empty import EmptyBottom


def test_its_embedding_is_zero() -> None:
    bottom = EmptyBottom(3)
    embedding = bottom.forward(np.array([4, -1], dtype=np.int32), training=True)
    assert bottom.width == 3
    assert embedding.dtype == np.float32
    assert np.array_equal(embedding, np.zeros((2, 3)))


def test_it_has_no_parameters_to_move() -> None:
    bottom = EmptyBottom(3)
    gradient = bottom.backward(np.ones((2, 3), dtype=np.float32))
    bottom.apply(gradient)
    bottom.forget()
    assert bottom.size == len(gradient) == 0


def test_it_takes_its_own_state_back() -> None:
    EmptyBottom(3).load(EmptyBottom(3).dump())


def test_the_state_of_another_model_is_refused() -> None:
    with pytest.raises(RemoteProtocolError, match="got 3"):
        EmptyBottom(3).load(b"abc")
