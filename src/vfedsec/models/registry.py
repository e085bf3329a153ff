"""Networks by the name that a job gives them, with weights drawn from a seed and nothing else."""

from __future__ import annotations

from collections.abc import Callable, Collection
from functools import partial
from typing import Any, TypeVar

import msgspec
import torch
from torch import nn

from vfedsec.config.job import Job, ModelSpec
from vfedsec.config.networks import models_of
from vfedsec.config.refusals import Refusal, misfits
from vfedsec.errors import ConfigError, naming
from vfedsec.models.import_path import is_import_path, load_class, told
from vfedsec.models.networks import (
    CnnOptions,
    Inputs,
    LinearOptions,
    MlpOptions,
    NoOptions,
    cnn,
    linear,
    mlp,
)
from vfedsec.models.seeding import seeded

Options = TypeVar("Options", bound=NoOptions)
Builder = Callable[[Inputs, int, Options], nn.Module]

_registry: dict[str, tuple[Builder[Any], type[NoOptions]]] = {}


def register(name: str, builder: Builder[Options], options: type[Options]) -> None:
    """Let jobs name this network; its options are checked against the fields of the struct."""
    if name in _registry or is_import_path(name):
        raise ValueError(f"network name {name!r} is taken or has a colon")
    _registry[name] = builder, options


def known_networks() -> dict[str, type[NoOptions]]:
    """The names that a job may give, and the options of each."""
    return {name: options for name, (_, options) in _registry.items()}


register("linear", linear, LinearOptions)
register("mlp", mlp, MlpOptions)
register("cnn", cnn, CnnOptions)


def build_module(
    spec: ModelSpec,
    inputs: Inputs,
    outputs: int,
    seed: bytes,
    allowed_packages: Collection[str] = (),
) -> nn.Module:
    """The network of a spec, its initial weights a function of the seed alone.

    A class named by import path is called as `Class(inputs, outputs, **options)`. It must draw
    weights from torch's default CPU generator only, and no randomness at all once it is built.

    Raises:
        ConfigError: The name, its options or its shapes are wrong, or it is an import path into a
            package that is not on the allow-list.
    """
    with seeded(seed):
        module = _construct(spec, inputs, outputs, allowed_packages)
        _check_output(spec.name, module, inputs, outputs)
    return module.train()


def check_networks(job: Job, allowed_packages: Collection[str] = ()) -> None:
    """Look at the names and options of all networks of a job, as far as that goes without knowing their inputs.

    Raises:
        ConfigError: As `build_module` would.
    """
    for key, spec in models_of(job):
        with naming(key=key):
            if is_import_path(spec.name):
                load_class(spec.name, nn.Module, allowed_packages)
            else:
                _registered(spec)


def _construct(spec: ModelSpec, inputs: Inputs, outputs: int, allowed_packages: Collection[str]) -> nn.Module:
    if is_import_path(spec.name):
        make = partial(load_class(spec.name, nn.Module, allowed_packages), inputs, outputs, **spec.options)
    else:
        builder, options = _registered(spec)
        make = partial(builder, inputs, outputs, options)
    try:
        return make()
    except ConfigError:
        raise
    except Exception as error:  # the code of a network may fail in any way, and torch where memory ends
        raise ConfigError(
            f"network {spec.name!r} cannot be made with inputs = {inputs}, outputs = {outputs} "
            f"and options {sorted(spec.options)}: {told(error)}"
        ) from error


def _registered(spec: ModelSpec) -> tuple[Builder[Any], NoOptions]:
    if spec.name not in _registry:
        raise ConfigError(
            f"no network is called {spec.name!r}, expected one of {', '.join(_registry)} "
            "or an import path 'package.module:Class'"
        )
    builder, options = _registry[spec.name]
    try:
        return builder, msgspec.convert(spec.options, options)
    except msgspec.ValidationError as error:
        otherwise = Refusal(".options", f"options of network {spec.name!r}", str(error))
        raise next(misfits(spec.options, options, ".options"), otherwise).error("") from None


def _check_output(name: str, module: nn.Module, inputs: Inputs, outputs: int) -> None:
    """Pass one row of zeros through, so that a wrong shape is found before the first round."""
    row = torch.zeros(1, *((inputs,) if isinstance(inputs, int) else inputs))
    try:
        with torch.no_grad():
            output = module.eval()(row)
    except Exception as error:  # as above
        shape = list(row.shape[1:])
        raise ConfigError(f"network {name!r} does not take rows of shape {shape}: {told(error)}") from error
    if output.shape != (1, outputs) or output.dtype != torch.float32:
        raise ConfigError(
            f"network {name!r} makes {list(output.shape[1:])} {output.dtype} of a row, "
            f"expected [{outputs}] torch.float32"
        )
