"""One table in every format a party may keep it in, read to the same bits and trained to the same weights."""

import datetime as dt
import gzip
import json
import math
import sqlite3

import duckdb
import numpy as np
import pytest

import postgres
from vfedsec.config.job import Active, Group, Job, Training
from vfedsec.config.party import DataSource, PartyFile
from vfedsec.data.databases import attach
from vfedsec.data.duck import connected
from vfedsec.data.encoding import Encoder
from vfedsec.data.origin import Origin
from vfedsec.data.sources import load
from vfedsec.data.summaries import summarise
from vfedsec.engines.simulation import Simulation
from vfedsec.errors import DataError

COLUMNS = ("age", "income", "visits", "town", "since", "seen", "member")
ROWS = 240


def rows():
    """Numbers of many digits, whole numbers, texts, dates, times and booleans, most with gaps."""
    draw = np.random.default_rng(7)
    for row in range(ROWS):
        gap = row % 11 == 5
        yield {
            "id": f"c{row:04}",
            "age": float(draw.normal(40, 10)),
            "income": None if gap else float(math.exp(draw.normal(10, 3)) / 3),
            "visits": int(draw.integers(0, 30)),
            "town": None if gap else ["Ulm", "Köln", 'Bad "Ems"', "a,b;c"][int(draw.integers(4))],
            "since": None if gap else dt.date(2015, 1, 1) + dt.timedelta(int(draw.integers(3000))),
            "seen": dt.datetime(2024, 1, 1) + dt.timedelta(seconds=float(np.round(draw.uniform(0, 1e7), 6))),
            "member": bool(draw.integers(2)),
            "sold": int(draw.integers(2)),
        }


TABLE = list(rows())
TYPES = (
    "id text, age double precision, income double precision, visits integer, town text, since date, "
    "seen timestamp, member boolean, sold integer"
)


def sql_cell(value):
    if value is None:
        return "NULL"
    if isinstance(value, bool | int | float):
        return repr(value)
    return "'" + str(value).replace("'", "''") + "'"


VALUES = ", ".join(f"({', '.join(map(sql_cell, row.values()))})" for row in TABLE)


def text_of(value):
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    text = str(value)
    return '"' + text.replace('"', '""') + '"' if set(text) & set('",;') else text


def csv_text(delimiter=","):
    lines = [delimiter.join(TABLE[0])]
    lines += [delimiter.join(map(text_of, row.values())) for row in TABLE]
    return "\n".join(lines) + "\n"


def json_row(row):
    return {name: value.isoformat() if isinstance(value, dt.date) else value for name, value in row.items()}


def write_csv(folder):
    (folder / "t.csv").write_text(csv_text())
    return {"source": "t.csv"}


def write_semicolons_compressed(folder):
    (folder / "t.csv.gz").write_bytes(gzip.compress(csv_text(";").encode()))
    return {"source": "t.csv.gz"}


def write_parquet(folder):
    with duckdb.connect() as connection:
        connection.execute(f"CREATE TABLE t ({TYPES})")
        connection.execute(f"INSERT INTO t VALUES {VALUES}")
        connection.execute(f"COPY t TO '{folder}/t.parquet'")
    return {"source": "t.parquet"}


def write_json(folder):
    (folder / "t.json").write_text(json.dumps([json_row(row) for row in TABLE]))
    return {"source": "t.json"}


def write_json_lines(folder):
    (folder / "t.jsonl").write_text("".join(json.dumps(json_row(row)) + "\n" for row in TABLE))
    return {"source": "t.jsonl"}


def write_sqlite(folder):
    connection = sqlite3.connect(folder / "t.sqlite")
    with connection:
        # SQLite knows neither dates nor booleans: they are texts in it.
        connection.execute(f"CREATE TABLE t ({TYPES.replace('boolean', 'text')})")
        marks = ", ".join("?" * len(TABLE[0]))
        cells = [[text_of(v) if isinstance(v, bool | dt.date) else v for v in row.values()] for row in TABLE]
        connection.executemany(f"INSERT INTO t VALUES ({marks})", cells)
    connection.close()
    return {"source": "t.sqlite"}


def write_arrays(folder):
    columns = {name: [row[name] for row in TABLE] for name in TABLE[0]}
    as_numbers = {name: np.array(columns[name], dtype=float) for name in ("age", "income", "visits")}
    as_dates = {name: np.array(columns[name], "datetime64[us]") for name in ("since", "seen")}
    town = np.array([town or "" for town in columns["town"]])
    member, sold = np.array(columns["member"]), np.array(columns["sold"])
    np.savez(
        folder / "t.npz", id=np.array(columns["id"]), town=town, member=member, sold=sold, **as_numbers, **as_dates
    )
    return {"source": "t.npz"}


def write_query(folder):
    write_parquet(folder)
    write_sqlite(folder)
    query = "SELECT p.* EXCLUDE (town), s.town FROM 't.parquet' p JOIN old.t s USING (id)"
    return {"query": query, "attach": {"old": "t.sqlite"}}


WRITERS = {
    writer.__name__.removeprefix("write_"): writer
    for writer in (
        write_csv,
        write_semicolons_compressed,
        write_parquet,
        write_json,
        write_json_lines,
        write_sqlite,
        write_arrays,
        write_query,
    )
}


@pytest.fixture(scope="module")
def address():
    """Of a PostgreSQL server that has the table."""
    with postgres.server() as address:
        with connected() as connection:
            attach(Origin("test", address), connection, "server", address, None)
            connection.execute("DETACH server")
            connection.execute(f"ATTACH '{address}' AS server (TYPE postgres)")
            connection.execute(f"CREATE TABLE server.t ({TYPES})")
            connection.execute(f"INSERT INTO server.t VALUES {VALUES}")
            connection.execute("CREATE SCHEMA server.other")
            connection.execute("CREATE TABLE server.other.lonely (id text, word text)")
            connection.execute("INSERT INTO server.other.lonely VALUES ('a', 'x'), (NULL, 'y')")
            connection.execute("CREATE TABLE server.other.t (id text)")
            view = "CREATE VIEW broken AS SELECT word AS id, word::int AS x FROM other.lonely"
            connection.execute("CALL postgres_execute('server', ?)", [view])
        yield address


def table_of(folder, party="bank", columns=COLUMNS, **data):
    source = DataSource(**{"id": "id", "label": "sold", **data})
    return load(PartyFile(name=party, data=source), folder, columns, with_label=True)


def features(table):
    return Encoder(summarise(table, COLUMNS)).transform(table)


def by_id(table):
    return dict(zip(table.ids, zip(features(table).tolist(), table.label, strict=True), strict=True))


@pytest.fixture(scope="module")
def from_csv(tmp_path_factory):
    folder = tmp_path_factory.mktemp("csv")
    return table_of(folder, **write_csv(folder))


@pytest.mark.parametrize("write", WRITERS.values(), ids=WRITERS)
def test_every_format_gives_the_same_features_bit_for_bit(tmp_path, from_csv, write):
    assert by_id(table_of(tmp_path, **write(tmp_path))) == by_id(from_csv)


def test_a_server_gives_the_same_features_bit_for_bit(address, from_csv, tmp_path):
    assert by_id(table_of(tmp_path, source=address, table="t")) == by_id(from_csv)


def test_a_query_over_a_server_gives_the_same_features(address, from_csv, tmp_path):
    query = {"query": "SELECT * FROM crm.t", "attach": {"crm": address}}
    assert by_id(table_of(tmp_path, **query)) == by_id(from_csv)


def test_a_table_of_another_schema_is_named_with_it(address, tmp_path):
    source = DataSource(source=address, table="other.lonely", id="word")
    table = load(PartyFile(name="bank", data=source), tmp_path, ["id"], with_label=False)
    assert (table.ids, table.columns["id"].cells()) == (["x", "y"], ["a", None])


@pytest.mark.parametrize(("table", "message"), [("", "has several tables, and data"), ("u", "has no table 'u'")])
def test_what_a_server_keeps_about_itself_is_no_table(address, tmp_path, table, message):
    party = PartyFile(name="bank", data=DataSource(source=address, table=table, id="id"))
    with pytest.raises(DataError, match=f"{message}.*there are: other.lonely, other.t, public.broken, public.t$"):
        load(party, tmp_path, [], with_label=False)


def test_what_a_server_says_of_a_cell_is_not_told(address, tmp_path):
    party = PartyFile(name="bank", data=DataSource(source=address, table="broken", id="id"))
    with pytest.raises(DataError, match=r"ERROR:  invalid input syntax for type integer: \.\.\.$"):
        load(party, tmp_path, ["x"], with_label=False)


# -- the whole way to weights --

JOB = Job(
    name="formats",
    active=Active(party="bank", columns=COLUMNS[:3]),
    groups=(Group(name="shops", parties=("shop",), columns=COLUMNS[3:], width=4),),
    training=Training(batch_size=32, rounds=12, learning_rate=0.05),
)


def weights(tables):
    simulation = Simulation.from_tables(JOB, tables)
    simulation.train()
    parties = {name: simulation.engine.parties[name].model.dump() for name in ("bank", "shop")}
    return parties | {"top": simulation.aggregator._conclusion._top.dump()}


def trained_from(folder, **data):
    return weights({party: table_of(folder, party, JOB_COLUMNS[party], **data) for party in JOB_COLUMNS})


JOB_COLUMNS = {"bank": COLUMNS[:3], "shop": COLUMNS[3:]}


def test_csv_parquet_sqlite_and_postgresql_train_the_same_weights_bit_for_bit(tmp_path, address):
    sources = {"csv": write_csv(tmp_path), "parquet": write_parquet(tmp_path), "sqlite": write_sqlite(tmp_path)}
    sources["postgresql"] = {"source": address, "table": "t"}
    trained = {name: trained_from(tmp_path, **source) for name, source in sources.items()}
    assert all(found == trained["csv"] for found in trained.values())
