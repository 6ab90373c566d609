"""Tables that are searched for rows: those of earlier versions, too, and no others read whole."""

from __future__ import annotations

import polars as pl

from darkroom.pipelines.inspection.table_search import TableFile, columns_of, files_with

ROUNDS = {"code": "crop()", "thought": "look"}


def table(folder, partition, **columns):
    path = folder / f"{partition}.parquet"
    pl.DataFrame(columns).write_parquet(path)
    return TableFile(path, ("crop", "runs"), partition, False)


def test_the_files_that_hold_a_row_are_found_whatever_else_their_version_wrote(tmp_path):
    files = [
        table(tmp_path, "old", sample_id=["a", "b"], rounds=[{"code": "crop()"}] * 2),
        table(tmp_path, "new", sample_id=["c", "a"], rounds=[ROUNDS] * 2),
        table(tmp_path, "none", sample_id=["c"], rounds=[ROUNDS]),
        table(tmp_path, "wider", sample_id=["a"], rounds=[ROUNDS], family=["crop"]),
        table(tmp_path, "images", image=["a"]),
    ]
    is_meant = pl.col("sample_id") == "a"
    found = files_with(files, {"sample_id"}, is_meant)
    assert [file.partition for file in found] == ["old", "new", "wider"]
    assert [row["rounds"] for file in found for row in file.rows(is_meant)] == [{"code": "crop()"}, ROUNDS, ROUNDS]
    assert files_with(files, {"sample_id", "family"}, is_meant) == [files[3]]
    assert files_with([], {"sample_id"}, is_meant) == []


def test_columns_of_many_files_follow_one_another_whatever_else_these_have(tmp_path):
    files = [
        table(tmp_path, "second", check=["x"], stage=["runs"], rounds=[ROUNDS]),
        table(tmp_path, "first", stage=["drafts", "intake"], n=[1, 2]),
    ]
    rows = columns_of([file.path for file in files], "stage", "check").collect().rows()
    assert rows == [("runs", "x"), ("drafts", None), ("intake", None)]
    assert columns_of([], "stage").collect().rows() == []
