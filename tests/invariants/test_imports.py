"""Who may import whom: everybody those in a layer below, and nobody those above."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import vfedsec

ROOT = Path(vfedsec.__file__).parent
LAYERS = {
    "errors": 0,
    "config": 1,
    "quantization": 1,
    "crypto": 1,
    "trace": 1,
    "metrics": 1,
    "protocol": 2,
    "models": 3,
    "data": 3,
    "engines": 4,
    "experiments": 5,
    "dashboard": 6,
    "cli": 6,
}
MODULES = sorted(ROOT.rglob("*.py"))


def part_of(path):
    """The package or module under `vfedsec` that a file belongs to; empty for `vfedsec` itself."""
    first = path.relative_to(ROOT).parts[0].removesuffix(".py")
    return "" if first in ("__init__", "__main__") else first


def imports_of(tree):
    """Every module that is imported anywhere in a file, inside functions too."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "relative imports hide the layer"
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names if node.module == "vfedsec")


def imports_in(path):
    return set(imports_of(ast.parse(path.read_text())))


def parts_imported(path):
    names = {name.split(".")[1] for name in imports_in(path) if name.startswith("vfedsec.")}
    return {name for name in names if not name.startswith("__")}


def test_there_are_modules_to_look_at():
    assert {part_of(path) for path in MODULES} >= {"", *LAYERS} - {"cli", "dashboard"}


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_a_module_imports_from_its_own_layer_or_below(path):
    part = part_of(path)
    if part == "":
        return  # the package's face shows what users need, from any layer
    assert part in LAYERS, f"say in this test which layer {part} is"
    above = {other for other in parts_imported(path) if LAYERS[other] > LAYERS[part]}
    assert not above, f"{part} is below {sorted(above)}"


@pytest.mark.parametrize(("lower", "peer"), [("models", "data"), ("data", "models"), ("crypto", "quantization")])
def test_neighbours_of_one_layer_do_not_know_each_other(lower, peer):
    for path in MODULES:
        if part_of(path) == lower:
            assert peer not in parts_imported(path), path


IMPURE = {
    "torch",
    "socket",
    "time",
    "random",
    "secrets",
    "os",
    "asyncio",
    "threading",
    "subprocess",
    "datetime",
    "uuid",
}
PURE_MODULES = [path for path in MODULES if part_of(path) in ("protocol", "quantization", "errors")]


@pytest.mark.parametrize("path", PURE_MODULES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_the_protocol_opens_no_socket_reads_no_clock_and_draws_no_randomness(path):
    found = {name.split(".")[0] for name in imports_in(path)}
    assert not found & IMPURE
    assert "np.random" not in path.read_text()


def test_torch_lives_in_models_and_above():
    for path in MODULES:
        if LAYERS.get(part_of(path), 9) < LAYERS["models"]:
            assert not any(name.split(".")[0] == "torch" for name in imports_in(path)), path


@pytest.mark.parametrize("module", ["protocol.aggregator", "protocol.active", "protocol.passive", "crypto.pairs"])
def test_the_protocol_runs_without_torch(module):
    """Also through whatever the imported modules import themselves."""
    code = f"import sys; sys.modules['torch'] = None; import importlib; importlib.import_module('vfedsec.{module}')"
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, timeout=60)


SPEAKERS = {part_of(path) for path in MODULES} - {"", "engines", "experiments", "dashboard", "cli"}
NETWORK = {"socket", "nats", "http", "urllib", "requests", "ssl", "asyncio"}
HARMLESS = {"urllib.parse"}  # takes addresses apart


def test_nothing_below_the_engines_knows_a_network():
    for path in MODULES:
        if part_of(path) in SPEAKERS:
            assert not {name.split(".")[0] for name in imports_in(path) - HARMLESS} & NETWORK, path
