"""Classes by import path, from packages that the caller trusts and from no others.

A path stands in a job file, and importing runs code. So the program that reads the job, never the
job itself, says which packages may be imported from.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Collection
from typing import TypeVar

from vfedsec.errors import ConfigError

T = TypeVar("T")

_PATH = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*:[^\W\d]\w*")


def is_import_path(name: str) -> bool:
    """Whether the name is meant as `package.module:Class`."""
    return ":" in name


def load_class(path: str, base: type[T], allowed_packages: Collection[str]) -> type[T]:
    """The class at `package.module:Class`.

    Raises:
        ConfigError: The path is malformed, its package is not on the allow-list, there is no such
            class, or it is not a subclass of `base`.
    """
    if not _PATH.fullmatch(path):
        raise ConfigError(f"{path!r} is not an import path, expected 'package.module:Class'")
    module_name, class_name = path.split(":")
    _check_allowed(path, module_name, allowed_packages)
    try:
        found = getattr(importlib.import_module(module_name), class_name)
    except (ImportError, AttributeError) as error:
        raise ConfigError(
            f"import path {path!r} leads nowhere: {error} (a package in the current folder is found with PYTHONPATH=.)"
        ) from error
    except Exception as error:  # whatever its code does when it is imported
        raise ConfigError(f"import path {path!r} cannot be imported: {told(error)}") from error
    if not (isinstance(found, type) and issubclass(found, base)):
        raise ConfigError(f"import path {path!r} must name a subclass of {base.__name__}")
    return found


def told(error: Exception) -> str:
    """An error of somebody else's code, in a message of ours."""
    return f"{type(error).__name__}: {error}"


def _check_allowed(path: str, module_name: str, allowed_packages: Collection[str]) -> None:
    if any(f"{module_name}.".startswith(f"{package}.") for package in allowed_packages):
        return
    allowed = ", ".join(sorted(allowed_packages)) or "empty"
    raise ConfigError(
        f"import path {path!r} is refused: its package is not on the allow-list of this program "
        f"(the allow-list is: {allowed}; --allow-package adds to it, allowed_packages in Python)"
    )
