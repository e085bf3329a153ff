"""The identities and secret seeds of a simulation: from the parties' files, or derived from the job's seed."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from vfedsec.config.job import AGGREGATOR, Job
from vfedsec.config.party import PartyFile
from vfedsec.crypto.keys import Identity, PublicIdentity
from vfedsec.crypto.pairs import derive
from vfedsec.errors import ConfigError, CryptoError


class Secrets:
    """Who is who in a simulation."""

    def __init__(self, job: Job, files: Mapping[str, tuple[PartyFile, Path]]) -> None:
        self.job_seed = job.seed.to_bytes(8)
        self._files = files
        names = (AGGREGATOR, job.active.party, *job.passive_parties)
        self._identities = {name: self._load_identity(name) for name in names}
        self.identities: dict[str, PublicIdentity] = {
            name: identity.public for name, identity in self._identities.items()
        }
        for name, text in job.identities.items():
            self._check_pin(name, text)

    def identity(self, name: str) -> Identity:
        """The private identity of a party or of the aggregator."""
        return self._identities[name]

    def private_seed(self, name: str) -> bytes:
        """What a party draws its weights, batches and rounding from."""
        file = self._files.get(name)
        if file and file[0].seed:
            return derive(file[0].seed.encode(), "party seed")
        return derive(self.job_seed, "simulated seed", name)

    def _load_identity(self, name: str) -> Identity:
        file = self._files.get(name)
        if not file or not file[0].identity:
            return Identity.from_seed(derive(self.job_seed, "simulated identity", name))
        party, base = file
        path = base / party.identity
        try:
            return Identity.from_pem(path.read_bytes())
        except (OSError, CryptoError) as error:
            found = error.strerror if isinstance(error, OSError) else error
            raise ConfigError(f"expected the Ed25519 key of {name}, found: {found}", file=str(path)) from None

    def _check_pin(self, name: str, text: str) -> None:
        """A pinned identity must be that of the party's key, where the party has one in this simulation."""
        file = self._files.get(name)
        if file and file[0].identity and self.identities[name].text() != text:
            raise ConfigError(f"the key of {name} is not the one that the job pins", key=f"identities.{name}")
