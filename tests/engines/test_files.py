"""The files that a simulation reads."""

import msgspec
import pytest

from federation import ACTIVE, job_of
from vfedsec.config.party import DataSource, PartyFile
from vfedsec.engines.files import memory_of, party_files
from vfedsec.errors import ConfigError


def test_a_file_of_another_party_is_refused(tmp_path):
    (tmp_path / "x.toml").write_text('name = "a0"\n[data]\nsource = "x.csv"\nid = "id"\n')
    job = msgspec.structs.replace(job_of((1,)), parties={ACTIVE: "x.toml", "a0": "x.toml"})
    with pytest.raises(ConfigError, match="expected 'active', as the job says, found 'a0'"):
        party_files(job, tmp_path / "job.toml")


@pytest.mark.parametrize(
    "change",
    [
        {"source": "other.db", "table": "t"},
        {"source": "a.db", "table": "other"},
        {"source": "", "query": "SELECT 1"},
        {"source": "", "query": "SELECT 2"},
        {"source": "", "arrays": {"x": "x.npy"}},
    ],
)
def test_every_table_a_party_may_name_is_remembered_by_itself(tmp_path, change):
    def memory(**data):
        party = PartyFile(name="bank", data=DataSource(id="id", **data))
        return memory_of("bank", {"bank": (party, tmp_path)}, lambda event: None)

    memory(source="a.db", table="t").save("with shop", b"kept")
    assert memory(source="a.db", table="t").load("with shop") == b"kept"
    assert memory(**change).load("with shop") is None
