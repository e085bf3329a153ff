"""Why a value of a job or party file is refused, in the words of the TOML file.

msgspec alone decides whether a file fits the structs. When it does not, `misfits` walks the same
structs to tell the user which key it is, with every key of a table named and the value found there.
"""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, NamedTuple, TypeGuard, Union, get_args, get_origin

import msgspec
from msgspec.structs import FieldInfo

from vfedsec.config.party import Secret
from vfedsec.errors import ConfigError

_LONGEST_SHOWN = 60
_UNIONS = (Union, UnionType)
_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")
_EXPECTED = {int: "a whole number", float: "a number", str: "a text", bool: "true or false"}
_SEVERAL = {int: "whole numbers", float: "numbers", str: "texts"}


class Refusal(NamedTuple):
    """One thing that a file may not say."""

    key: str
    """Where: the path of the key, lists counted from 0."""
    expected: str
    found: str
    why: str = ""

    def error(self, file: str) -> ConfigError:
        """The same as an exception."""
        message = f"expected {self.expected}, found {self.found}"
        return ConfigError(f"{message}: {self.why}" if self.why else message, file=file, key=self.key)


def join_key(table: str, name: object) -> str:
    """The path of a key in a table; "" is the whole file."""
    text = str(name)
    if not _BARE_KEY.fullmatch(text):
        text = json.dumps(text)
    text = _shortened(text)
    return f"{table}.{text}" if table else text


def shown(value: object) -> str:
    """A value found in a file, as the user wrote it or near enough."""
    match value:
        case bool():
            return "true" if value else "false"
        case str():
            return f"the text {_shortened(json.dumps(value, ensure_ascii=False))}"
        case int() | float():
            return f"the number {_shortened(_digits(value))}"
        case _:
            return _kind(value)


def misfits(value: object, expected: Any, key: str = "") -> Iterator[Refusal]:
    """Every place where `value` is not what the type says, in the order of the file."""
    origin = get_origin(expected)
    if isinstance(expected, type) and issubclass(expected, msgspec.Struct):
        yield from _struct_misfits(value, expected, key)
    elif origin is dict:
        yield from _table_misfits(value, expected, key)
    elif origin is tuple:
        yield from _list_misfits(value, expected, key)
    elif (items := _list_among(expected)) is not None and _is_list(value):
        yield from _list_misfits(value, items, key)
    elif not _fits(value, expected):
        found = _kind(value) if expected == Secret else shown(value)
        yield Refusal(key, described(expected), found)


def _struct_misfits(value: object, struct: type[msgspec.Struct], key: str) -> Iterator[Refusal]:
    if not isinstance(value, Mapping):
        yield Refusal(key, "a table", shown(value))
        return
    fields = {field.name: field for field in msgspec.structs.fields(struct)}
    for name, item in value.items():
        if name in fields:
            yield from misfits(item, fields[name].type, join_key(key, name))
        else:
            yield _unknown(name, tuple(fields), key)
    yield from _missing(fields, value, key)


def _table_misfits(value: object, table: Any, key: str) -> Iterator[Refusal]:
    if not isinstance(value, Mapping):
        yield Refusal(key, "a table", shown(value))
        return
    for name, item in value.items():
        if isinstance(name, str):
            yield from misfits(item, get_args(table)[1], join_key(key, name))
        else:
            yield Refusal(join_key(key, name), "a text for a key", shown(name))


def _list_among(expected: Any) -> Any:
    """The list of any length that a value may be, where it may be something else too."""
    choices = get_args(expected) if get_origin(expected) in _UNIONS else ()
    return next((one for one in choices if get_origin(one) is tuple and get_args(one)[-1] is Ellipsis), None)


def _is_list(value: object) -> TypeGuard[Sequence[object]]:
    return isinstance(value, Sequence) and not isinstance(value, str)


def _list_misfits(value: object, items: Any, key: str) -> Iterator[Refusal]:
    if not _is_list(value):
        lone = isinstance(value, Mapping) and _plain_type(get_args(items)[0]) not in _SEVERAL
        why = f"each is written [[{key}]]" if lone else ""
        yield Refusal(key, described(items), shown(value), why)
        return
    for index, item in enumerate(value):
        yield from misfits(item, get_args(items)[0], f"{key}[{index}]")


def _missing(fields: Mapping[str, FieldInfo], value: Mapping[str, object], key: str) -> Iterator[Refusal]:
    for name, field in fields.items():
        if field.required and name not in value:
            yield Refusal(join_key(key, name), described(field.type), "nothing: it must be given")


def _unknown(name: object, known: tuple[str, ...], table: str) -> Refusal:
    place = f"[{table.lstrip('.')}]" if table else "the top level"
    found = shown(name) if not isinstance(name, str) else _shortened(json.dumps(name))
    close = difflib.get_close_matches(str(name)[:_LONGEST_SHOWN], known, n=1)
    if close:
        return Refusal(join_key(table, name), f"a key of {place}", found, f'did you mean "{close[0]}"?')
    return Refusal(join_key(table, name), f"a key of {place} ({', '.join(known)})", found)


def _fits(value: object, expected: Any) -> bool:
    try:
        msgspec.convert(value, expected, strict=True)
    except msgspec.ValidationError:
        return False
    return True


def described(expected: Any) -> str:
    """What a key of this type takes, in words."""
    origin, arguments = get_origin(expected), get_args(expected)
    if origin is Literal:
        choices = ", ".join(json.dumps(choice) for choice in arguments)
        return f"one of {choices}" if len(arguments) > 1 else choices
    if origin in _UNIONS:
        return " or ".join(described(choice) for choice in arguments if choice is not NoneType)
    if origin is tuple:
        return f"a list of {_SEVERAL.get(_plain_type(arguments[0]), 'tables')}"
    if origin is Annotated:
        least = next((one.ge for one in arguments[1:] if getattr(one, "ge", None) is not None), None)
        return described(arguments[0]) + ("" if least is None else f" of at least {least}")
    return _EXPECTED.get(expected, "a table")


def _plain_type(expected: Any) -> Any:
    return get_args(expected)[0] if get_origin(expected) is Annotated else expected


def _kind(value: object) -> str:
    match value:
        case bool():
            return "true or false"
        case str():
            return "a text"
        case int() | float():
            return "a number"
        case Mapping():
            return "a table"
        case Sequence():
            return "a list"
        case _:
            return f"a value of type {type(value).__name__}"


def _digits(value: float) -> str:
    if isinstance(value, int) and value.bit_length() > 64:
        return "beyond 64 bits"
    return repr(value)


def _shortened(text: str) -> str:
    return text if len(text) <= _LONGEST_SHOWN else f"{text[:_LONGEST_SHOWN]}..."
