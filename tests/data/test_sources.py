"""Reading a party's file."""

import json
import subprocess
import sys

import duckdb
import pytest

from vfedsec.config.party import DataSource, PartyFile
from vfedsec.data.cells import Dates, Texts
from vfedsec.data.sources import load
from vfedsec.errors import DataError

CLIENTS = "id,age,town,sold\nc1,30,Ulm,1\nc2,NA,,0\n"

IS_DRAWN = """
from vfedsec.data.duck import connected
with connected() as connection:
    print(connection.sql("SELECT current_setting('enable_progress_bar')").fetchone())
"""


def cells(table):
    """Every column as plain values, `None` where missing."""
    return {name: plain(column) for name, column in table.columns.items()}


def plain(column):
    if isinstance(column, Texts):
        return column.cells()
    values = column.seconds if isinstance(column, Dates) else column
    return [None if value != value else value for value in values.tolist()]


@pytest.fixture
def read(tmp_path):
    def read(content, columns=("age", "town"), *, file="clients.csv", with_label=True, **data):
        raw = content if isinstance(content, bytes) else content.encode()
        (tmp_path / file).write_bytes(raw)
        source = DataSource(**{"source": file, "id": "id", "label": "sold", **data})
        return load(PartyFile(name="bank", data=source), tmp_path, columns, with_label)

    return read


def test_ids_columns_and_label_are_read(read):
    table = read(CLIENTS)
    assert (table.ids, cells(table), table.label) == (
        ["c1", "c2"],
        {"age": [30.0, None], "town": ["Ulm", None]},
        ["1", "0"],
    )


def test_only_the_named_columns_are_kept(read):
    assert list(read(CLIENTS, ["town"]).columns) == ["town"]


def test_no_label_is_read_unless_asked_for(read):
    assert read(CLIENTS, with_label=False).label is None


def test_declared_kinds_reach_the_table(read):
    assert read(CLIENTS, kinds={"age": "categorical"}).kinds == {"age": "categorical"}


def test_a_kind_of_a_column_that_is_not_there_is_refused(read):
    with pytest.raises(DataError, match="column 'agee': there is no such column"):
        read(CLIENTS, kinds={"agee": "categorical"})


@pytest.mark.parametrize("kind", ["categorical", "boolean"])
def test_numbers_in_a_file_that_are_declared_to_be_something_else_stay_the_texts_they_are(read, kind):
    table = read("id,age,town,sold\nc1,007,1,1\nc2,7,0,0\n", kinds={"age": kind})
    assert cells(table) == {"age": ["007", "7"], "town": [1.0, 0.0]}


def test_texts_of_a_typed_file_that_are_all_numbers_come_as_numbers(tmp_path):
    """Otherwise a million different ones would each be a text of Python's own."""
    duckdb.sql("SELECT * FROM (VALUES ('a', '30'), ('b', NULL), ('c', '')) t(id, age)").write_parquet(
        str(tmp_path / "t.parquet")
    )
    party = PartyFile(name="bank", data=DataSource(source="t.parquet", id="id"))
    table = load(party, tmp_path, ["age"], False)
    assert (table.columns["age"].dtype, cells(table)) == (float, {"age": [30.0, None, None]})


def test_nothing_is_drawn_while_a_table_is_read():
    """A bar would go to stdout, among the results: in a notebook, or where no file is run, as here."""
    told = subprocess.run([sys.executable, "-c", IS_DRAWN], capture_output=True, text=True, check=True)
    assert told.stdout == "(False,)\n"


def test_missing_tokens_are_the_party_files(read):
    assert cells(read(CLIENTS, missing=("Ulm",))) == {"age": ["30", "NA"], "town": [None, None]}


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
def test_the_delimiter_is_found_in_the_header(read, delimiter):
    assert cells(read(CLIENTS.replace(",", delimiter)))["age"] == [30.0, None]


def test_a_header_may_be_long(read):
    names = [f"measurement{place}" for place in range(20_000)]
    table = read(f"id,{','.join(names)}\na,{','.join('7' * 20_000)}\n", ["measurement9"], with_label=False)
    assert cells(table) == {"measurement9": [7.0]}


def test_a_table_may_have_many_columns(read):
    names = [f"c{place}" for place in range(300)]
    table = read(f"id,{','.join(names)}\na,{','.join(['7', 'NA'] * 150)}\n", names, with_label=False)
    assert cells(table) == {name: [None if place % 2 else 7.0] for place, name in enumerate(names)}


def test_space_around_a_column_name_does_not_count(read):
    assert cells(read(CLIENTS.replace(",", " , "))) == cells(read(CLIENTS))


def test_a_delimiter_inside_quotes_does_not_count(read):
    assert read('"id;a;b;c",age\nx,3\n', ["age"], id="id;a;b;c", with_label=False).ids == ["x"]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig"])
def test_a_byte_order_mark_makes_no_difference(read, encoding):
    assert read("id,stadt\nÄ1,Köln\n".encode(encoding), ["stadt"], with_label=False).ids == ["Ä1"]


def test_blank_lines_and_windows_line_ends_make_no_difference(read):
    text = "\r\n" + CLIENTS.replace("\n", "\r\n") + "\r\n"
    assert cells(read(text)) == cells(read(CLIENTS))


def test_a_quoted_cell_may_span_lines(read):
    assert read('id,town\nc1,"a\nb"\n', ["town"], with_label=False).columns["town"].cells() == ["a\nb"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "clients.csv: the file is empty"),
        ("\n\n", "the file is empty"),
        ("id,age,town,sold\n", "a header and no rows"),
        (
            "key,age,town,sold\n1,2,3,4\n",
            "column 'id': there is no such column; there are ['key', 'age', 'town', 'sold']",
        ),
        ("id,age,sold\n1,2,1\n", "clients.csv, column 'town': there is no such column"),
        ("id,age,town\n1,2,3\n", "column 'sold': there is no such column"),
        ("id,age,age,town,sold\n1,2,3,4,1\n", "column 'age': the header names this column 2 times"),
        ("id,age,town,sold\n1,2,3,1\n2,3\n", "data row 2: the row has 2 fields, the header 4"),
        ("id,age,town,sold\n1,2,3,1\n ,2,3,1\n", "data row 2: the id is missing"),
        ("id,age,town,sold\n1,2,3,1\nNA,2,3,1\n", "data row 2: the id is missing"),
        ("id,age,town,sold\n1,2,3,1\n1,2,3,1\n", "data row 2: the id repeats that of data row 1"),
        ("id,age,town,sold\n1,2,3,1\n2,2,3,\n", "data row 2: the label is missing"),
        (b"id,age,town,sold\n1,2,3,1\n2,\xff,3,1\n", "clients.csv: line 3 is not UTF-8 text"),
        ("id,age,town,sold\n1,\0,3,1\n", "clients.csv: the file holds zero bytes"),
        ('id,age,town,sold\n1,"2"x,3,1\n', "data row 1: the row is not valid CSV: a quote is out of place"),
    ],
)
def test_a_bad_file_is_refused_with_the_place(read, content, message):
    with pytest.raises(DataError) as caught:
        read(content)
    assert message in str(caught.value)


def test_a_file_that_is_not_there_is_refused(tmp_path):
    party = PartyFile(name="bank", data=DataSource(source="none.csv", id="id"))
    with pytest.raises(DataError, match=r"party bank, .*none\.csv: the file cannot be read: No such"):
        load(party, tmp_path, [], False)


def test_an_unknown_suffix_says_what_is_supported(read):
    with pytest.raises(DataError, match=r"'\.xlsx' cannot be read; supported: \.csv, \.tsv, \.txt"):
        read(CLIENTS, file="clients.xlsx")


def test_a_label_must_be_named_when_needed(read):
    with pytest.raises(DataError, match="names no label column"):
        read(CLIENTS, label="")


@pytest.mark.parametrize(("column", "role"), [("sold", "label"), ("id", "id")])
def test_a_feature_is_neither_label_nor_id(read, column, role):
    with pytest.raises(DataError, match=f"column '{column}': the {role} column is also listed"):
        read(CLIENTS, [column])


@pytest.mark.parametrize("end", ["", ";", " ; ", " -- by age", "; -- by age", "\n/* by age */"])
def test_a_query_may_end_as_it_likes(read, end):
    table = read(CLIENTS, source="", query=f"FROM 'clients.csv' ORDER BY sold{end}")
    assert (table.ids, table.label) == (["c2", "c1"], ["0", "1"])


@pytest.mark.parametrize(
    "text", ["1-2-3", "10-11-12", "2024-01-01", "epoch", "10:00", "550E8400-e29b-41d4-a716-446655440000", "2024/1/1"]
)
@pytest.mark.parametrize("name", ["id", "x"])
def test_a_text_in_json_is_the_text_it_is_in_csv(read, text, name):
    row = {"id": "a", "x": "b", "n": 1.5, "nested": {"day": "2024-01-01"}} | {name: text}
    from_csv = read(f"id,x,n\n{row['id']},{row['x']},1.5\n", ["x", "n"], with_label=False)
    from_json = read(json.dumps([row]), ["x", "n"], file="t.json", with_label=False)
    assert (from_json.ids, cells(from_json)) == (from_csv.ids, cells(from_csv))


@pytest.mark.parametrize(
    "content", ['[{"id": "a", "X": "2024-01-01", "x": 2}]', '{"id": "a", "x_1": 2, "X": "2024-01-01"}']
)
def test_keys_that_differ_in_case_alone_keep_their_values(read, content):
    assert cells(read(content, ["x_1"], file="t.json", with_label=False)) == {"x_1": [2.0]}


def test_a_key_with_nothing_but_null_is_a_column_without_values(read):
    table = read('[{"id": "a", "x": null}]', ["x"], file="t.json", with_label=False)
    assert cells(table) == {"x": [None]}


def test_numbers_that_stand_for_a_missing_value_are_missing(read):
    table = read("id,age,town,sold\nc1,30,Ulm,1\nc2,-1,Ulm,0\n", missing=("-1", "Ulm"))
    assert cells(table) == {"age": [30.0, None], "town": [None, None]}


def test_numbers_among_spaces_and_gaps_are_numbers(read):
    table = read("id,age,town,sold\nc1, 30 ,1e3,1\nc2,NA,,0\nc3,-.5,+7.,0\n")
    assert cells(table) == {"age": [30.0, None, -0.5], "town": [1000.0, None, 7.0]}


@pytest.mark.parametrize("file", ["a[1].csv", "a*.csv", "a?.csv"])
def test_a_file_whose_name_has_marks_of_a_pattern_is_read_and_no_other(read, tmp_path, file):
    (tmp_path / "a1.csv").write_text("id,age,town,sold\nother,1,x,0\n")
    assert read(CLIENTS, file=file).ids == ["c1", "c2"]


def test_a_column_may_have_quotes_in_its_name(tmp_path):
    name = 'age" FROM x; --'
    quoted = name.replace('"', '""')
    duckdb.sql(f"SELECT 'c1' AS id, 30 AS \"{quoted}\"").write_parquet(str(tmp_path / "t.parquet"))
    party = PartyFile(name="bank", data=DataSource(source="t.parquet", id="id"))
    assert cells(load(party, tmp_path, [name], False)) == {name: [30.0]}


def test_whole_numbers_that_are_categories_keep_all_their_digits(tmp_path):
    codes = [2**53, 2**53 + 1]
    duckdb.sql(f"SELECT * FROM (VALUES ('a', {codes[0]}), ('b', {codes[1]})) t(id, code)").write_parquet(
        str(tmp_path / "t.parquet")
    )
    party = PartyFile(name="bank", data=DataSource(source="t.parquet", id="id", kinds={"code": "categorical"}))
    assert cells(load(party, tmp_path, ["code"], False)) == {"code": [str(code) for code in codes]}


def test_a_space_that_does_not_break_does_not_count(read):
    table = read("id,age,town,sold\n\u00a0c1,30,Ulm\u00a0,1\nc2,4,\u00a0,0\n")
    assert (table.ids, cells(table)["town"]) == (["c1", "c2"], ["Ulm", None])
