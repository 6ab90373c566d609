"""Records as plain rows and as pyarrow tables and back; the schemas are derived from the dataclasses."""

import dataclasses
import types
import typing
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any, TypeVar, cast

import cattrs
import pyarrow as pa
from cattrs.gen import make_dict_unstructure_fn, override

from darkroom.pipelines.records.rl import NOT_STORED, Grader
from darkroom.pipelines.records.samples import VideoRef

R = TypeVar("R")
_SCALARS = {str: pa.string(), int: pa.int64(), float: pa.float64(), bool: pa.bool_()}


@cache
def _converter() -> cattrs.Converter:
    converter = cattrs.Converter(forbid_extra_keys=True)
    # without further answers a grader, and without a film a video, is what it was before it could have any
    grader = make_dict_unstructure_fn(Grader, converter, accepted=override(omit_if_default=True))
    converter.register_unstructure_hook(Grader, grader)
    video = make_dict_unstructure_fn(VideoRef, converter, _cattrs_omit_if_default=True)
    converter.register_unstructure_hook(VideoRef, video)
    return converter


def to_row(record: Any) -> dict[str, Any]:
    """A record (or a part of one) as plain dicts, lists and scalars."""
    return cast(dict[str, Any], _converter().unstructure(record))


def from_row(kind: type[R], row: Mapping[str, Any]) -> R:
    """The record of a row. Raises ``cattrs.BaseValidationError`` when the row does not have its fields."""
    return _converter().structure(row, kind)


def schema_of(kind: type[Any]) -> pa.Schema:
    """The columns of a record: a dataclass of scalars, literals, tuples of one kind, and dataclasses of those. Every
    column may be null. Raises ``TypeError`` for a field that no column can hold."""
    hints = typing.get_type_hints(kind)
    fields = [field for field in dataclasses.fields(kind) if NOT_STORED not in field.metadata]
    return pa.schema([(field.name, arrow_type(hints[field.name])) for field in fields])


def arrow_type(kind: Any) -> pa.DataType:
    """The column of a field's annotation: ``tuple[Check, ...]`` is a list of structs, ``int | None`` an int64."""
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if dataclasses.is_dataclass(kind):
        return pa.struct(list(schema_of(typing.cast(type[Any], kind))))
    if origin is typing.Literal:
        return pa.string()
    if origin is tuple and arguments[1:] == (...,):
        return pa.list_(arrow_type(arguments[0]))
    if origin is types.UnionType and len(arguments) == 2 and type(None) in arguments:
        return arrow_type(next(part for part in arguments if part is not type(None)))
    if kind in _SCALARS:
        return _SCALARS[kind]
    raise TypeError(f"no column holds {kind!r}: expected a scalar, a literal, a tuple of one kind, or a dataclass")


def to_table(kind: type[R], records: Iterable[R]) -> pa.Table:
    return pa.Table.from_pylist([to_row(record) for record in records], schema=schema_of(kind))


def from_table(kind: type[R], table: pa.Table | pa.RecordBatch) -> list[R]:
    return [from_row(kind, row) for row in table.to_pylist()]
