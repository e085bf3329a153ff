"""Rows that are prepared already."""

import numpy as np
import pytest

from vfedsec.config.job import ModelSpec
from vfedsec.data.batches import TableBatches
from vfedsec.data.prepared import PreparedRows
from vfedsec.errors import RemoteProtocolError

FEATURES = np.ones((2, 3), dtype=np.float32)


def prepared(batches=None):
    return PreparedRows(FEATURES, 4, ModelSpec(name="mlp"), lambda *given: given, batches)


def test_there_is_nothing_to_say():
    assert prepared().begin() == []


def test_a_letter_is_refused():
    with pytest.raises(RemoteProtocolError, match="bank sent a letter"):
        prepared().receive("bank", b"")


def test_the_model_is_built_of_what_was_given():
    model, batches = prepared().finish(b"seed")
    assert model == (FEATURES, 4, ModelSpec(name="mlp"), b"seed")
    assert batches is None


def test_given_batches_are_handed_on():
    batches = TableBatches.for_prediction(1, ["a"], {}, seed=b"s")
    assert prepared(batches).finish(b"")[1] is batches
