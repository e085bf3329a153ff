"""One number for what the parties agreed on, so that a difference shows before a run."""

from __future__ import annotations

import hashlib

import msgspec

from vfedsec.config.job import Job

_LABEL = b"vfedsec job 1\n"


def job_digest(job: Job) -> bytes:
    """SHA-256 of the job without `parties`, whose paths are each user's own matter.

    Comments, the order of keys, and defaults written out or left out make no difference. It is
    defined for jobs that passed `check_job`.
    """
    agreed = msgspec.structs.replace(job, parties={})
    return hashlib.sha256(_LABEL + msgspec.json.encode(agreed, order="sorted")).digest()
