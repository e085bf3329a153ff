"""A whole federation in one process."""

import msgspec
import numpy as np
import pytest

from federation import ACTIVE, Drbg, Federation, job_of, rows_of, trained
from vfedsec import trace
from vfedsec.config.job import AGGREGATOR
from vfedsec.config.party import DataSource, PartyFile
from vfedsec.crypto.keys import Identity
from vfedsec.data.table import Table
from vfedsec.engines.secrets import Secrets
from vfedsec.engines.simulation import Options, Simulation
from vfedsec.errors import ConfigError, DataError, LocalProtocolError
from vfedsec.protocol.interfaces import ABSENT_ROW

TASKS = {
    "binary": {},
    "multiclass": {"kind": "multiclass", "classes": ("low", "middle", "high")},
    "regression": {"kind": "regression"},
}


def with_task(job, **task):
    return msgspec.structs.replace(job, task=type(job.task)(**task))


# -- training and predicting --


def test_training_learns_what_the_features_say():
    job = job_of((2, 1), rounds=300, training={"learning_rate": 0.3})
    rows = rows_of(job, rows=400)
    batches = rows[ACTIVE].batches
    partners = batches.partner_rows("b0", np.arange(400))
    signal = rows[ACTIVE].features.sum(axis=1) + rows["b0"].features[partners].sum(axis=1)
    batches._labels[:400] = np.where(partners >= 0, signal, 0) > 0
    result = Federation(job, rows, keep=False).simulation.train()
    assert result.metrics["accuracy"] > 0.9


@pytest.mark.parametrize("task", TASKS.values(), ids=TASKS)
def test_every_task_is_trained_evaluated_and_predicted(task):
    job = with_task(job_of((2, 1), rounds=12), **task)
    federation = trained(job)
    outputs = federation.simulation.predict()
    assert len(outputs) == 160
    assert {len(output) for output in outputs.values()} == {job.output_width}
    if job.task.kind != "regression":
        assert all((output >= 0).all() and (output <= 1).all() for output in outputs.values())
    assert np.isfinite(list(federation.simulation.aggregator.evaluations[-1].metrics.values())).all()


def rare_rows(job):
    """Rows of which one in ten is positive, and the features say little."""
    rows = rows_of(job, rows=400)
    labels = rows[ACTIVE].batches._labels
    labels[:400] = rows[ACTIVE].features[:, 0] + np.random.default_rng(2).normal(size=400) > 1.8
    assert 0.05 < labels[:400].mean() < 0.2
    return rows


def weighted_run(class_weights, mode="secure"):
    job = with_task(job_of((2, 1), rounds=60, mode=mode), class_weights=class_weights)
    federation = Federation(job, rare_rows(job), watched=False)
    federation.simulation.train()
    return federation.simulation


def test_balancing_is_training_with_the_weights_that_balance():
    batches = rare_rows(job_of((2, 1)))[ACTIVE].batches
    rows = batches.class_rows(2)
    assert sum(rows) == 300
    balanced = weighted_run("balanced")
    listed = weighted_run(tuple(300 / (2 * count) for count in rows))
    assert balanced.aggregator._top.dump() == listed.aggregator._top.dump()
    assert balanced.aggregator.evaluations == listed.aggregator.evaluations


def test_balanced_classes_find_more_of_the_rare_one():
    found = {weights: np.array(list(weighted_run(weights).predict().values())) for weights in (None, "balanced")}
    assert found["balanced"].mean() > found[None].mean() + 0.1


def test_weights_of_one_train_as_no_weights():
    plain, ones = (weighted_run(weights, mode="insecure-plain") for weights in (None, (1.0, 1.0)))
    assert ones.aggregator._top.dump() == plain.aggregator._top.dump()
    assert ones.aggregator.evaluations == plain.aggregator.evaluations


def test_predictions_are_known_to_the_active_party_by_id():
    outputs = trained(job_of()).simulation.predict()
    assert set(outputs) == {f"person-{number}" for number in range(160)}


def test_predicting_twice_gives_nearly_the_same_numbers():
    """Rounding noise is fresh in every round, and small."""
    simulation = trained(job_of()).simulation
    one, two = simulation.predict(), simulation.predict()
    assert max(abs(one[person] - two[person]).max() for person in one) < 1e-5


def test_a_prediction_gives_nothing_of_an_earlier_one():
    federation = trained(job_of(rounds=3))
    federation.simulation.predict()
    for output in federation.simulation.active.outputs.values():
        output[:] = np.nan
    federation.script.only = lambda exchange: exchange.kind == "predict"
    federation.script.lose(ACTIVE)
    assert np.isfinite(list(federation.simulation.predict().values())).all()


def test_evaluations_come_as_often_as_the_job_says():
    federation = trained(job_of(rounds=9, training={"evaluate_every": 3}))
    history = federation.simulation.aggregator.evaluations
    assert [(one.kind, one.trained_rounds) for one in history] == [
        ("validation", 3),
        ("validation", 6),
        ("test", 9),
    ]


def test_the_result_is_that_of_the_last_test_pass():
    federation = Federation(job_of(rounds=6))
    result = federation.simulation.train()
    assert result.metrics == result.history[-1].metrics
    assert result.history[-1].kind == "test"
    assert result.tally.rounds == 6


def test_events_tell_the_run_from_beginning_to_end():
    federation = trained(job_of(rounds=5))
    federation.simulation.finish()
    assert isinstance(federation.events[0], trace.RunStarted)
    assert federation.events[0].rounds_planned == 5
    assert isinstance(federation.events[-1], trace.RunEnded)
    assert len(federation.rounds()) == 5
    assert all(event.loss > 0 for event in federation.rounds())


def test_every_round_of_training_has_a_loss_and_it_falls():
    federation = trained(job_of((1, 1), rounds=200, training={"learning_rate": 0.2}))
    losses = [event.loss for event in federation.rounds()]
    assert np.mean(losses[-20:]) < np.mean(losses[:20])


def test_preparing_twice_is_preparing_once():
    federation = Federation(job_of())
    federation.simulation.prepare()
    heard = len(federation.heard)
    federation.simulation.prepare()
    assert len(federation.heard) == heard


def test_another_run_over_the_same_rows_aligns_nothing_anew():
    first = trained(job_of())
    again = first.simulation.again(job_of(), Options(entropy=Drbg("again")))
    again.train()
    models = {name: party.model.dump() for name, party in again.engine.parties.items()}
    assert models == {name: state for name, state in first.weights().items() if name != "top"}


def test_another_run_can_be_asked_for_before_the_first():
    federation = Federation(job_of())
    federation.simulation.again(job_of()).prepare()
    assert federation.simulation.rows.keys() == federation.parties.keys()


@pytest.mark.parametrize("make", [Simulation.from_tables, Simulation.from_prepared])
def test_rows_are_needed_for_every_party(make):
    with pytest.raises(ConfigError, match="found none for active, a0, a1, b0"):
        make(job_of(), {})


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"stranger": Table.from_columns("stranger", ["1"], {})}, "found one for stranger"),
        ({"a0": Table.from_columns("a1", ["1"], {})}, "expected the table of a0, found that of a1"),
        ({"a0": "a0.csv"}, "expected the Table of a0, found a value of type str"),
    ],
)
def test_every_party_gets_its_own_table(changes, message):
    tables = {name: Table.from_columns(name, ["1"], {}) for name in (ACTIVE, "a0", "a1", "b0")}
    with pytest.raises(ConfigError, match=message):
        Simulation.from_tables(job_of(), tables | changes)


def test_a_table_without_labels_cannot_be_trained_on_and_the_error_says_so():
    tables = {name: Table.from_columns(name, range(40), {"x": range(40)}) for name in (ACTIVE, "a0", "a1", "b0")}
    job = msgspec.structs.replace(
        job_of(), groups=tuple(msgspec.structs.replace(group, columns=("x",)) for group in job_of().groups)
    )
    with pytest.raises(DataError, match="no training rows: expected labels in the table of active"):
        Simulation.from_tables(job, tables).train()


def test_a_simulation_trains_once():
    """A cell of a notebook that is run again must not seem to train."""
    simulation = Federation(job_of()).simulation
    simulation.train()
    with pytest.raises(LocalProtocolError, match="has trained before: make a new one"):
        simulation.train()
    assert simulation.predict()


def test_it_is_told_who_holds_how_many_rows():
    simulation = Federation(job_of()).simulation
    with pytest.raises(LocalProtocolError, match="preparation is not over"):
        simulation.rows_held()
    simulation.prepare()
    held = simulation.rows_held()
    batches = simulation.active.batches
    used = np.arange(held[ACTIVE], dtype=np.int32)
    for party in ("a0", "a1", "b0"):
        assert held[party] == np.count_nonzero(batches.partner_rows(party, used) != ABSENT_ROW) > 0


def test_the_jobs_own_dropouts_are_used_unless_others_are_given():
    struck = trained(job_of(drop=1.0))
    assert struck.of_type(trace.PartyLost)
    spared = Federation(job_of(drop=1.0), faults=type(struck.script)())
    spared.simulation.train()
    assert not spared.of_type(trace.PartyLost)


def test_fresh_keys_are_drawn_from_the_system_unless_others_are_given():
    job = job_of(rounds=1)
    runs = []
    for _ in range(2):
        simulation = Simulation.from_prepared(job, rows_of(job))
        simulation.prepare()
        runs.append(simulation.aggregator._board.context.run_id)
    assert runs[0] != runs[1]
    assert len(runs[0]) == 16


# -- who is who --


def file_of(name, **fields):
    return PartyFile(name=name, data=DataSource(source="x.csv", id="id"), **fields)


def test_a_simulations_secrets_follow_the_seed_and_the_name():
    one, same, other = Secrets(job_of(), {}), Secrets(job_of(), {}), Secrets(job_of(seed=2), {})
    names = (ACTIVE, "a0", "a1", "b0")
    assert len({one.private_seed(name) for name in names}) == 4
    assert [one.private_seed(name) for name in names] == [same.private_seed(name) for name in names]
    assert not {one.private_seed(name) for name in names} & {other.private_seed(name) for name in names}
    assert one.identity("a0").public.raw == same.identities["a0"].raw != other.identities["a0"].raw
    assert set(one.identities) == {AGGREGATOR, *names}


def test_a_partys_own_seed_takes_the_place_of_the_derived_one(tmp_path):
    files = {"a0": (file_of("a0", seed="own"), tmp_path)}
    one, two = Secrets(job_of(seed=1), files), Secrets(job_of(seed=2), files)
    assert one.private_seed("a0") == two.private_seed("a0") != Secrets(job_of(seed=1), {}).private_seed("a0")


def test_a_partys_own_identity_is_read_from_its_file(tmp_path):
    identity = Identity.from_seed(bytes(range(32)))
    (tmp_path / "key.pem").write_bytes(identity.pem())
    secrets = Secrets(job_of(), {"a0": (file_of("a0", identity="key.pem"), tmp_path)})
    assert secrets.identities["a0"].raw == identity.public.raw


@pytest.mark.parametrize("content", [None, b"", b"no key"])
def test_an_identity_that_cannot_be_read_is_refused_by_name(tmp_path, content):
    if content is not None:
        (tmp_path / "key.pem").write_bytes(content)
    with pytest.raises(ConfigError, match=r"key\.pem: expected the Ed25519 key of a0, found: "):
        Secrets(job_of(), {"a0": (file_of("a0", identity="key.pem"), tmp_path)})


def test_a_key_that_the_job_does_not_pin_is_refused(tmp_path):
    (tmp_path / "key.pem").write_bytes(Identity.from_seed(bytes(range(32))).pem())
    files = {"a0": (file_of("a0", identity="key.pem"), tmp_path)}
    names = (AGGREGATOR, ACTIVE, "a0", "a1", "b0")
    pinned = {name: Identity.from_seed(name.encode().ljust(32)).public.text() for name in names}
    with pytest.raises(ConfigError, match="the key of a0 is not the one that the job pins"):
        Secrets(msgspec.structs.replace(job_of(), identities=pinned), files)


def test_no_repr_of_a_simulations_parts_shows_a_secret():
    secrets = Secrets(job_of(), {})
    shown = repr(secrets.identity("a0")) + repr(file_of("a0", seed="own words"))
    assert "own words" not in shown
    assert "redacted" in shown
