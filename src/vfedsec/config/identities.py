"""The public keys of a job. Messages never show one: a private key may stand there by mistake."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator

from vfedsec.config.job import AGGREGATOR, Job
from vfedsec.config.refusals import Refusal, join_key, shown

_KEY_BYTES = 32


def identities_that_do_not_hold(job: Job) -> Iterator[Refusal]:
    """Keys of strangers, keys that are none, one key for two, and parties left without."""
    members = (job.active.party, *job.passive_parties, AGGREGATOR)
    owners: dict[str, str] = {}
    for name, text in job.identities.items():
        key = join_key("identities", name)
        if name not in members:
            yield Refusal(key, f"{AGGREGATOR} or a party of this job ({', '.join(members[:-1])})", shown(name))
        if not _is_public_key(text):
            yield Refusal(key, f"{_KEY_BYTES} bytes in base64", f"a text of {len(text)} characters")
        if text in owners:
            yield Refusal(key, "a key of its own", f"the key of {owners[text]}")
        owners[text] = name
    for name in members if job.identities else ():
        if name not in job.identities:
            yield Refusal(join_key("identities", name), "a key for all or for none", "nothing")


def _is_public_key(text: str) -> bool:
    try:
        raw = base64.b64decode(text.encode("ascii"), validate=True)
    except (binascii.Error, UnicodeEncodeError):
        return False
    return len(raw) == _KEY_BYTES and base64.b64encode(raw).decode() == text
