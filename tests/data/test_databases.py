"""SQLite and PostgreSQL: addresses and the extensions they are read with."""

import sqlite3
from importlib import resources

import duckdb
import numpy as np
import pytest

from vfedsec.config.party import DataSource, PartyFile
from vfedsec.data.databases import attach, is_postgres, shown_address
from vfedsec.data.duck import connected
from vfedsec.data.duck_errors import reason_of
from vfedsec.data.origin import Origin
from vfedsec.data.sources import files_named, load, shown_source
from vfedsec.errors import DataError


@pytest.mark.parametrize(
    ("address", "shown"),
    [
        ("postgresql://host/db", "postgresql://host/db"),
        ("postgresql://me@host:5432/db", "postgresql://me@host:5432/db"),
        ("postgresql://me:pass@host/db", "postgresql://me@host/db"),
        ("postgresql://me:p@ss@host/db", "postgresql://me@host/db"),
        ("postgres://host/db?password=pass&sslmode=require", "postgres://host/db"),
        ("postgresql:///db?user=me&password=pass", "postgresql:///db"),
        ("postgresql://me:pass@[::1]:5432/db", "postgresql://me@[::1]:5432/db"),
        ("postgresql://me:pass@one:1,two:2/db", "postgresql://me@one:1,two:2/db"),
        ("postgresql://me:pa#ss@host/db", "postgresql://..."),
        ("postgresql://me:pa?ss@host/db", "postgresql://..."),
        ("postgresql://host/db?password=pa@ss", "postgresql://..."),
        ("postgresql://me:pa/ss@host/db", "postgresql://me@host/db"),
        ("postgresql://me:pa[ss@host/db", "postgresql://me@host/db"),
    ],
)
def test_an_address_is_shown_without_its_password(address, shown):
    assert is_postgres(address)
    assert shown_address(address) == shown


@pytest.mark.parametrize("mark", ["%ZZ", " ", "#", "/", "?", "[", "'", '"', ":", "@"])
def test_no_part_of_a_password_stands_in_a_message(tmp_path, mark):
    party = PartyFile(name="bank", data=DataSource(source=f"postgresql://me:xyz{mark}uvw@127.0.0.1:1/db", id="id"))
    with pytest.raises(DataError, match="the database cannot be read") as caught:
        load(party, tmp_path, [], False)
    assert "xyz" not in str(caught.value) and "uvw" not in str(caught.value)


@pytest.mark.parametrize("cell", ['"Ulm"', "'Ulm'", "(Ulm)", "17.5", "-17"])
def test_what_a_server_says_is_told_without_the_cells_it_quotes(cell):
    error = duckdb.IOException(f'Failed to execute query "SELECT x": ERROR:  it cannot read {cell} of Ulm\nDETAIL: Ulm')
    assert reason_of(error) == 'Failed to execute query "SELECT x": ERROR:  it cannot read ...'


def test_an_extension_that_is_not_there_says_where_to_get_it(tmp_path, monkeypatch):
    def absent(package):
        raise ModuleNotFoundError(package)

    write_database(tmp_path, "CREATE TABLE t (id)")
    monkeypatch.setattr(resources, "files", absent)
    monkeypatch.setenv("HOME", str(tmp_path))  # where DuckDB keeps what it was once told to install
    party = PartyFile(name="bank", data=DataSource(source="t.db", id="id"))
    with pytest.raises(
        DataError, match=r"SQLite is read with DuckDB's extension sqlite_scanner, which comes with vfed"
    ):
        load(party, tmp_path, [], False)


def write_database(folder, *statements):
    connection = sqlite3.connect(folder / "t.db")
    with connection:
        for statement in statements:
            connection.execute(statement)
    connection.close()


def test_a_database_is_only_read(tmp_path):
    write_database(tmp_path, "CREATE TABLE t (id text)", "INSERT INTO t VALUES ('a')")
    before = (tmp_path / "t.db").read_bytes()
    load(PartyFile(name="bank", data=DataSource(source="t.db", id="id")), tmp_path, [], False)
    assert (tmp_path / "t.db").read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == ["t.db"]


def test_an_attached_database_cannot_be_written(tmp_path):
    write_database(tmp_path, "CREATE TABLE t (id)")
    with connected() as connection:
        attach(Origin("bank", "t.db"), connection, "old", "t.db", tmp_path)
        with pytest.raises(duckdb.Error, match="read-only"):
            connection.execute("INSERT INTO old.t VALUES ('a')")


def test_no_extension_is_fetched_by_itself():
    with connected() as connection:
        for setting in ("autoinstall_known_extensions", "autoload_known_extensions"):
            assert connection.execute(f"SELECT current_setting('{setting}')").fetchone() == (False,)


@pytest.mark.parametrize(
    ("data", "shown", "files"),
    [
        ({"source": "t.csv"}, "t.csv", ["t.csv"]),
        ({"source": "postgresql://me:pass@host/db"}, "postgresql://me@host/db", []),
        ({"query": "SELECT 1", "attach": {"a": "t.db", "b": "postgres://host/db"}}, "data.query", ["t.db"]),
        ({"arrays": {"x": "x-ubyte", "y": "y-ubyte.gz"}}, "data.arrays", ["x-ubyte", "y-ubyte.gz"]),
    ],
)
def test_a_source_is_shown_and_its_files_are_known(tmp_path, data, shown, files):
    source = DataSource(id="id", **data)
    assert shown_source(source, tmp_path).endswith(shown)
    assert files_named(source, tmp_path) == [tmp_path / name for name in files]


def test_columns_of_sqlite_without_a_type_are_read_by_their_texts(tmp_path):
    rows = "(1, 30.5, 'Köln', NULL), (2, NULL, ' NA ', NULL)"
    write_database(tmp_path, "CREATE TABLE t (id, age, town, gone)", f"INSERT INTO t VALUES {rows}")
    party = PartyFile(name="bank", data=DataSource(source="t.db", id="id"))
    table = load(party, tmp_path, ["age", "town", "gone"], False)
    assert table.ids == ["1", "2"]
    np.testing.assert_array_equal(table.columns["age"], [30.5, np.nan])
    assert table.columns["town"].cells() == ["Köln", None]
    assert table.columns["gone"].cells() == [None, None]


def test_bytes_that_are_no_text_are_refused(tmp_path):
    write_database(tmp_path, "CREATE TABLE t (id text, scan blob)", "INSERT INTO t VALUES ('a', x'ff00fe')")
    with pytest.raises(DataError, match=r"party bank, .*t\.db: .*decode"):
        load(PartyFile(name="bank", data=DataSource(source="t.db", id="id")), tmp_path, ["scan"], False)
