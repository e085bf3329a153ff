"""Private set intersection of the active party and a passive one, with row numbers as the result.

Each side has a secret exponent of its own, a for the active party and p for the passive one, and
raises hashes of ids on an elliptic curve to it (OpenMined PSI does the curve):

    active → passive    H(x)^a for its ids x, in its row order
    passive → active    H(x)^ap in the same order; H(y)^p for its own ids y, in a secret order
    active              H(y)^pa; equal elements are equal ids

So the active party learns which of its rows the passive party has, and where in the passive party's
secret order; each learns how many rows the other has. Nobody learns an id it
does not hold. Both sides are taken to follow the protocol; either could put ids it made up into its
request, as in any such protocol, to ask whether the other side has them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import private_set_intersection.python as psi
from google.protobuf.message import DecodeError  # type: ignore[import-untyped]

from vfedsec.errors import RemoteProtocolError
from vfedsec.protocol.interfaces import ABSENT_ROW, Rows

_ELEMENT_BYTES = 33


def new_key() -> bytes:
    """A fresh secret exponent.

    The rows that match do not depend on it, and it is never to leave the process.
    """
    key: bytes = psi.client.CreateWithNewKey(True).GetPrivateKeyBytes()
    return key


class ActiveAlignment:
    """The active party's side. One object serves all passive parties of a run."""

    def __init__(self, ids: Sequence[str], key: bytes) -> None:
        self._server = psi.server.CreateFromKey(key, True)
        self._rows = len(ids)
        self._request = _own_elements(ids, key)

    def request(self) -> bytes:
        """What every passive party is sent."""
        return self._request

    def match(self, sender: str, answer: bytes, elements: bytes) -> Rows:
        """For each own row, its place in the sender's secret order, or `ABSENT_ROW`.

        Raises `RemoteProtocolError` when the two parts of the reply are not what they should be.
        """
        own = _parsed(psi.Response(), answer, sender)
        if len(own) != self._rows:
            raise RemoteProtocolError(
                f"{sender} answered an alignment request of {self._rows} elements with {len(own)}"
            )
        theirs = _processed(self._server, elements, sender).encrypted_elements
        place = {element: row for row, element in enumerate(theirs)}
        return np.array([place.get(element, ABSENT_ROW) for element in own], dtype=np.int32)


class PassiveAlignment:
    """A passive party's side.

    `ids` stand in the secret order whose places the active party will learn.
    """

    def __init__(self, ids: Sequence[str], key: bytes) -> None:
        self._server = psi.server.CreateFromKey(key, True)
        self._elements = _own_elements(ids, key)

    def reply(self, sender: str, request: bytes) -> tuple[bytes, bytes]:
        """The answer to the request, and own elements.

        Raises `RemoteProtocolError` when the request is malformed.
        """
        answer: bytes = _processed(self._server, request, sender).SerializeToString()
        return answer, self._elements


def _own_elements(ids: Sequence[str], key: bytes) -> bytes:
    client = psi.client.CreateFromKey(key, True)
    elements: bytes = client.CreateRequest(list(ids)).SerializeToString()
    return elements


def _processed(server: Any, request: bytes, sender: str) -> Any:
    message = psi.Request()
    _parsed(message, request, sender)
    try:
        return server.ProcessRequest(message)
    except RuntimeError:
        raise _malformed(sender) from None


def _parsed(message: Any, body: bytes, sender: str) -> list[bytes]:
    try:
        message.ParseFromString(body)
    except DecodeError:
        raise _malformed(sender) from None
    elements = list(message.encrypted_elements)
    if any(len(element) != _ELEMENT_BYTES for element in elements):
        raise _malformed(sender)
    if len(set(elements)) != len(elements):
        raise RemoteProtocolError(f"{sender} sent the same alignment element twice")
    return elements


def _malformed(sender: str) -> RemoteProtocolError:
    return RemoteProtocolError(f"{sender} sent alignment elements that cannot be read")
