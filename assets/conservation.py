"""The blocking check between stages: rows in = rows out + rejected + quarantined, counted anew from the files."""

import dagster as dg

from pipelines.tables import TableKey, Tables

NAME = "rows_conserved"


def conservation_spec(asset: dg.AssetKey) -> dg.AssetCheckSpec:
    """The check's spec: nothing downstream runs when rows were lost."""
    return dg.AssetCheckSpec(
        name=NAME,
        asset=asset,
        blocking=True,
        description="Rows in = rows out + rejected + quarantined, counted from the tables' footers.",
    )


def check_conservation(tables: Tables, key: TableKey, *, n_in: int) -> dg.AssetCheckResult:
    """Compares ``n_in`` (from the stage before, or from the source) with what lies in the stage's files."""
    n_out, n_rejects = tables.n_rows(key), tables.n_rejects(key)
    return dg.AssetCheckResult(
        asset_key=dg.AssetKey(list(key.asset)),
        check_name=NAME,
        passed=n_in == n_out + n_rejects,
        metadata={"rows_in": n_in, "rows_out": n_out, "rejected_or_quarantined": n_rejects},
    )
