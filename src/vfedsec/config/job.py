"""What a job file says: who takes part, which network, how it is trained and protected.

A job is public among its parties and the aggregator: it holds names (of columns and classes too),
public keys, numbers and import paths, never a secret and never code. Every field below is a key of
the TOML file; the text under it is its documentation.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec

TaskKind = Literal["binary", "multiclass", "regression"]
SecurityMode = Literal["secure", "insecure-integers", "insecure-plain"]

AGGREGATOR = "aggregator"
"""The aggregator's name, which no party may have."""


class _Section(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A table of the job file: immutable, and closed to keys it does not know."""


class ModelSpec(_Section, frozen=True, kw_only=True):
    """A network by name, with its numbers."""

    name: str = "linear"
    """A registered name (`linear`, `mlp`, `cnn`) or an import path, `package.module:Class`."""
    options: dict[str, Any] = {}
    """Keyword arguments of that network, such as `hidden = [64, 32]`."""


class Active(_Section, frozen=True, kw_only=True):
    """The one party that holds the labels."""

    party: str
    """Its name."""
    columns: tuple[str, ...] = ()
    """The columns it contributes. Empty is refused: see `security.insecure_label_only_active`."""
    model: ModelSpec = ModelSpec()
    """Its bottom model; its width is that of the whole embedding."""


class Group(_Section, frozen=True, kw_only=True):
    """Parties that hold the same columns about different people."""

    name: str
    """Unique among groups."""
    parties: tuple[str, ...]
    """One party or several."""
    columns: tuple[str, ...]
    """The columns that every one of them holds."""
    width: int = 32
    """How many columns of the joint embedding this group fills; with `sum`, all groups share."""
    model: ModelSpec = ModelSpec()
    """The bottom model, one replica a party."""


class Task(_Section, frozen=True, kw_only=True):
    """What is predicted."""

    kind: TaskKind = "binary"
    """`binary`, `multiclass` or `regression`."""
    classes: tuple[str, ...] = ()
    """The labels in order, as they stand in the table. Needed for `multiclass`; for `binary`, the
    negative then the positive one (left out: 0 and 1)."""
    loss: str = ""
    """A loss by import path, `package.module:Class`; left out, the one that fits the kind."""
    class_weights: Literal["balanced"] | tuple[float, ...] | None = None
    """How much the loss of a training row counts, by its class: a number a class, in the order of `classes` (left out:
    of 0 and of 1), or `balanced`: training rows / (classes * training rows of the class), of the classes that occur
    among them. Left out, every row counts alike. Metrics are of unweighted rows."""

    @property
    def class_count(self) -> int:
        """How many classes there are; none in a regression."""
        return 2 if self.kind == "binary" else len(self.classes)

    @property
    def is_balanced(self) -> bool:
        """Whether the weights follow from how many training rows each class has."""
        return self.class_weights == "balanced"


class Fusion(_Section, frozen=True, kw_only=True):
    """How the groups' embeddings become one."""

    kind: Literal["concat", "sum"] = "concat"
    """`concat`: each group has its own columns, and can be missing. `sum`: all share the same."""


class Top(_Section, frozen=True, kw_only=True):
    """The aggregator's part of the network."""

    model: ModelSpec = ModelSpec()
    """From the joint embedding to the outputs."""
    batch_norm: bool = True
    """Normalise the embedding, skipping what is missing, before zeros stand in for it."""
    activation: Literal["relu", "none"] = "relu"
    """Applied to the (normalised, padded) embedding."""


class Training(_Section, frozen=True, kw_only=True):
    """How long, and with which steps."""

    epochs: int = 10
    """Passes over the training rows; ignored where `rounds` is given."""
    rounds: int | None = None
    """Mini-batches in all."""
    batch_size: int = 256
    """Rows a round."""
    optimizer: Literal["sgd", "adam"] = "sgd"
    """The same for every part of the network."""
    learning_rate: float = 0.01
    """The step size."""
    momentum: float = 0.0
    """Of `sgd`."""
    evaluate_every: int | None = None
    """Evaluate on held-out rows every so many training rounds; left out, once an epoch; 0, only at
    the end."""


class Split(_Section, frozen=True, kw_only=True):
    """Which rows are held out. The active party decides; a passive one sees which of its own are."""

    validation: float = 0.0
    """Fraction for the evaluations between rounds; 0 makes them use the test rows."""
    test: float = 0.2
    """Fraction for the last evaluation."""


class Alignment(_Section, frozen=True, kw_only=True):
    """How rows of different parties are matched."""

    join: Literal["inner", "left"] = "inner"
    """`inner` keeps the rows that every group has; `left` all rows of the active party, zeros where
    a group has none."""


class Encoding(_Section, frozen=True, kw_only=True):
    """How columns become numbers."""

    category_cap: int = 64
    """Most categories of a column that get a feature of their own, the most frequent; the rest share one."""


class Security(_Section, frozen=True, kw_only=True):
    """What hides the embeddings, and how precisely they are carried."""

    mode: SecurityMode = "secure"
    """`secure`; `insecure-integers`: fixed point without masks; `insecure-plain`: bare float32."""
    rekey_every: int = 100
    """Rounds between new ephemeral keys."""
    word_bits: Literal[16, 32] = 32
    """Width of a masked embedding word. 16 halves the upload of embeddings."""
    clip: float = 4.0
    """Embeddings are clipped to [-clip, clip]."""
    range_bits: int | None = None
    """The range [-clip, clip] is spread over 2**range_bits integers; left out, 27 for 32-bit words,
    the most that cannot overflow for 16."""
    update_clip: float = 4.0
    """Parameter gradients that a group sums blindly are clipped to [-update_clip, update_clip];
    their words have 32 bits."""
    insecure_label_only_active: bool = False
    """Allow an active party without columns, although the aggregator then sees each group's
    embedding bare."""


class Dropout(_Section, frozen=True, kw_only=True):
    """What a missing party costs."""

    policy: Literal["pad", "discard"] = "pad"
    """`pad`: its slice is padded for the round. `discard`: the round is dropped."""
    deadline: float = 10.0
    """Seconds the aggregator waits for the replies of an exchange."""
    patience: float = 600.0
    """Seconds without a round of any use, waiting for the active party, for any passive one at all, or with `discard`
    for everybody, before it stops."""


class Simulation(_Section, frozen=True, kw_only=True):
    """Faults that `vfedsec simulate` brings about; without meaning for a real run."""

    drop_probability: float = 0.0
    """Chance that a training round loses parties."""
    drop_proportion: float = 0.1
    """The proportion of passive parties such a round loses (at least one)."""


class Job(_Section, frozen=True, kw_only=True):
    """A whole job file."""

    name: str
    """Names the run in logs and results."""
    seed: int = 0
    """Seeds the top model, whose first weights are thereby public, and in a simulation drop-outs and
    all that the parties' files leave out."""
    active: Active
    groups: tuple[Group, ...]
    task: Task = Task()
    fusion: Fusion = Fusion()
    top: Top = Top()
    training: Training = Training()
    split: Split = Split()
    alignment: Alignment = Alignment()
    encoding: Encoding = Encoding()
    security: Security = Security()
    dropout: Dropout = Dropout()
    simulation: Simulation = Simulation()
    identities: dict[str, str] = {}
    """The Ed25519 public keys of the parties and of `aggregator`, base64: of all of them, or in a
    simulation of none."""
    parties: dict[str, str] = {}
    """For `vfedsec simulate`: each party's own file, relative to this one."""

    @property
    def passive_parties(self) -> tuple[str, ...]:
        """Every passive party, group by group."""
        return tuple(party for group in self.groups for party in group.parties)

    @property
    def embedding_width(self) -> int:
        """Columns of the joint embedding."""
        if self.fusion.kind == "sum":
            return self.groups[0].width
        return sum(group.width for group in self.groups)

    @property
    def output_width(self) -> int:
        """Columns of the top model's output."""
        return len(self.task.classes) if self.task.kind == "multiclass" else 1
