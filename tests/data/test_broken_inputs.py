"""What may be wrong with a source: one clear line that names party, place, column and row, and never a cell."""

import gzip
import io
import json
import sqlite3
import struct
import zipfile

import duckdb
import numpy as np
import pytest

from vfedsec.config.job import Task
from vfedsec.config.party import DataSource, PartyFile
from vfedsec.data import array_files
from vfedsec.data.labels import encode_labels
from vfedsec.data.sources import load
from vfedsec.data.summaries import summarise
from vfedsec.errors import DataError

SECRET = "s3cret"
"""Stands in a cell of every broken input, and in no message."""


@pytest.fixture
def folder(tmp_path):
    return tmp_path


def read(folder, columns=("x",), with_label=True, task=None, **data):
    """What a party does before it writes a single letter."""
    source = DataSource(**{"id": "id", "label": "y", **data})
    table = load(PartyFile(name="bank", data=source), folder, columns, with_label)
    summarise(table, columns)
    if with_label:
        encode_labels(table, task or Task())
    return table


def csv_of(folder, text):
    raw = text if isinstance(text, bytes) else text.encode()
    (folder / "t.csv").write_bytes(raw)
    return {"source": "t.csv"}


def sqlite_of(folder, *statements):
    connection = sqlite3.connect(folder / "t.db")
    with connection:
        for statement in statements:
            connection.execute(statement)
    connection.close()
    return {"source": "t.db"}


def npz_of(folder, **arrays):
    columns = {"id": np.array(["a", "b"]), "y": np.array([0, 1]), "x": np.array([1.0, 2.0])}
    np.savez(folder / "t.npz", **columns | arrays)
    return {"source": "t.npz"}


def parquet_of(folder, select):
    with duckdb.connect() as connection:
        connection.execute(f"COPY ({select}) TO '{folder}/t.parquet'")
    return {"source": "t.parquet"}


def json_of(folder, text):
    (folder / "t.json").write_text(text)
    return {"source": "t.json"}


def idx_of(folder, head, data):
    (folder / "t-ubyte").write_bytes(head + data)
    return {"arrays": {"x": "t-ubyte"}, "id": "#", "with_label": False}


def idx_head(*sides, kind=0x08):
    return struct.pack(f">HBB{len(sides)}I", 0, kind, len(sides), *sides)


def bytes_of(folder, name, data):
    (folder / name).write_bytes(data)
    return {"source": name}


def npy_head(shape):
    head = f"{{'descr': '|u1', 'fortran_order': False, 'shape': {shape}, }}".encode()
    return b"\x93NUMPY\x01\x00\x76\x00" + head.ljust(117) + b"\n"


def zip_of(folder, members, name="t.npz", flags=0):
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for member, data in members.items():
            archive.writestr(member, data)
    raw = bytearray(packed.getvalue())
    raw[6] |= flags  # of the first member, where it stands and in the directory
    raw[raw.find(b"PK\x01\x02") + 8] |= flags
    return bytes_of(folder, name, bytes(raw))


GOOD = f"id,y,x,z\na,0,1,{SECRET}\nb,1,2,z\n"
BROKEN = {
    # -- CSV --
    "a file that is not there": (lambda f: {"source": "no.csv"}, "no.csv: the file cannot be read: No such file"),
    "a folder": (lambda f: (f / "t.csv").mkdir() or {"source": "t.csv"}, "t.csv: the file cannot be read"),
    "an empty file": (lambda f: csv_of(f, ""), "t.csv: the file is empty"),
    "a header alone": (lambda f: csv_of(f, "id,y,x\n"), "t.csv: there is a header and no rows"),
    "a row too short": (lambda f: csv_of(f, f"{GOOD}{SECRET},1\n"), "data row 3: the row has 2 fields, the header 4"),
    "a row too long": (
        lambda f: csv_of(f, f"{GOOD}c,1,2,3,{SECRET}\n"),
        "data row 3: the row has 5 fields, the header 4",
    ),
    "a quote left open": (
        lambda f: csv_of(f, f'{GOOD}c,1,"{SECRET},3\n'),
        "data row 3: the row is not valid CSV: a quote",
    ),
    "a row longer than DuckDB reads": (
        lambda f: csv_of(f, f"{GOOD}c,1,3,{SECRET * 400_000}\n"),
        "data row 3: the row is longer than what DuckDB reads, 2 MB",
    ),
    "a name longer than Python reads": (
        lambda f: csv_of(f, f"{'x' * 200_000}\n1\n"),
        "the header is not valid CSV: field",
    ),
    "a header without an end": (
        lambda f: csv_of(f, f"id,y,{'x' * (1 << 20)}\na,1,1\n"),
        "t.csv: the header is longer than 1048576 bytes",
    ),
    "a conversion that fails within CSV": (
        lambda f: (
            csv_of(f, f"id,y,x\na,0,{SECRET}\n") and {"query": "SELECT * FROM read_csv('t.csv', types={'x': 'INT'})"}
        ),
        "data.query, data row 1: the row is not valid CSV",
    ),
    "no UTF-8": (lambda f: csv_of(f, GOOD.encode() + b"c,1,\xff,3\n"), "t.csv: line 4 is not UTF-8 text"),
    "UTF-16": (lambda f: csv_of(f, GOOD.encode("utf-16-le")), "t.csv: the file holds zero bytes, so it is no text"),
    "line ends of two kinds": (
        lambda f: csv_of(f, "id,y,x\r\na,0,1\nb,1,2\n"),
        "not valid CSV: its lines do not all end alike",
    ),
    "a column named twice": (
        lambda f: csv_of(f, "id,y,x,x\na,0,1,2\n"),
        "column 'x': the header names this column 2 times",
    ),
    "no id column": (
        lambda f: csv_of(f, "key,y,x\na,0,1\n"),
        "t.csv, column 'id': there is no such column; there are ['key'",
    ),
    "an id that is missing": (
        lambda f: csv_of(f, "id,y,x\na,0,1\n,1,2\n"),
        "t.csv, column 'id', data row 2: the id is missing",
    ),
    "an id that stands twice": (
        lambda f: csv_of(f, f"id,y,x\n{SECRET},0,1\nb,1,2\n{SECRET},1,3\n"),
        "column 'id', data row 3: the id repeats that of data row 1",
    ),
    "a column of the job that is absent": (
        lambda f: csv_of(f, "id,y,w\na,0,1\n"),
        "t.csv, column 'x': there is no such column",
    ),
    "a text in a numeric column": (
        lambda f: csv_of(f, f"id,y,x\na,0,1\nb,1,{SECRET}\n") | {"kinds": {"x": "numeric"}},
        "t.csv, column 'x', data row 2: a numeric column holds a text",
    ),
    "an infinite number": (
        lambda f: csv_of(f, "id,y,x\na,0,1\nb,1,1e101\n"),
        "column 'x', data row 2: a number is infinite or beyond 1e+100",
    ),
    "no boolean": (
        lambda f: csv_of(f, f"id,y,x\na,0,yes\nb,1,{SECRET}\n") | {"kinds": {"x": "boolean"}},
        "column 'x', data row 2: a boolean column holds something else",
    ),
    "no date": (
        lambda f: csv_of(f, "id,y,x\na,0,2024-01-01\nb,1,2024-02-30\n") | {"kinds": {"x": "date"}},
        "column 'x', data row 2: a date column holds something else than ISO dates",
    ),
    "a label of no class": (
        lambda f: csv_of(f, f"id,y,x\na,0,1\nb,{SECRET},2\n"),
        "column 'y', data row 2: the label is none of the task's classes",
    ),
    "a label that is missing": (
        lambda f: csv_of(f, "id,y,x\na,0,1\nb,?,2\n"),
        "column 'y', data row 2: the label is missing",
    ),
    "a kind of no column": (
        lambda f: csv_of(f, GOOD) | {"kinds": {"q": "numeric"}},
        "t.csv, column 'q': there is no such column",
    ),
    "gzip cut short": (
        lambda f: bytes_of(f, "t.csv.gz", gzip.compress(GOOD.encode())[:-9]),
        "t.csv.gz: the file cannot be read: Compressed file ended",
    ),
    "no gzip": (
        lambda f: bytes_of(f, "t.csv.gz", GOOD.encode()),
        "t.csv.gz: the file cannot be read: Not a gzipped file",
    ),
    "a suffix nobody knows": (
        lambda f: bytes_of(f, "t.xlsx", b"PK"),
        "files that end in '.xlsx' cannot be read; supported: .csv,",
    ),
    # -- Parquet and JSON --
    "no Parquet": (lambda f: bytes_of(f, "t.parquet", SECRET.encode() * 9), "t.parquet: "),
    "Parquet cut short": (
        lambda f: (
            parquet_of(f, "SELECT range AS id, 0 AS y, 1 AS x FROM range(9)"),
            (f / "t.parquet").write_bytes((f / "t.parquet").read_bytes()[:-40]),
        )[0],
        "t.parquet: ",
    ),
    "a list in every cell": (
        lambda f: parquet_of(f, "SELECT 'a' AS id, 0 AS y, [1] AS x"),
        "t.parquet, column 'x': values of type INTEGER[] cannot be read as a column",
    ),
    "an infinite date": (
        lambda f: parquet_of(f, "SELECT 'a' AS id, 0 AS y, 'infinity'::DATE AS x"),
        "t.parquet, column 'x', data row 1: a date is infinite",
    ),
    **{
        f"a date of the year {year}": (
            lambda f, cell=cell: parquet_of(f, f"SELECT 'a' AS id, 0 AS y, {cell} AS x"),
            "t.parquet, column 'x', data row 1: a date is infinite or not of the years 1 to 9999",
        )
        for year, cell in {
            "44 BC": "DATE '0044-03-15 (BC)'",
            "20000": "TIMESTAMP '20000-01-01 10:00:00'",
            "5000000": "DATE '5000000-01-01'",
        }.items()
    },
    "an id with a fraction": (
        lambda f: parquet_of(f, "SELECT 1.5::DOUBLE AS id, 0 AS y, 1 AS x"),
        "t.parquet, column 'id': an id is a text or an integer, not DOUBLE",
    ),
    "an id that is null": (
        lambda f: parquet_of(f, "SELECT unnest(['a', NULL]) AS id, 0 AS y, 1 AS x"),
        "t.parquet, column 'id', data row 2: the id is missing",
    ),
    "no JSON": (
        lambda f: json_of(f, f'[{{"id": "a", "y": 0, "x": 1}}, {{"id": "{SECRET}'),
        "t.json: Malformed JSON in file ... near record 3",
    ),
    "JSON of two types": (
        lambda f: json_of(f, json.dumps([{"id": 1, "y": 0, "x": 1}, {"id": 2, "y": 1, "x": {"a": SECRET}}])),
        "t.json, column 'x': values of type JSON cannot be read as a column",
    ),
    # -- databases --
    "no database": (lambda f: bytes_of(f, "t.db", SECRET.encode() * 99), "t.db: the database cannot be read: "),
    "a database that is not there": (lambda f: {"source": "no.db"}, "no.db: the file cannot be read: No such file"),
    "a database without a table": (lambda f: sqlite_of(f), "t.db: the database has no table; there are: none"),
    "a table that is not there": (
        lambda f: sqlite_of(f, "CREATE TABLE t (id, y, x)") | {"table": "u"},
        "t.db: the database has no table 'u'; there are: main.t",
    ),
    "one of several tables": (
        lambda f: sqlite_of(f, "CREATE TABLE t (id)", "CREATE TABLE u (id)"),
        "t.db: the database has several tables, and data.table names none; there are: main.t, main.u",
    ),
    "a text where SQLite says integer": (
        lambda f: sqlite_of(
            f, "CREATE TABLE t (id text, y int, x int)", f"INSERT INTO t VALUES ('a', 0, 1), ('b', 1, '{SECRET}')"
        ),
        "t.db, column 'x', data row 2: a text stands in a column that the database declares numeric",
    ),
    "a fraction where SQLite says integer": (
        lambda f: sqlite_of(
            f, "CREATE TABLE t (id text, y int, x int)", "INSERT INTO t VALUES ('a', 0, 1), ('b', 1, 707.5)"
        ),
        "column 'x', data row 2: a number that is not whole stands in a column that the database declares whole",
    ),
    **{
        f"bytes {cell} where SQLite says text": (
            lambda f, cell=cell: sqlite_of(
                f,
                "CREATE TABLE t (id text, y int, x text)",
                f"INSERT INTO t VALUES ('{SECRET}', 0, 'a'), ('b', 1, {cell})",
            ),
            message,
        )
        for cell, message in {
            "x'00'": "t.db, column 'x': a value is not of the type that the database declares",
            "x'ff'": "t.db: bytes stand in a column that the database declares otherwise",
        }.items()
    },
    "a server that is not there": (
        lambda f: {"source": f"postgresql://me:{SECRET}@127.0.0.1:1/crm"},
        "postgresql://me@127.0.0.1:1/crm: the database cannot be read: ",
    ),
    # -- queries --
    "no SQL": (lambda f: {"query": "SELEC 1"}, 'data.query: Parser Error: syntax error at or near "SELEC"'),
    "two statements": (
        lambda f: {"query": "SELECT 1 AS id; DROP TABLE t"},
        "data.query: expected one SELECT and nothing else",
    ),
    "no SELECT": (
        lambda f: {"query": "COPY (SELECT 1) TO 'out.csv'"},
        "data.query: expected one SELECT and nothing else",
    ),
    "a file of a query that is not there": (lambda f: {"query": "SELECT * FROM 'no.parquet'"}, "data.query: "),
    "a conversion that fails": (
        lambda f: csv_of(f, GOOD) and {"query": "SELECT id, y, z::INT AS x FROM 't.csv'"},
        "data.query: Conversion Error: Could not convert string",
    ),
    "a conversion of a cell with a quote": (
        lambda f: {"query": f"SELECT 'a' AS id, 0 AS y, w::INT AS x FROM (SELECT 'O''B {SECRET}' AS w)"},
        "data.query: Conversion Error: Could not convert string ...",
    ),
    "a conversion of a cell of two lines": (
        lambda f: {"query": f"SELECT 'a' AS id, 0 AS y, w::INT AS x FROM (SELECT '{SECRET}' || chr(10) AS w)"},
        "data.query: Conversion Error: Could not convert string ...",
    ),
    "a number too large for a conversion": (
        lambda f: {"query": "SELECT 'a' AS id, 0 AS y, w::SMALLINT AS x FROM (SELECT 70707 AS w)"},
        "data.query: Conversion Error: Type INT32 with value ...",
    ),
    "an attached file that is not there": (
        lambda f: {"query": "SELECT * FROM a.t", "attach": {"a": "no.db"}},
        "data.attach.a: the file cannot be read: No such file",
    ),
    # -- arrays --
    "no npz": (
        lambda f: bytes_of(f, "t.npz", SECRET.encode()),
        "t.npz: the file cannot be read: File is not a zip file",
    ),
    "pickled objects": (
        lambda f: npz_of(f, x=np.array([{}, SECRET], dtype=object)),
        "t.npz: the file cannot be read: Object arrays cannot be loaded when allow_pickle=False",
    ),
    "arrays of different lengths": (
        lambda f: npz_of(f, x=np.zeros(3)),
        "t.npz: the arrays have different numbers of rows: id has 2, x has 3, y has 2",
    ),
    "an array of two axes": (
        lambda f: npz_of(f, x=np.zeros((2, 2))),
        "t.npz, column 'x': a column has one value a row, not 2 axes",
    ),
    "a lone value": (
        lambda f: npz_of(f, x=np.float64(3)),
        "t.npz, column 'x': the array is a single value, not one a row",
    ),
    "complex numbers": (
        lambda f: npz_of(f, x=np.array([1j, 2j])),
        "t.npz, column 'x', data row 1: a cell is a number, a boolean, a date or a text, not complex",
    ),
    "pixels that are no numbers": (
        lambda f: npz_of(f, x=np.full((2, 2, 2), np.nan)),
        "t.npz, column 'x', data row 1: a pixel is no number",
    ),
    "images without pixels": (
        lambda f: idx_of(f, idx_head(1, 0, 2**32 - 1), b""),
        "column 'x': the images have no pixels",
    ),
    "a text file among arrays": (
        lambda f: zip_of(f, {"readme.txt": SECRET.encode()}),
        "t.npz: the file cannot be read: readme.txt is no array",
    ),
    "an archive that is called an array": (
        lambda f: zip_of(f, {"x.npy": b""}, "x.npy") | {"arrays": {"x": "x.npy"}, "source": "", "id": "#"},
        "x.npy: the file cannot be read: x.npy is no array",
    ),
    "the head of an array that is no Python": (
        lambda f: zip_of(f, {"x.npy": b"\x93NUMPY\x01\x00\x76\x00{'descr'" + b"(" * 110}),
        "t.npz: the file cannot be read: ",
    ),
    "the head of an array that claims more than there are numbers": (
        lambda f: zip_of(f, {"x.npy": npy_head("(99999999999999999999,)")}),
        "t.npz: the file cannot be read: ",
    ),
    "an encrypted archive": (
        lambda f: zip_of(f, {"x.npy": b"x"}, flags=1),
        "t.npz: the file cannot be read: File 'x.npy' is encrypted",
    ),
    "no IDX": (
        lambda f: idx_of(f, b"GIF8", b""),
        "t-ubyte: the file cannot be read: it does not begin as an IDX file does",
    ),
    "IDX cut short": (
        lambda f: idx_of(f, idx_head(2, 3, 3), bytes(17)),
        "t-ubyte: the file cannot be read: its head promises 18 bytes of data, and it has 17",
    ),
    "IDX with more behind": (
        lambda f: idx_of(f, idx_head(2, 3, 3), bytes(19)),
        "its head promises 18 bytes of data, and it has more",
    ),
    "IDX that claims a petabyte": (
        lambda f: idx_of(f, idx_head(2**32 - 1, 2**18), b""),
        "it claims to hold 1125899906580480 bytes, and 8589934592 are the most that is read",
    ),
}


@pytest.mark.parametrize(("make", "message"), BROKEN.values(), ids=BROKEN)
def test_a_broken_input_is_refused_with_its_place(folder, make, message):
    with pytest.raises(DataError) as caught:
        read(folder, **make(folder))
    told = str(caught.value)
    assert told.startswith("party bank, ")
    assert message in told
    assert SECRET not in told
    assert "\n" not in told


def test_an_npz_that_unpacks_to_more_than_is_read_is_refused_before_it_is(folder, monkeypatch):
    monkeypatch.setattr(array_files, "MOST_BYTES", 1000)
    with pytest.raises(DataError, match=r"t\.npz: the file cannot be read: it claims to hold \d+ bytes, and 1000 are"):
        read(folder, **npz_of(folder, x=np.zeros(200)))


def test_a_row_far_down_a_long_file_is_found(folder):
    rows = "".join(f"c{row},{row % 2},{row}\n" for row in range(200_000))
    source = csv_of(folder, f"id,y,x\n{rows}c,1\n")
    with pytest.raises(DataError, match="data row 200001: the row has 2 fields, the header 3"):
        read(folder, **source)


def test_blank_lines_before_the_header_are_not_counted(folder):
    with pytest.raises(DataError, match="data row 2: the row has 2 fields, the header 3"):
        read(folder, **csv_of(folder, "\n\nid,y,x\na,0,1\nb,1\n"))
