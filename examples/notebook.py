"""The whole of it in a notebook: tables in memory, a job from a dictionary, a run that loses parties, predictions.

Each `# %%` begins a cell. A clinic knows who fell ill; two laboratories and a pharmacy know other things about the same
people.
"""

# %% Everybody has columns of their own; the ids tell whose they are.
import numpy as np

from vfedsec import Simulation, Table, job_from

random = np.random.default_rng(1)
people = np.arange(3000)
weight, marker, dose = random.normal(size=(3, len(people)))
ill = weight + 2 * marker + dose + random.normal(size=len(people)) > 1
north, south = np.split(random.permutation(people), [1400])
at_pharmacy = random.permutation(people)[:2500]
tables = {
    "clinic": Table.from_columns("clinic", people, {"weight": weight}, label=ill.astype(int)),
    "lab_north": Table.from_columns("lab_north", north, {"marker": marker[north]}),
    "lab_south": Table.from_columns("lab_south", south, {"marker": marker[south]}),
    "pharmacy": Table.from_columns("pharmacy", at_pharmacy, {"dose": dose[at_pharmacy]}),
}

# %% What they agree on. Four training rounds in ten lose a party.
job = job_from(
    {
        "name": "clinic",
        "active": {"party": "clinic", "columns": ["weight"]},
        "groups": [
            {"name": "labs", "parties": ["lab_north", "lab_south"], "columns": ["marker"], "width": 8},
            {"name": "pharmacies", "parties": ["pharmacy"], "columns": ["dose"], "width": 8},
        ],
        "training": {"epochs": 10, "batch_size": 128, "optimizer": "adam", "learning_rate": 0.01},
        "alignment": {"join": "left"},
        "simulation": {"drop_probability": 0.4},
    }
)

# %% Align, encode, train; nobody hands out a column.
simulation = Simulation.from_tables(job, tables)
result = simulation.train()
tally = result.tally
print(f"AUC {result.metrics['auc']:.3f}: {tally.trained} rounds whole, {tally.padded} padded, {tally.dropped} dropped")

# %% Predict for everybody the clinic knows. The outputs are the clinic's alone.
predictions = simulation.predict()
print(f"{len(predictions)} predictions, for person 7: {predictions['7'][0]:.3f}")
