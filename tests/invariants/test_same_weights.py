"""The same seed gives the same weights bit for bit, with masks or without, whatever the keys."""

import msgspec
import numpy as np
import pytest

from federation import Federation, in_mode, job_of, rows_of, trained
from vfedsec.config.job import ModelSpec

MLP = ModelSpec(name="mlp", options={"hidden": [5]})

JOBS = {
    "concat": {},
    "sum": {"fusion": "sum"},
    "one group of several": {"groups": (3,)},
    "groups of several": {"groups": (2, 2)},
    "lone parties": {"groups": (1, 1, 1)},
    "narrow words": {"word_bits": 16},
    "new keys every round": {"rekey_every": 1},
    "new keys every third round": {"rekey_every": 3},
    "losing parties": {"drop": 0.5, "rekey_every": 3},
    "losing parties, narrow": {"drop": 0.5, "rekey_every": 3, "word_bits": 16},
    "losing parties of a sum": {"drop": 0.5, "fusion": "sum", "groups": (2, 2)},
    "losing parties and rounds": {"drop": 0.5, "policy": "discard"},
    "adam and an mlp": {"model": MLP, "training": {"optimizer": "adam"}},
    "evaluated between": {"training": {"evaluate_every": 3}},
}
EVERY_JOB = pytest.mark.parametrize("options", JOBS.values(), ids=JOBS)


def ended(options, *, mode="secure", seed="keys"):
    job = in_mode(job_of(**({"rounds": 25} | options)), mode)
    federation = trained(job, seed=seed)
    federation.simulation.finish()
    return federation


def told(federation):
    """Every event but those of keys."""
    return [event for event in federation.events if type(event).__name__ not in ("RunStarted", "KeyRenewed")]


@EVERY_JOB
def test_masks_change_no_weight(options):
    masked, bare = ended(options), ended(options, mode="insecure-integers")
    assert masked.weights() == bare.weights()
    assert told(masked) == told(bare)


@EVERY_JOB
def test_ephemeral_keys_change_no_weight(options):
    one, two = ended(options), ended(options, seed="other keys")
    assert one.weights() == two.weights()
    assert [heard.reply for heard in one.heard] != [heard.reply for heard in two.heard]


@EVERY_JOB
def test_replicas_of_a_group_end_with_the_same_weights(options):
    federation = ended(options)
    for group in federation.job.groups:
        current = {federation.weights()[party] for party in group.parties if is_current(federation, party)}
        assert len(current) == 1


def is_current(federation, party):
    """A member that was lost in the last rounds may be behind, and says so by its round."""
    rounds = [federation.parties[name].model_round for name in federation.simulation.roles.group_of(party).parties]
    return federation.parties[party].model_round == max(rounds)


def test_the_seed_of_the_job_decides_the_weights():
    weights = [trained(job_of(seed=seed), rows=rows_of(job_of())).weights() for seed in (1, 2, 1)]
    assert weights[0] == weights[2]
    assert all(weights[0][name] != weights[1][name] for name in weights[0])


def test_the_features_decide_the_weights():
    job = job_of()
    one, two = (trained(job, rows=rows_of(job, seed=seed)).weights() for seed in (1, 2))
    assert all(one[name] != two[name] for name in one)


def test_fixed_point_moves_the_weights_by_little():
    """Plain floats are another arithmetic, so not bit for bit, and still the same training."""
    fixed, plain = (parameters(ended({}, mode=mode)) for mode in ("insecure-integers", "insecure-plain"))
    for name in fixed:
        assert np.abs(fixed[name] - plain[name]).max() < 1e-4
        assert (fixed[name] != plain[name]).any()


def parameters(federation):
    """All numbers of each party's bottom model."""
    result = {}
    for name, state in federation.weights().items():
        tensors = msgspec.msgpack.decode(state)["tensors"]
        floats = [np.frombuffer(entry[2], "<f4") for entry in tensors.values() if entry[0] == "float32"]
        result[name] = np.concatenate(floats)
    return result


def test_a_run_driven_exchange_by_exchange_is_the_same_run():
    whole = ended({})
    stepped = Federation(job_of(rounds=25), seed="keys")
    stepped.start()
    while stepped.step():
        pass
    stepped.simulation.finish()
    assert stepped.weights() == whole.weights()


def test_predicting_changes_no_weight():
    federation = trained(job_of())
    before = federation.weights()
    federation.simulation.predict()
    after = federation.weights()
    # The gradient of the last training round had been applied before the evaluation that followed it.
    assert before == after
