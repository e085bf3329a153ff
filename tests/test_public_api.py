"""What `import vfedsec` gives, and what it costs."""

from __future__ import annotations

import subprocess
import sys

import pytest

import vfedsec

HEAVY = ("torch", "numpy", "matplotlib", "rich", "cryptography")


def test_the_public_names_are_these() -> None:
    names = ["Simulation", "Table", "VFedSecError", "__version__", "job_from", "load_job"]
    assert vfedsec.__all__ == sorted(vfedsec.__all__) == names


@pytest.mark.parametrize("name", vfedsec.__all__)
def test_every_public_name_is_there(name: str) -> None:
    assert getattr(vfedsec, name) is not None
    assert name in dir(vfedsec)


def test_another_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="module 'vfedsec' has no attribute 'simulation_of'"):
        _ = vfedsec.simulation_of


@pytest.mark.parametrize("module", ["vfedsec", "vfedsec.cli"])
def test_importing_it_imports_nothing_heavy(module: str) -> None:
    code = f"import sys, {module}; print([name for name in {HEAVY} if name in sys.modules])"
    assert subprocess.check_output([sys.executable, "-c", code], text=True).strip() == "[]"
