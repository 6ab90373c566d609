"""Metadata that assets declare: the columns of tables and datasets with descriptions and origins, and their code."""

import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import dagster as dg
import pyarrow as pa
import yaml

from darkroom.pipelines.publishing.dataset_reader import Kind
from darkroom.pipelines.records.schemas import schema_of

_CODE = "dagster/code_references"
DESCRIPTIONS: Mapping[str, str] = yaml.safe_load(Path(__file__).with_name("columns.yaml").read_text(encoding="utf-8"))


def table_columns(record: type[Any]) -> dict[str, dg.TableSchema]:
    """An asset's metadata: the columns of its table, whose rows are ``record``."""
    columns = []
    for column in schema_of(record):
        description = DESCRIPTIONS.get(f"{record.__name__}.{column.name}") or DESCRIPTIONS[column.name]
        columns.append(dg.TableColumn(column.name, type_name(column.type), description=description))
    return {"dagster/column_schema": dg.TableSchema(columns)}


def dataset_columns(kind: Kind, tables: Mapping[dg.AssetKey, type[Any]]) -> dict[str, Any]:
    """A materialisation's metadata: the columns of a dataset, and the columns of the same name that they come from.
    ``tables``: by asset, what its rows are; of records with the same column the first one's tables have it."""
    from darkroom.pipelines.publishing.features import arrow_schema, features_of  # `datasets` takes a second

    schema = arrow_schema(features_of(kind))
    columns = [dg.TableColumn(column.name, type_name(column.type)) for column in schema]
    lineage: dict[str, list[dg.TableColumnDep]] = {}
    for name in schema.names:
        records = [record for record in tables.values() if name in schema_of(record).names][:1]
        if origins := [key for key, record in tables.items() if record in records]:
            lineage[name] = [dg.TableColumnDep(asset_key=key, column_name=name) for key in origins]
    return {"dagster/column_schema": dg.TableSchema(columns), "dagster/column_lineage": dg.TableColumnLineage(lineage)}


def type_name(kind: pa.DataType) -> str:
    """Short, so that the descriptions have the room: a struct without its fields."""
    if pa.types.is_list(kind):
        return f"list<{type_name(kind.value_type)}>"
    return "struct" if pa.types.is_struct(kind) else str(kind)


def code_references(work: Callable[..., Any], *files: Path) -> dict[str, dg.CodeReferencesMetadataValue]:
    """An asset's metadata: the function that does its work, and files that define it, which the page opens."""
    code = work.__code__
    with _beta():
        references: list[Any] = [dg.LocalFileCodeReference(file_path=code.co_filename, line_number=code.co_firstlineno)]
        references += [dg.LocalFileCodeReference(file_path=str(file)) for file in files]
        return {_CODE: dg.CodeReferencesMetadataValue(code_references=references)}


def with_code_references(assets: Iterable[dg.AssetsDefinition]) -> Iterator[dg.AssetsDefinition]:
    """The assets; those that name no code refer to their own function."""
    for asset in assets:
        if all(_CODE in metadata for metadata in asset.metadata_by_key.values()):
            yield asset
        else:
            with _beta():
                referring: Any = dg.with_source_code_references([asset])
            yield from referring


@contextmanager
def _beta() -> Iterator[None]:
    """Without Dagster's warning, which is for its developers."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", dg.BetaWarning)
        yield
