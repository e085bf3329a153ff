"""What `check` says a party sends is what the meter counts."""

from __future__ import annotations

import pytest

from federation import job_of, rows_of
from vfedsec.engines.simulation import Simulation
from vfedsec.experiments.traffic import traffic

ROUNDS = 20
FRAMES = 900
"""Bytes a message may take on top: names, signatures, tags, keys."""


@pytest.mark.parametrize("fusion", ["concat", "sum"])
@pytest.mark.parametrize("word_bits", [16, 32])
def test_a_round_takes_what_was_worked_out_and_little_more(fusion: str, word_bits: int) -> None:
    job = job_of((1, 1, 1), fusion=fusion, word_bits=word_bits, rounds=ROUNDS, batch_size=120, width=32)
    simulation = Simulation.from_prepared(job, rows_of(job))
    simulation.train()
    for party, expected in traffic(job).items():
        sent = simulation.engine.meter.of_kind(party, "train").bytes_sent / ROUNDS
        assert expected.total <= sent + 120 * 4, party  # the last round has no envelopes
        assert sent < expected.total + FRAMES, party


def test_only_members_of_a_group_of_several_send_updates() -> None:
    sent = traffic(job_of((2, 1)))
    assert {party for party, one in sent.items() if one.sends_update} == {"a0", "a1"}


def test_half_the_word_is_half_the_embedding() -> None:
    full, half = traffic(job_of(word_bits=32)), traffic(job_of(word_bits=16))
    assert all(2 * half[party].embedding == full[party].embedding for party in full)


def test_a_plain_job_sends_floats() -> None:
    assert traffic(job_of(mode="insecure-plain", word_bits=16)) == traffic(job_of(word_bits=32))
