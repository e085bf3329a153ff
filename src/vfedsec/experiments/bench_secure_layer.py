"""What the Secure Layer costs by itself: masking, a whole forward step of a passive party, setting up a pair."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from typing import Any

import numpy as np
import torch
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from vfedsec.config.job import Active, Group, Job, ModelSpec, Training
from vfedsec.crypto.keys import EphemeralKey, Identity, RunContext, announce, check_announcement
from vfedsec.crypto.masking import MaskStream, Scratch, nonce_of
from vfedsec.crypto.pairs import Pair
from vfedsec.crypto.prg import TAG_BYTES
from vfedsec.experiments.timing import alternate, median_ratio, micros
from vfedsec.models.bottom import build_bottom
from vfedsec.protocol.messages import Share
from vfedsec.protocol.secure_layer import SecureLayer
from vfedsec.protocol.session import Channel

BATCH, WIDTH, PEERS = 256, 128, 16
FORWARD_INPUTS, FORWARD_WIDTH, FORWARD_PEERS = 20, 64, 4
_CONTEXT = RunContext(b"benchmark run id", 0)


def run(laps: int = 200) -> dict[str, float]:
    """All figures, from one run on one thread."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        return {
            "mask_over_keystream": mask_over_keystream(laps),
            **forward_step(laps),
            "pair_setup_us": pair_setup_us(laps),
        }
    finally:
        torch.set_num_threads(threads)


def mask_over_keystream(laps: int) -> float:
    """Speed of masking one array against many peers, as a fraction of the bare keystream and addition."""
    keys = [bytes([peer]) * 32 for peer in range(PEERS)]
    words = np.zeros((BATCH, WIDTH), np.uint32)
    scratch = Scratch()
    streams = [MaskStream(key, scratch) for key in keys]
    rounds = count()

    def masked() -> None:
        round_index = next(rounds)
        for stream in streams:
            stream.mask(words, round_index, 0, add=True)

    seconds = alternate({"masked": masked, "bare": _bare_masking(keys, words)}, laps=laps, inner=4)
    return median_ratio(seconds["bare"], seconds["masked"])


def _bare_masking(keys: list[bytes], words: np.ndarray[Any, np.dtype[np.uint32]]) -> Callable[[], None]:
    ciphers = [AESGCM(key).encrypt_into for key in keys]
    zeros = bytes(words.nbytes)
    buffer = bytearray(words.nbytes + TAG_BYTES)
    stream = np.frombuffer(buffer, np.uint32, words.size)
    flat = words.reshape(-1)
    nonce = nonce_of(0, 0)

    def bare() -> None:
        for encrypt_into in ciphers:
            encrypt_into(nonce, zeros, None, buffer)
            np.add(flat, stream, out=flat)

    return bare


def forward_step(laps: int) -> dict[str, float]:
    """The whole secure forward step of one passive party beside the bare linear layer."""
    inputs = np.random.default_rng(0).standard_normal((4096, FORWARD_INPUTS)).astype(np.float32)
    model = build_bottom(inputs, FORWARD_WIDTH, ModelSpec(options={"bias": False}), b"weights", Training(), False)
    layer = SecureLayer(_job(), bytes(32), float)
    pairs = [_pair(f"peer{peer}", layer.scratch) for peer in range(FORWARD_PEERS)]
    channel = Channel(bytes(32), _CONTEXT, "passive", at_party=True)
    rows = np.arange(BATCH, dtype=np.int32)
    linear = torch.nn.Linear(FORWARD_INPUTS, FORWARD_WIDTH, bias=False)
    batch = torch.from_numpy(inputs[:BATCH])
    rounds = count()

    def secure() -> bytes:
        round_index = next(rounds)
        words = layer.share(model.forward(rows, training=True), round_index, 0, pairs)
        return channel.protect(round_index, Share(round_index, {0: words.data}))

    seconds = alternate({"secure": secure, "bare": lambda: linear(batch)}, laps=laps, inner=4)
    return {
        "secure_forward_us": micros(seconds["secure"]),
        "bare_linear_us": micros(seconds["bare"]),
    }


def _job() -> Job:
    parties = tuple(f"peer{peer}" for peer in range(FORWARD_PEERS))
    group = Group(name="group", parties=parties, columns=("column",), width=FORWARD_WIDTH)
    return Job(name="benchmark", active=Active(party="active", columns=("column",)), groups=(group,))


def _pair(partner: str, scratch: Scratch) -> Pair:
    own = EphemeralKey(b"own key of the forward step".ljust(32), 0)
    theirs = EphemeralKey(partner.encode().ljust(32), 0)
    return Pair(_CONTEXT, ("passive", own), (partner, theirs.public), scratch)


def pair_setup_us(laps: int) -> float:
    """Microseconds from a partner's announcement to keys for masks and envelopes, signature check included."""
    identity = Identity.from_seed(bytes(32))
    theirs = EphemeralKey(b"key of the partner".ljust(32), 0)
    announcement = announce(identity, _CONTEXT, "partner", theirs)
    own = EphemeralKey(b"own key of the pair".ljust(32), 0)
    scratch = Scratch()

    def set_up() -> None:
        check_announcement(announcement, identity.public, _CONTEXT)
        pair = Pair(_CONTEXT, ("own", own), ("partner", announcement.public_key), scratch)
        pair.forward_masks()
        pair.incoming("envelope")

    return micros(alternate({"pair": set_up}, laps=laps)["pair"])
