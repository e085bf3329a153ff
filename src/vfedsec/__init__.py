"""Secure vertical federated learning that survives unreliable connections.

    from vfedsec import Simulation
    result = Simulation.from_files("demo/job.toml").train()

What stands here is imported when it is first asked for, so that `import vfedsec` costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from vfedsec.config.load import job_from, load_job
    from vfedsec.data.table import Table
    from vfedsec.engines.simulation import Simulation
    from vfedsec.errors import VFedSecError

__version__ = "0.1.0"

__all__ = ["Simulation", "Table", "VFedSecError", "__version__", "job_from", "load_job"]

_HOMES = {
    "Simulation": "vfedsec.engines.simulation",
    "Table": "vfedsec.data.table",
    "VFedSecError": "vfedsec.errors",
    "job_from": "vfedsec.config.load",
    "load_job": "vfedsec.config.load",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(_HOMES[name]), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
