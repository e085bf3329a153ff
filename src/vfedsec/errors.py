"""Every error this package raises on purpose.

    VFedSecError
    ├── ConfigError              a job or party file says something it may not
    │   └── QuantizationOverflow the numbers of a job do not fit its words
    ├── DataError                a table does not hold what the job needs
    ├── CryptoError              a key or a seal does not hold
    │   └── OpenFailed           one wording for every way a sealed message can be bad
    ├── ProtocolError            a message came that may not come
    │   ├── LocalProtocolError   we are about to do something illegal: a bug or a misuse here
    │   └── RemoteProtocolError  the other side did
    └── EngineError              the machinery that moves messages failed
        ├── PartyTimeout         a party we cannot go on without stayed away too long
        └── TransportError       a message could not be moved

Messages name what was asked, expected and found. Values of secrets and of data never stand in them.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


class VFedSecError(Exception):
    """The root: catching it catches everything this package raises on purpose."""


class ConfigError(VFedSecError):
    """A job or party file is refused."""

    def __init__(self, message: str, *, file: str = "", key: str = "") -> None:
        self.message = message
        self.file = file
        self.key = key
        place = " ".join(part for part in (file, f"[{key}]" if key else "") if part)
        super().__init__(f"{place}: {message}" if place else message)


class QuantizationOverflow(ConfigError):
    """The numbers of a job do not fit its words."""


@contextmanager
def naming(*, file: str = "", key: str = "") -> Iterator[None]:
    """Let a `ConfigError` from within say which file and which key it is about, where it does not say so itself. A
    key from within that begins with a dot is one of the table `key`."""
    try:
        yield
    except ConfigError as error:
        is_relative = error.key.startswith(".")
        place = {"file": error.file or file, "key": key + error.key if is_relative else error.key or key}
        raise type(error)(error.message, **place) from error.__cause__


class DataError(VFedSecError):
    """A table does not hold what the job needs."""


class CryptoError(VFedSecError):
    """A key does not verify, or would be used in a way that breaks its promise."""


class OpenFailed(CryptoError):
    """A sealed message does not open. The cause is not told, so that failures teach an attacker nothing."""

    def __init__(self) -> None:
        super().__init__("the message does not open: it was changed, cut, repeated or sealed for somebody else")


class ProtocolError(VFedSecError):
    """A message came that may not come."""


class LocalProtocolError(ProtocolError):
    """This side was about to break the protocol."""


class RemoteProtocolError(ProtocolError):
    """The other side broke the protocol."""


class EngineError(VFedSecError):
    """The machinery that moves messages failed."""


class PartyTimeout(EngineError):
    """A party that the run cannot go on without stayed away longer than the job's patience."""


class TransportError(EngineError):
    """A message could not be moved."""
