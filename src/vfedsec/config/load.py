"""Job and party files: TOML text to checked structs. Whatever is wrong is a `ConfigError`."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from vfedsec.config.check import check_job, check_party
from vfedsec.config.job import Job
from vfedsec.config.party import PartyFile
from vfedsec.config.refusals import Refusal, misfits
from vfedsec.errors import ConfigError

MAX_FILE_BYTES = 1 << 20
"""No job or party file is longer than this; what is longer is some other file."""

_Struct = TypeVar("_Struct", bound=msgspec.Struct)


def load_job(path: Path | str) -> Job:
    """Read a job file and check it. Raises `ConfigError`."""
    return parse_job(_read(Path(path)), str(path))


def load_party(path: Path | str) -> PartyFile:
    """Read a party file and check it. Raises `ConfigError`."""
    return parse_party(_read(Path(path)), str(path))


def is_party_file(path: Path | str) -> bool:
    """Whether a file says where a table is, as only party files do. Raises `ConfigError` when it is no TOML."""
    mapping = _toml(_read(Path(path)), str(path))
    return "data" in mapping and "active" not in mapping


def parse_job(text: str, file: str = "job.toml") -> Job:
    """Read a job from TOML text and check it. Raises `ConfigError` that names `file`."""
    return job_from(_toml(text, file), file)


def parse_party(text: str, file: str = "party.toml") -> PartyFile:
    """Read a party file from TOML text and check it. Raises `ConfigError` that names `file`."""
    party = _convert(_toml(text, file), PartyFile, file)
    check_party(party, file)
    return party


def job_from(mapping: Mapping[str, Any], file: str = "") -> Job:
    """Make a job from what a job file holds, given as dictionaries. Raises `ConfigError`."""
    job = _convert(mapping, Job, file)
    check_job(job, file)
    return job


def _read(path: Path) -> str:
    try:
        with path.open("rb") as stream:
            raw = stream.read(MAX_FILE_BYTES + 1)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise ConfigError(f"expected a readable file, found: {reason}", file=str(path)) from error
    if len(raw) > MAX_FILE_BYTES:
        raise ConfigError(f"expected at most {MAX_FILE_BYTES} bytes, found more", file=str(path))
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        place = f"byte {error.start} that is none"
        raise ConfigError(f"expected UTF-8 text, found {place}", file=str(path)) from None


def _toml(text: str, file: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except RecursionError:
        raise ConfigError("expected TOML, found brackets nested too deeply", file=file) from None
    except ValueError as error:
        place = f"at the end, {_end(text)}"
        reason = str(error).replace("at end of document", place)
        raise ConfigError(f"expected TOML, found a mistake in it: {reason}", file=file) from None


def _end(text: str) -> str:
    lines = text.split("\n")
    return f"line {len(lines)}, column {len(lines[-1]) + 1}"


def _convert(mapping: Mapping[str, Any], struct: type[_Struct], file: str) -> _Struct:
    try:
        return msgspec.convert(mapping, struct, strict=True)
    except msgspec.ValidationError as error:
        otherwise = Refusal("", f"a {struct.__name__}", str(error))
        raise next(misfits(mapping, struct), otherwise).error(file) from None
