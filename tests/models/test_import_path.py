"""Classes by import path."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from torch import nn

from vfedsec.errors import ConfigError
from vfedsec.models.import_path import load_class


@pytest.mark.parametrize("package", ["torch", "torch.nn"])
def test_a_class_of_an_allowed_package_is_found(package: str) -> None:
    assert load_class("torch.nn:Linear", nn.Module, [package]) is nn.Linear


@pytest.mark.parametrize("allowed", [(), ("numpy",), ("torch.optim",), ("torc",), ("torch.nn.x",)])
def test_other_packages_are_refused(allowed: tuple[str, ...]) -> None:
    with pytest.raises(ConfigError, match="not on the allow-list"):
        load_class("torch.nn:Linear", nn.Module, allowed)


def test_a_refused_module_is_never_imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "module_with_effects.py").write_text("class Network: ...")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ConfigError):
        load_class("module_with_effects:Network", object, [])
    assert "module_with_effects" not in sys.modules


@pytest.mark.parametrize(
    "path", ["", ":", "torch:", ":Linear", "torch.nn:a.b", "torch..nn:A", ".nn:A", "a b:C", "a:B\n"]
)
def test_a_malformed_path_is_refused(path: str) -> None:
    with pytest.raises(ConfigError, match=r"expected 'package\.module:Class'"):
        load_class(path, nn.Module, ["torch", "a"])


@pytest.mark.parametrize("path", ["torch.nn:Nothing", "torch.nothing:Linear"])
def test_a_path_that_leads_nowhere_is_refused(path: str) -> None:
    with pytest.raises(ConfigError, match="leads nowhere"):
        load_class(path, nn.Module, ["torch"])


@pytest.mark.parametrize("path", ["torch:Tensor", "torch:relu"])
def test_what_is_no_such_class_is_refused(path: str) -> None:
    with pytest.raises(ConfigError, match="must name a subclass of Module"):
        load_class(path, nn.Module, ["torch"])
