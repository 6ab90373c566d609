"""The columns on the tables' pages."""

from __future__ import annotations

import dagster as dg

from darkroom.assets.pages import declared_metadata
from darkroom.pipelines import records
from darkroom.pipelines.records.schemas import schema_of
from tests.assets.conftest import graph

TABLES = {"samples", "expert_reviews", "annotation_pool", "pre_annotations", "annotations", "cross_checks"}
TABLES |= {"accepted_annotations", "refused_submissions"}


def schemas() -> dict[str, dg.TableSchema]:
    specs = graph().resolve_all_asset_specs()
    entries = {spec.key.to_user_string(): spec.metadata.get("dagster/column_schema") for spec in specs}
    return {key: entry for key, entry in entries.items() if isinstance(entry, dg.TableSchema)}


def test_every_table_has_its_columns_and_every_column_a_description() -> None:
    specs = graph().resolve_all_asset_specs()
    stages = {spec.key.to_user_string() for spec in specs if "darkroom/stage" in spec.tags}
    assert schemas().keys() == TABLES | stages
    assert all(column.description for schema in schemas().values() for column in schema.columns)


def test_the_columns_are_those_of_the_file() -> None:
    columns = schemas()["crop/drafts"].columns
    assert [column.name for column in columns] == schema_of(records.Draft).names
    types = {column.name: column.type for column in columns}
    assert (types["text"], types["images"], types["usage"]) == ("string", "list<struct>", "struct")


def test_no_description_is_left_over() -> None:
    kinds = [kind for kind in vars(records).values() if isinstance(kind, type)]
    used = {f"{kind.__name__}.{name}" for kind in kinds for name in getattr(kind, "__dataclass_fields__", ())}
    used |= {column.name for schema in schemas().values() for column in schema.columns}
    assert declared_metadata.DESCRIPTIONS.keys() <= used


def test_a_dataset_names_the_tables_that_its_columns_come_from() -> None:
    crop, rotation, samples = (
        dg.AssetKey(name.split("/")) for name in ("crop/trajectories", "rotation/trajectories", "samples")
    )
    tables = {crop: records.Trajectory, rotation: records.Trajectory, samples: records.Sample}
    metadata = declared_metadata.dataset_columns("trajectories", tables)
    lineage = metadata["dagster/column_lineage"].deps_by_column
    assert [dep.asset_key for dep in lineage["answer"]] == [crop, rotation]
    assert [dep.asset_key for dep in lineage["question"]] == [samples]
    assert "n_question_images" not in lineage, "it is counted"
    assert lineage.keys() < {column.name for column in metadata["dagster/column_schema"].columns}
