"""Rows that are encoded and aligned already, as in benchmarks and notebooks."""

from __future__ import annotations

from collections.abc import Callable

from vfedsec.config.job import ModelSpec
from vfedsec.errors import RemoteProtocolError
from vfedsec.protocol.interfaces import Batches, BottomModel, Floats, Mail

BuildModel = Callable[[Floats, int, ModelSpec, bytes], BottomModel]
"""Makes a bottom model of features (rows, features), the embedding's width, the network and a seed.
"""


class PreparedRows:
    """Implements `Preparation` without a letter.

    Row r of every party is the row that the batches call r of it.
    """

    def __init__(
        self,
        features: Floats,
        width: int,
        spec: ModelSpec,
        build_model: BuildModel,
        batches: Batches | None = None,
    ) -> None:
        self._features = features
        self._width = width
        self._spec = spec
        self._build_model = build_model
        self._batches = batches

    def begin(self) -> Mail:
        """Nothing to say."""
        return []

    def receive(self, sender: str, body: bytes) -> Mail:
        """Nothing is expected. Raises `RemoteProtocolError`."""
        raise RemoteProtocolError(f"{sender} sent a letter about rows that are prepared already")

    def progress(self) -> tuple[int, int]:
        """There is nothing to align."""
        return 0, 0

    def finish(self, model_seed: bytes) -> tuple[BottomModel, Batches | None]:
        """The bottom model on the given features, and the given batches."""
        model = self._build_model(self._features, self._width, self._spec, model_seed)
        return model, self._batches
