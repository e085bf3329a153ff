"""Whoever keeps every byte that the aggregator receives finds no feature, embedding, gradient or id among them.

The detector slides over the recording byte by byte and looks for any two neighbouring values (8 bytes) of what only the
parties know, as float32, as float64 and as fixed point. Runs without masks show that it finds them.
"""

from functools import cache
from itertools import product

import numpy as np
import pytest

from federation import Drbg
from vfedsec.config.job import Active, Alignment, Group, Job, ModelSpec, Security, Split, Training
from vfedsec.data.table import Table
from vfedsec.engines.simulation import Options, Simulation

PEOPLE = [f"person-{number:06d}" for number in range(240)]
GROUP = ("north", "south")
WINDOW = 8


def job_of(mode, *, word_bits=32, network="linear"):
    model = ModelSpec(name=network, options={"hidden": [6]} if network == "mlp" else {})
    return Job(
        name="tapped",
        active=Active(party="bank", columns=("income", "age"), model=model),
        groups=(
            Group(name="telco", parties=GROUP, columns=("minutes", "bills"), width=4, model=model),
            Group(name="shop", parties=("shop",), columns=("basket", "visits"), width=4, model=model),
        ),
        training=Training(epochs=2, batch_size=32, learning_rate=0.5),
        split=Split(test=0.2),
        alignment=Alignment(join="left"),
        security=Security(mode=mode, word_bits=word_bits, rekey_every=5),
    )


def tables():
    random = np.random.default_rng(5)

    def table(party, people, *columns, label=False):
        values = {name: random.normal(50, 20, len(people)) for name in columns}
        return Table.from_columns(party, people, values, random.integers(0, 2, len(people)) if label else None)

    return {
        "bank": table("bank", PEOPLE, "income", "age", label=True),
        "north": table("north", PEOPLE[:110], "minutes", "bills"),
        "south": table("south", PEOPLE[110:220], "minutes", "bills"),
        "shop": table("shop", PEOPLE[30:], "basket", "visits"),
    }


class Secrets:
    """Every array that only the parties know, as they come by in a run."""

    def __init__(self, simulation, given):
        self.features, self.embeddings, self.gradients = [], [], []
        self.formats = simulation.active.secure.formats
        for name, table in given.items():
            self.features += [np.asarray(column, np.float64) for column in table.columns.values()]
            self._watch(simulation.engine.parties[name], is_replicated=name in GROUP)

    def _watch(self, party, is_replicated):
        build = party._build

        def built():
            reply = build()
            self.features.append(party.model._table.astype(np.float64))
            self._watch_model(party.model, is_replicated)
            return reply

        party._build = built

    def _watch_model(self, model, is_replicated):
        forward, backward = model.forward, model.backward

        def forwarded(rows, *, training):
            self.embeddings.append(forward(rows, training=training).copy())
            return self.embeddings[-1].copy()

        def gone_back(gradient):
            result = backward(gradient)
            # A lone party's gradient never leaves it; in a group of several it is what is blinded.
            self.gradients.append(result.copy())
            return result

        model.forward, model.backward = forwarded, gone_back

    def plain(self):
        """As 64- and 32-bit floats, and the embeddings and gradients as nothing else."""
        for array in self.features:
            yield array.astype("<f8")
            yield array.astype("<f4")
        for array in (*self.embeddings, *self.gradients):
            yield array.astype("<f4")
            yield array.astype("<f8")

    def quantised(self):
        """As fixed point, rounded down and up: noise decides between the two."""
        for arrays, numbers in (
            (self.features, self.formats.embedding.numbers),
            (self.embeddings, self.formats.embedding.numbers),
            (self.gradients, self.formats.update.numbers),
        ):
            for array in arrays:
                fine = np.clip(np.float64(array) * float(numbers.scale), -float(numbers.limit), float(numbers.limit))
                low = np.floor(fine).astype(np.int64)
                for ups in product((0, 1), repeat=WINDOW // numbers.signed.itemsize):
                    yield (low + np.resize(ups, low.size).reshape(low.shape)).astype(numbers.signed)


def windows_of(arrays):
    """All 8-byte neighbourhoods of values, without those that say little: zeros and small numbers."""
    found = []
    for array in arrays:
        flat = np.ascontiguousarray(array).reshape(-1)
        raw = np.frombuffer(flat.tobytes(), np.uint8)
        size, count = flat.itemsize, max(WINDOW // flat.itemsize, 1)
        starts = np.arange(0, max(len(raw) - WINDOW + 1, 0), size)
        telling = np.abs(flat.astype(np.float64)) > (50 if flat.dtype.kind == "i" else 1e-12)
        keep = [telling[i : len(flat) - count + 1 + i] for i in range(count)]
        starts = starts[np.logical_and.reduce(keep)] if len(starts) else starts
        found.append(as_words(raw, starts))
    return np.unique(np.concatenate(found))


def as_words(raw, starts):
    return np.lib.stride_tricks.sliding_window_view(raw, WINDOW)[starts].copy().view("<u8").reshape(-1)


def hits(recording, arrays):
    """How many positions of the recording hold a window of these arrays."""
    windows = windows_of(arrays)
    total = 0
    for data in recording:
        raw = np.frombuffer(data, np.uint8)
        if len(raw) >= WINDOW:
            words = as_words(raw, np.arange(len(raw) - WINDOW + 1))
            total += int(np.isin(words, windows, kind="sort").sum())
    return total


@cache
def tapped(mode, word_bits=32, network="linear"):
    """A whole run from raw tables: alignment, encoding, training, evaluation, prediction."""
    heard = []
    given = tables()
    options = Options(entropy=Drbg("tap"), tap=lambda exchange, party, request, reply: heard.append(reply or b""))
    simulation = Simulation.from_tables(job_of(mode, word_bits=word_bits, network=network), given, options=options)
    secrets = Secrets(simulation, given)
    simulation.train()
    simulation.predict()
    simulation.finish()
    return heard, secrets


RUNS = pytest.mark.parametrize(("word_bits", "network"), [(32, "linear"), (16, "linear"), (32, "mlp")])


@RUNS
def test_no_plain_feature_embedding_or_gradient_reaches_the_aggregator(word_bits, network):
    heard, secrets = tapped("secure", word_bits, network)
    assert hits(heard, secrets.plain()) == 0


@RUNS
def test_no_quantised_feature_embedding_or_gradient_reaches_the_aggregator(word_bits, network):
    heard, secrets = tapped("secure", word_bits, network)
    assert hits(heard, secrets.quantised()) == 0


@pytest.mark.parametrize("mode", ["secure", "insecure-integers", "insecure-plain"])
def test_no_id_reaches_the_aggregator(mode):
    heard, _ = tapped(mode)
    everything = b"|".join(heard)
    assert len(everything) > 100_000
    for person in PEOPLE:
        assert person.encode() not in everything
        assert person[-6:].encode() not in everything


@pytest.mark.parametrize("mode", ["secure", "insecure-plain"])
def test_no_raw_feature_reaches_the_aggregator_in_any_mode(mode):
    heard, secrets = tapped(mode)
    assert hits(heard, [array.astype(kind) for array in secrets.features for kind in ("<f4", "<f8")]) == 0


def test_the_tap_finds_embeddings_and_gradients_where_nothing_protects_them():
    heard, secrets = tapped("insecure-plain")
    assert hits(heard, secrets.embeddings) > 1000
    assert hits(heard, secrets.gradients) > 100


@pytest.mark.parametrize("word_bits", [16, 32])
def test_the_tap_finds_them_where_they_are_only_rounded(word_bits):
    heard, secrets = tapped("insecure-integers", word_bits)
    bare = Secrets.__new__(Secrets)
    bare.formats, bare.features, bare.gradients, bare.embeddings = secrets.formats, [], [], secrets.embeddings
    assert hits(heard, bare.quantised()) > 1000
    bare.gradients, bare.embeddings = secrets.gradients, []
    assert hits(heard, bare.quantised()) > 100


def test_the_tap_finds_what_is_planted_at_any_offset():
    secret = np.random.default_rng(0).normal(size=(4, 4)).astype("<f4")
    for offset in range(9):
        recording = bytes(range(offset)) + secret[1].tobytes() + b"tail"
        assert hits([recording], [secret]) == 3


def test_the_secrets_hold_every_party_s_numbers():
    _, secrets = tapped("secure")
    assert len(secrets.features) == 4 * 2 + 4
    assert len(secrets.embeddings) > 50
    assert len(secrets.gradients) > 20
