"""The whole of it in a notebook: tables in memory, a job from a dictionary, a run that loses parties, predictions.

Each `# %%` begins a cell. The same people are known to a clinic, which also knows who fell ill, and to two laboratories.
"""

# %% Everybody has columns of their own; the ids tell whose they are.
import numpy as np

from vfedsec import Simulation, Table, job_from

random = np.random.default_rng(1)
people = np.arange(3000)
weight, marker, dose = random.normal(size=(3, len(people)))
ill = (weight + 2 * marker * dose + random.normal(size=len(people)) > 1).astype(int)
seen_by_lab_a, seen_by_lab_b = np.split(random.permutation(people), [1400])
tables = {
    "clinic": Table.from_columns("clinic", people, {"weight": weight}, label=ill),
    "lab_a": Table.from_columns("lab_a", seen_by_lab_a, {"marker": marker[seen_by_lab_a], "dose": dose[seen_by_lab_a]}),
    "lab_b": Table.from_columns("lab_b", seen_by_lab_b, {"marker": marker[seen_by_lab_b], "dose": dose[seen_by_lab_b]}),
}

# %% What they agree on. Four training rounds in ten lose a laboratory.
job = job_from(
    {
        "name": "clinic",
        "active": {"party": "clinic", "columns": ["weight"]},
        "groups": [
            {
                "name": "labs",
                "parties": ["lab_a", "lab_b"],
                "columns": ["marker", "dose"],
                "model": {"name": "mlp", "options": {"hidden": [32]}},
            }
        ],
        "training": {"epochs": 20, "batch_size": 128, "optimizer": "adam", "learning_rate": 0.01},
        "simulation": {"drop_probability": 0.4},
    }
)

# %% Align, encode, train; nobody hands out a column.
simulation = Simulation.from_tables(job, tables)
result = simulation.train()
print(f"AUC {result.metrics['auc']:.3f} after {result.tally.rounds} rounds, {result.tally.padded} of them padded")

# %% Predict for everybody the clinic knows. The outputs are the clinic's alone.
predictions = simulation.predict()
print(f"{len(predictions)} predictions, the first: {predictions['0'][0]:.3f}")
