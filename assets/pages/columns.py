"""The columns of a table on its asset's page: types from the record's Arrow schema, descriptions from a file."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import dagster as dg
import pyarrow as pa
import yaml

from pipelines.records.schemas import schema_of

DESCRIPTIONS: Mapping[str, str] = yaml.safe_load(Path(__file__).with_suffix(".yaml").read_text(encoding="utf-8"))


def table_columns(record: type[Any]) -> dict[str, dg.TableSchema]:
    """An asset's metadata: the columns of its table, whose rows are ``record``."""
    columns = [
        dg.TableColumn(column.name, type_name(column.type), description=_description(record, column.name))
        for column in schema_of(record)
    ]
    return {"dagster/column_schema": dg.TableSchema(columns)}


def type_name(kind: pa.DataType) -> str:
    """Short, so that the descriptions have the room: a struct without its fields."""
    if pa.types.is_list(kind):
        return f"list<{type_name(kind.value_type)}>"
    return "struct" if pa.types.is_struct(kind) else str(kind)


def _description(record: type[Any], column: str) -> str:
    return DESCRIPTIONS.get(f"{record.__name__}.{column}") or DESCRIPTIONS[column]
