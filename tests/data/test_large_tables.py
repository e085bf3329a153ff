"""A table of a million rows and fifty columns stays within two gigabytes from the file to the features."""

import os
import subprocess
import sys

import duckdb
import pytest

ROWS, MOST_BYTES = 1_000_000, 2 * 10**9

NUMBERS = [f"random() * {place + 1} AS n{place}" for place in range(37)]
WHOLE = [f"(random() * {10 ** (place + 1)})::INT AS i{place}" for place in range(3)]
TEXTS = [f"'word ' || (random() * {place + 4})::INT AS t{place}" for place in range(6)]
OTHERS = [
    "random() < 0.5 AS b",
    "DATE '2010-01-01' + (random() * 4000)::INT AS d",
    "TIMESTAMP '2010-01-01' + INTERVAL (random() * 1e8) SECOND AS s",
    "CASE WHEN random() < 0.1 THEN NULL ELSE random() END AS gaps",
]

CODE = """
import resource, sys
from pathlib import Path
from vfedsec.config.party import DataSource, PartyFile
from vfedsec.data.encoding import Encoder
from vfedsec.data.sources import load
from vfedsec.data.summaries import summarise

path = Path(sys.argv[1])
party = PartyFile(name="bank", data=DataSource(source=path.name, id="id"))
table = load(party, path.parent, None, with_label=False)
features = Encoder(summarise(table, list(table.columns))).transform(table)
print(len(table.columns), *features.shape, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024)
"""


@pytest.mark.skipif("FAST" in os.environ, reason="writes and reads a table of a million rows")
def test_a_million_rows_of_fifty_columns_load_and_encode_in_two_gigabytes(tmp_path):
    path = tmp_path / "large.parquet"
    columns = ", ".join(["'customer ' || range AS id", *NUMBERS, *WHOLE, *TEXTS, *OTHERS])
    with duckdb.connect() as connection:
        connection.execute(f"COPY (SELECT {columns} FROM range({ROWS})) TO '{path}'")
    done = subprocess.run([sys.executable, "-c", CODE, path], check=True, capture_output=True, text=True, timeout=300)
    held, rows, width, peak = map(int, done.stdout.split())
    assert (held, rows) == (50, ROWS)
    assert width > 90
    assert peak < MOST_BYTES, f"{peak / 1e9:.2f} GB"
