"""The files that a simulation reads."""

import msgspec
import pytest

from federation import ACTIVE, job_of
from vfedsec.engines.files import party_files
from vfedsec.errors import ConfigError


def test_a_file_of_another_party_is_refused(tmp_path):
    (tmp_path / "x.toml").write_text('name = "a0"\n[data]\nsource = "x.csv"\nid = "id"\n')
    job = msgspec.structs.replace(job_of((1,)), parties={ACTIVE: "x.toml", "a0": "x.toml"})
    with pytest.raises(ConfigError, match="expected 'active', as the job says, found 'a0'"):
        party_files(job, tmp_path / "job.toml")
