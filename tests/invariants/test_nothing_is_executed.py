"""No pickle, no eval, and nothing from the network reaches an import path."""

import ast
from pathlib import Path

import pytest

import vfedsec
from federation import Federation, job_of
from vfedsec.config.job import ModelSpec, Task, Top
from vfedsec.errors import ConfigError, RemoteProtocolError
from vfedsec.models.import_path import load_class
from vfedsec.models.state import load_tensors
from vfedsec.protocol.messages import decode_reply, decode_request

ROOT = Path(vfedsec.__file__).parent
MODULES = sorted(ROOT.rglob("*.py"))
EVERY_MODULE = pytest.mark.parametrize("path", MODULES, ids=lambda path: path.relative_to(ROOT).as_posix())

IMPORTERS = {
    # Asks an allow-list that no job can change.
    "models/import_path.py": {"importlib"},
    # Loads the package's own modules late, by a table of its own.
    "__init__.py": {"importlib.import_module"},
}
PICKLES = {"pickle", "cPickle", "dill", "cloudpickle", "joblib", "shelve"}
FORBIDDEN_MODULES = PICKLES | {"marshal", "imp", "runpy", "code", "ctypes", "importlib"}
FORBIDDEN_CALLS = {"eval", "exec", "compile", "__import__", "execfile"}
FORBIDDEN_ATTRIBUTES = {
    ("torch", "load"),
    ("torch", "save"),
    ("os", "system"),
    ("os", "popen"),
    ("yaml", "load"),
    ("subprocess", "getoutput"),
}


def found_in(tree):
    """Every use of something that could turn data into code."""
    for node in ast.walk(tree):
        match node:
            case ast.Import():
                yield from (alias.name for alias in node.names if is_forbidden(alias.name))
            case ast.ImportFrom(module=str(module)) if is_forbidden(module):
                yield from (f"{module}.{alias.name}" for alias in node.names)
            case ast.Name(id=name) if name in FORBIDDEN_CALLS:
                yield name
            case ast.Attribute(value=ast.Name(id=owner), attr=name):
                if (owner, name) in FORBIDDEN_ATTRIBUTES or (owner == "builtins" and name in FORBIDDEN_CALLS):
                    yield f"{owner}.{name}"
            case ast.keyword(arg="allow_pickle" | "shell" as name, value=value):
                if not (isinstance(value, ast.Constant) and value.value is False):
                    yield name


def is_forbidden(module):
    return module.split(".")[0] in FORBIDDEN_MODULES


HARMLESS = {"importlib.metadata", "importlib.resources"}


@EVERY_MODULE
def test_no_module_can_turn_data_into_code(path):
    found = {use for use in found_in(ast.parse(path.read_text())) if not any(use.startswith(ok) for ok in HARMLESS)}
    name = path.relative_to(ROOT).as_posix()
    assert found == IMPORTERS.get(name, set())


def test_the_package_loads_nothing_but_what_stands_in_its_table():
    for name in ("os", "subprocess", "models.import_path", "__path"):
        with pytest.raises(AttributeError):
            getattr(vfedsec, name)


@pytest.mark.parametrize(
    "code",
    [
        "import pickle",
        "from pickle import loads",
        "import marshal",
        "eval('1')",
        "exec('1')",
        "__import__('os')",
        "import importlib",
        "from importlib import import_module",
        "np.load(path, allow_pickle=True)",
        "torch.load(path)",
        "os.system('true')",
        "subprocess.run('true', shell=True)",
    ],
)
def test_the_scan_notices(code):
    assert list(found_in(ast.parse(code)))


@pytest.mark.parametrize("code", ["re.compile('x')", "np.load(path, allow_pickle=False)", "model.eval()"])
def test_the_scan_lets_pass_what_is_harmless(code):
    assert not list(found_in(ast.parse(code)))


def test_numpy_files_are_read_without_pickle():
    for path in MODULES:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and ast.unparse(node.func) in ("np.load", "numpy.load"):
                assert any(keyword.arg == "allow_pickle" for keyword in node.keywords), path


# -- import paths in a job --

OUTSIDE = "subprocess:Popen"
PLACES = {
    "the active party's model": lambda job: {"active": replace(job.active, model=ModelSpec(name=OUTSIDE))},
    "a group's model": lambda job: {"groups": (replace(job.groups[0], model=ModelSpec(name=OUTSIDE)), *job.groups[1:])},
    "the top model": lambda job: {"top": Top(model=ModelSpec(name=OUTSIDE))},
    "the loss": lambda job: {"task": Task(loss=OUTSIDE)},
}


def replace(struct, **changes):
    return type(struct)(**{name: getattr(struct, name) for name in struct.__struct_fields__} | changes)


@pytest.mark.parametrize("change", PLACES.values(), ids=PLACES)
def test_a_job_that_names_an_import_path_outside_the_allow_list_is_refused(change):
    job = job_of()
    job = replace(job, **change(job))
    with pytest.raises(ConfigError, match="not on the allow-list"):
        Federation(job, watched=False).simulation.train()


def test_the_allow_list_is_of_whole_packages():
    with pytest.raises(ConfigError, match="not on the allow-list"):
        load_class("torchvision.models:ResNet", object, ["torch"])


def test_a_job_cannot_bring_its_own_allow_list():
    assert not any("allow" in field for field in type(job_of()).__struct_fields__)


# -- bytes off the wire --

# What pickles `os.system("true")`.
PICKLE = bytes.fromhex("8004951f000000000000008c05706f736978948c0673797374656d9493948c047472756594859452942e")


@pytest.mark.parametrize("decode", [decode_request, decode_reply, lambda body: load_tensors(bytes(body), {})])
def test_a_pickle_off_the_wire_is_refused(decode):
    with pytest.raises(RemoteProtocolError):
        decode(memoryview(PICKLE))
