"""Networks by name."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import nn

from vfedsec.config.job import ModelSpec
from vfedsec.errors import ConfigError, naming
from vfedsec.models import registry
from vfedsec.models.networks import LinearOptions, NoOptions, linear
from vfedsec.models.registry import build_module, register

SEED = b"a seed"


def spec(name: str, **options: object) -> ModelSpec:
    return ModelSpec(name=name, options=options)


def layer_types(module: nn.Module) -> list[str]:
    return [type(layer).__name__ for layer in module.modules() if not list(layer.children())]


def weights(module: nn.Module) -> torch.Tensor:
    return torch.cat([p.detach().reshape(-1) for p in module.parameters()])


def test_linear_is_a_single_layer() -> None:
    module = build_module(spec("linear"), 5, 3, SEED)
    assert type(module) is nn.Linear
    assert module.weight.shape == (3, 5)
    assert module.bias is not None


def test_linear_without_bias_has_none() -> None:
    assert build_module(spec("linear", bias=False), 5, 3, SEED).bias is None


def test_mlp_has_relu_between_its_layers() -> None:
    module = build_module(spec("mlp", hidden=[8, 4]), 5, 3, SEED)
    assert layer_types(module) == ["Linear", "ReLU", "Linear", "ReLU", "Linear"]
    assert [tuple(p.shape) for p in module.parameters() if p.dim() == 2] == [(8, 5), (4, 8), (3, 4)]


def test_mlp_without_bias_has_none_anywhere() -> None:
    module = build_module(spec("mlp", hidden=[8], bias=False), 5, 3, SEED)
    assert all(p.dim() == 2 for p in module.parameters())


def test_cnn_is_the_network_of_the_paper() -> None:
    module = build_module(spec("cnn", shape=[1, 28, 28]), 784, 150, SEED)
    block = ["Conv2d", "BatchNorm2d", "ReLU", "MaxPool2d"]
    assert layer_types(module) == ["_Image", *block, *block, "Flatten", "Linear"]
    assert module[-1].in_features == 64 * 7 * 7


@pytest.mark.parametrize("shape", [[1, 7, 28], [1, 28, 1], [3, 1, 1], [1, 2, 3], [1, 3, 28]])
def test_cnn_takes_thin_slices(shape: list[int]) -> None:
    columns = shape[0] * shape[1] * shape[2]
    module = build_module(spec("cnn", shape=shape), columns, 9, SEED)
    assert module(torch.randn(4, columns)).shape == (4, 9)


def test_cnn_takes_the_shape_of_its_rows_without_an_option() -> None:
    module = build_module(spec("cnn"), (1, 7, 28), 9, SEED)
    assert module(torch.randn(4, 1, 7, 28)).shape == (4, 9)


@pytest.mark.parametrize(("inputs", "options"), [(196, {}), (196, {"shape": [1, 7, 27]}), ((7, 28), {})])
def test_cnn_without_a_fitting_shape_is_refused(inputs: int | tuple[int, ...], options: dict[str, object]) -> None:
    with pytest.raises(ConfigError, match=r"option shape = "):
        build_module(spec("cnn", **options), inputs, 9, SEED)


@pytest.mark.parametrize("network", [spec("linear"), spec("mlp", hidden=[6])])
def test_flat_networks_flatten_rows_of_any_shape(network: ModelSpec) -> None:
    assert build_module(network, (2, 3), 4, SEED)(torch.randn(5, 2, 3)).shape == (5, 4)


def test_an_unknown_name_is_refused_with_all_the_known_ones() -> None:
    with pytest.raises(ConfigError) as refusal:
        build_module(spec("linaer"), 5, 3, SEED)
    assert all(name in str(refusal.value) for name in ("'linaer'", "linear", "mlp", "cnn"))


@pytest.mark.parametrize(
    ("network", "refusal"),
    [
        (
            spec("mlp", hidden=[4], depth=2),
            '[m.options.depth]: expected a key of [options] (hidden, bias), found "depth"',
        ),
        (spec("mlp", hiden=[4]), 'found "hiden": did you mean "hidden"?'),
        (spec("mlp", hidden=[0]), "[m.options.hidden[0]]: expected a whole number of at least 1, found the number 0"),
        (spec("mlp", hidden="8"), '[m.options.hidden]: expected a list of whole numbers, found the text "8"'),
        (spec("mlp"), "[m.options.hidden]: expected a list of whole numbers, found nothing: it must be given"),
        (spec("mlp", hidden=[4], bias=1), "[m.options.bias]: expected true or false, found the number 1"),
        (spec("cnn", shape=[1, 2]), "[m.options.shape]: expected a list of whole numbers, found a list"),
        (spec("mlp", hidden=[10**11]), "[m]: network 'mlp' cannot be made with inputs = 5, outputs = 3"),
    ],
)
def test_a_bad_option_is_refused_with_its_place(network: ModelSpec, refusal: str) -> None:
    with pytest.raises(ConfigError) as error, naming(key="m"):
        build_module(network, 5, 3, SEED)
    assert refusal in str(error.value)


def test_a_registered_network_can_be_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "_registry", dict(registry._registry))
    register("flat", lambda i, o, options: linear(i, o, LinearOptions(bias=False)), NoOptions)
    assert build_module(spec("flat"), 5, 3, SEED).bias is None


@pytest.mark.parametrize("name", ["linear", "package:Class"])
def test_a_taken_or_ambiguous_name_is_not_registered(name: str) -> None:
    with pytest.raises(ValueError, match="taken or has a colon"):
        register(name, linear, LinearOptions)


def test_an_import_path_is_refused_unless_the_caller_allows_its_package() -> None:
    with pytest.raises(ConfigError, match="not on the allow-list"):
        build_module(spec("torch.nn:Linear"), 5, 3, SEED)


def test_an_allowed_import_path_is_built_with_its_options() -> None:
    module = build_module(spec("torch.nn:Linear", bias=False), 5, 3, SEED, ["torch"])
    assert module.weight.shape == (3, 5)
    assert module.bias is None


def test_options_that_a_class_does_not_take_are_refused() -> None:
    with pytest.raises(ConfigError, match=r"cannot be made with .* \['depth'\]"):
        build_module(spec("torch.nn:Linear", depth=3), 5, 3, SEED, ["torch"])


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("strange_networks:Incomplete", r"cannot be made with .*KeyError: 'missing'"),
        ("strange_networks:Forgetful", r"does not take rows of shape \[5\]: AssertionError: not today"),
        ("strange_networks:Nothing", "leads nowhere"),
        ("strange_networks.nothing:Nothing", "leads nowhere"),
    ],
)
def test_a_network_that_fails_in_a_way_of_its_own_is_refused(path: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        build_module(spec(path), 5, 3, SEED, ["strange_networks"])


def test_a_package_that_cannot_be_imported_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "broken_package.py").write_text("1 / 0\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ConfigError, match="cannot be imported: ZeroDivisionError"):
        build_module(spec("broken_package:Net"), 5, 3, SEED, ["broken_package"])


def test_a_network_with_other_outputs_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"makes \[5\] torch.float32 of a row, expected \[3\]"):
        build_module(spec("torch.nn:Identity"), 5, 3, SEED, ["torch"])


def test_a_network_with_outputs_of_another_type_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"makes \[3\] torch.float64 of a row, expected \[3\] torch.float32"):
        build_module(spec("strange_networks:Double"), 5, 3, SEED, ["strange_networks"])


def test_a_network_with_other_inputs_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"does not take rows of shape \[5\]"):
        build_module(spec("torch.nn:Conv2d", kernel_size=3), 5, 3, SEED, ["torch"])


@pytest.mark.parametrize("network", [spec("linear"), spec("mlp", hidden=[4]), spec("cnn", shape=[1, 2, 3])])
def test_weights_follow_from_the_seed_alone(network: ModelSpec) -> None:
    first = weights(build_module(network, 6, 3, SEED))
    torch.rand(1)
    assert torch.equal(first, weights(build_module(network, 6, 3, SEED)))
    assert not torch.equal(first, weights(build_module(network, 6, 3, b"another seed")))


def test_building_leaves_the_global_generator_alone() -> None:
    before = torch.get_rng_state()
    build_module(spec("linear"), 5, 3, SEED)
    assert torch.equal(before, torch.get_rng_state())


def test_a_network_comes_ready_to_train_with_fresh_statistics() -> None:
    module = build_module(spec("cnn", shape=[1, 4, 4]), 16, 3, SEED)
    assert all(layer.training for layer in module.modules())
    assert all((b == 0).all() or (b == 1).all() for b in module.buffers())
