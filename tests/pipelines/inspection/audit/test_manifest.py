"""Whatever is changed after a dataset was shipped is found by its manifest, and told apart from what it shipped."""

from __future__ import annotations

import copy
import json
import shutil
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from darkroom.assets.cli import app
from darkroom.pipelines.inspection.audit import AuditReport, audit, find_conversations
from darkroom.pipelines.publishing import manifest
from darkroom.pipelines.publishing.dataset_reader import MARKER, Kind, read_rows
from darkroom.pipelines.publishing.layouts import LAYOUTS
from darkroom.pipelines.publishing.layouts.export_source import find_source
from darkroom.pipelines.publishing.layouts.exporter import export
from darkroom.pipelines.publishing.manifest import MANIFEST, row_digest, write_manifest
from darkroom.pipelines.publishing.parquet_shards import ShardWriter, prompt_row, trajectory_row
from darkroom.pipelines.publishing.replay import NotComparable
from darkroom.pipelines.records.digest import digest_bytes
from darkroom.pipelines.storage.images import ImageStore
from tests.pipelines.publishing.layouts.rl_rows import rows as rl_rows
from tests.train.conftest import mixed_pairs, picture

KINDS: tuple[Kind, ...] = ("trajectories", "prompts")
ROW = 1
"""The row that is changed."""


def ship(folder: Path, kind: Kind, rows: dict[str, list[dict[str, Any]]]) -> Path:
    """Rows by split with a card, a manifest and a marker, as a publication writes them."""
    digests = {}
    for split, of_split in rows.items():
        with ShardWriter(folder, kind, split) as writer:
            for row in of_split:
                writer.write(row)
        digests[split] = writer.digests
    (folder / "README.md").write_text("# Signs\n\nYield: 0.93.\n")
    digest = write_manifest(folder, digests)
    (folder / MARKER).write_text(json.dumps({"n_rows": sum(map(len, rows.values())), "manifest": digest}))
    return folder


def rows_of(kind: Kind, store: ImageStore) -> dict[str, list[dict[str, Any]]]:
    if kind == "trajectories":
        rows = [trajectory_row(sample, trajectory, store) for sample, trajectory in mixed_pairs(store)[:4]]
    else:
        pair = (store.add_pixels(picture(0)[0]), store.add_pixels(picture(1)[0]))
        rows = [prompt_row(row, store) for row in rl_rows(pair)[:4]]
    return {"train": rows[:3], "validation": rows[3:]}


@pytest.fixture(scope="module")
def originals(tmp_path_factory: pytest.TempPathFactory) -> dict[Kind, Path]:
    folder = tmp_path_factory.mktemp("shipped")
    store = ImageStore(str(folder / "images"))
    return {kind: ship(folder / kind, kind, rows_of(kind, store)) for kind in KINDS}


@pytest.fixture(params=KINDS)
def shipped(request: pytest.FixtureRequest, originals: dict[Kind, Path], tmp_path: Path) -> Path:
    return Path(shutil.copytree(originals[request.param], tmp_path / request.param))


def found(folder: Path, **options: Any) -> AuditReport:
    return audit([folder], parts={"checks"}, **options)


def shipped_since(report: AuditReport) -> set[str]:
    return {finding.kind for finding in report.findings if finding.since == "shipped"}


def train(folder: Path) -> Path:
    return folder / "train-00000-of-00001.parquet"


def edit(folder: Path, change: Callable[[list[dict[str, Any]]], Any]) -> None:
    """Changes the list of the training split's rows in place."""
    table = pq.read_table(train(folder))
    rows = table.to_pylist()
    change(rows)
    pq.write_table(pa.Table.from_pylist(rows, schema=table.schema), train(folder))


def leaves(value: Any, *path: Any) -> Iterator[tuple[Any, ...]]:
    """Places of everything in a row that is neither a list nor an object, the first of each list."""
    match value:
        case dict():
            for name, part in value.items():
                yield from leaves(part, *path, name)
        case list() if value:
            yield from leaves(value[0], *path, 0)
        case _:
            yield path


def changed(value: Any) -> Any:
    match value:
        case bool():
            return not value
        case int() | float():
            return value + 1
        case str():
            return value + "x"
        case bytes():
            return value + b"x"
        case []:
            return [None]
    return None


def test_what_was_not_changed_is_as_it_was_shipped(shipped: Path) -> None:
    report = found(shipped)
    assert shipped_since(report) == set()
    assert report.checked["manifest"] == 4
    assert any(note.endswith(json.loads((shipped / MARKER).read_text())["manifest"]) for note in report.notes)


@pytest.mark.parametrize("kind", KINDS)
def test_every_value_of_a_row_counts(kind: Kind, originals: dict[Kind, Path]) -> None:
    (row, *_) = read_rows([originals[kind]])
    places = [place for place in leaves(row) if row_digest(row) and changed_at(row, place) != row]
    assert len(places) > 30, places
    for place in places:
        assert row_digest(changed_at(row, place)) != row_digest(row), place


def changed_at(row: dict[str, Any], place: tuple[Any, ...]) -> dict[str, Any]:
    other = copy.deepcopy(row)
    part: Any = other
    for name in place[:-1]:
        part = part[name]
    part[place[-1]] = changed(part[place[-1]])
    return other


@pytest.mark.parametrize("kind", KINDS)
def test_a_row_that_was_changed_in_any_column_is_found(kind: Kind, originals: dict[Kind, Path], tmp_path: Path) -> None:
    names = pq.read_schema(train(originals[kind])).names
    for name in names:
        folder = Path(shutil.copytree(originals[kind], tmp_path / name))

        def change(rows: list[dict[str, Any]], name: str = name) -> None:
            place = next(leaves(rows[ROW][name], name))
            rows[ROW] = changed_at(rows[ROW], place)

        if next(leaves(list(read_rows([folder]))[ROW][name], name)) and is_changeable(folder, name):
            edit(folder, change)
            assert shipped_since(found(folder)) & {"changed row", "added row"}, name


def is_changeable(folder: Path, name: str) -> bool:
    """An empty list of objects, or a null, has nothing that could be changed and still be of its type."""
    row = list(read_rows([folder]))[ROW]
    *_, last = next(leaves(row[name], name))
    value = row
    for part in next(leaves(row[name], name)):
        value = value[part]
    return value not in (None, []) or last == "choices"


def drop(rows: list[Any]) -> None:
    del rows[ROW]


def repeat(rows: list[Any]) -> None:
    rows.append(rows[ROW])


def swap(rows: list[Any]) -> None:
    rows[0], rows[1] = rows[1], rows[0]


def replace_answer(rows: list[Any]) -> None:
    rows[ROW]["answer"] = "987654"


def reverse_choices(rows: list[Any]) -> None:
    rows[ROW]["choices"] = ["B", "A"]


def swap_answers(rows: list[Any]) -> None:
    rows[0]["answer"], rows[1]["answer"] = rows[1]["answer"], rows[0]["answer"] + " "


@pytest.mark.parametrize(
    ("change", "kinds"),
    [
        (drop, {"missing row", "changed file"}),
        (repeat, {"added row", "changed file"}),
        (swap, {"changed file"}),
        (replace_answer, {"changed row", "changed file"}),
        (reverse_choices, {"changed row", "changed file"}),
        (swap_answers, {"changed row", "changed file"}),
    ],
)
def test_rows_that_went_came_or_changed_are_named(shipped: Path, change: Any, kinds: set[str]) -> None:
    edit(shipped, change)
    assert kinds <= shipped_since(found(shipped))


def move_to_validation(folder: Path) -> None:
    validation = folder / "validation-00000-of-00001.parquet"
    first, second = pq.read_table(train(folder)), pq.read_table(validation)
    pq.write_table(pa.concat_tables([second, first.slice(0, 1)]), validation)
    pq.write_table(first.slice(1), train(folder))


@pytest.mark.parametrize(
    ("change", "kinds"),
    [
        (lambda folder: (folder / "README.md").write_text("# Signs\n\nYield: 0.99.\n"), {"changed file"}),
        (lambda folder: (folder / "README.md").unlink(), {"missing file"}),
        (lambda folder: (folder / "LICENSE").write_text("MIT"), {"added file"}),
        (lambda folder: (folder / "validation-00000-of-00001.parquet").unlink(), {"missing file", "missing row"}),
        (
            lambda folder: shutil.copy(train(folder), folder / "test-00000-of-00001.parquet"),
            {"added file", "added row"},
        ),
        (move_to_validation, {"changed file", "missing row", "added row"}),
        (lambda folder: (folder / MANIFEST).unlink(), {"manifest"}),
        (lambda folder: (folder / MANIFEST).write_text("{"), {"manifest"}),
        (lambda folder: (folder / MANIFEST).write_text('{"files": [], "rows": {}}'), {"manifest"}),
        (lambda folder: (folder / MANIFEST).write_text("[" * 100_000), {"manifest"}),
        (lambda folder: write_manifest(folder, {}), {"manifest"}),
    ],
)
def test_files_that_went_came_or_changed_are_named(shipped: Path, change: Any, kinds: set[str]) -> None:
    change(shipped)
    assert kinds <= shipped_since(found(shipped))


def test_a_manifest_that_was_written_anew_is_found_by_the_digest_that_was_published(shipped: Path) -> None:
    published = json.loads((shipped / MARKER).read_text())["manifest"]
    (shipped / MARKER).unlink()
    assert shipped_since(found(shipped, digest=published)) == set()
    edit(shipped, replace_answer)
    rows = list(read_rows([shipped]))
    key = "trajectory_id" if "rounds" in rows[0] else "sample_id"
    pairs = [(row[key], row_digest(row)) for row in rows]
    write_manifest(shipped, {"train": pairs[:3], "validation": pairs[3:]})
    assert shipped_since(found(shipped)) == set(), "nothing else says that it is another dataset"
    assert shipped_since(found(shipped, digest=published)) == {"manifest"}


def test_a_digest_counts_where_only_the_first_rows_are_read(shipped: Path) -> None:
    assert shipped_since(found(shipped, limit=1)) == set()
    assert shipped_since(found(shipped, limit=1, digest="0" * 64)) == {"manifest"}


def test_a_manifest_larger_than_any_of_ours_is_not_read(shipped: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(manifest, "MAX_BYTES", 10)
    assert "manifest" in shipped_since(found(shipped))


def test_a_column_of_another_type_is_a_changed_row(shipped: Path) -> None:
    table = pq.read_table(train(shipped))
    at = pa.array([datetime(2026, 11, 29)] * len(table))
    pq.write_table(table.set_column(table.schema.get_field_index("license"), "license", at), train(shipped))
    assert "changed row" in shipped_since(found(shipped))


@pytest.mark.parametrize("words", [("--only", "counts"), ("--mapping", "thyme_sft")])
def test_a_digest_that_nothing_would_be_compared_with_is_refused(shipped: Path, words: tuple[str, ...]) -> None:
    done = CliRunner().invoke(app, ["audit", str(shipped), "--digest", "0" * 64, *words])
    assert done.exit_code == 2
    assert "--digest is of a dataset or an export" in " ".join(done.output.replace("│", "").split())


def test_a_folder_of_an_earlier_version_has_no_manifest_and_no_finding_for_that(shipped: Path) -> None:
    (shipped / MANIFEST).unlink()
    (shipped / MARKER).write_text('{"n_rows": 4}')
    report = found(shipped)
    assert shipped_since(report) == set()
    assert any("no MANIFEST" in note for note in report.notes)


def as_before(folder: Path) -> None:
    """The manifest as the version before wrote it: without facts of the card, and of an export without rows."""
    facts, marker = json.loads((folder / MANIFEST).read_text()), json.loads((folder / MARKER).read_text())
    rows = {} if "layout" in marker else facts["rows"]
    data = json.dumps({"files": facts["files"], "rows": rows}, sort_keys=True, separators=(",", ":")).encode()
    (folder / MANIFEST).write_bytes(data)
    (folder / MARKER).write_text(json.dumps(marker | {"manifest": digest_bytes(data)}))


def test_a_dataset_of_the_version_before_says_that_its_card_is_not_compared(shipped: Path) -> None:
    as_before(shipped)
    report = found(shipped)
    assert (shipped_since(report), report.checked["manifest"]) == (set(), 4)
    assert [note for note in report.notes if "its text is not compared" in note]
    edit(shipped, replace_answer)
    assert "changed row" in shipped_since(found(shipped))


def test_an_export_of_the_version_before_says_that_its_rows_are_not_compared(
    originals: dict[Kind, Path], tmp_path: Path
) -> None:
    out = tmp_path / "made"
    export(find_source(str(originals["trajectories"]), tmp_path, split="train"), LAYOUTS["verl_sft"], out)
    as_before(out)
    conversations = find_conversations(out, None)
    assert conversations is not None
    report = audit(conversations, parts={"checks"})
    assert (report.findings, report.checked["manifest"]) == ([], 0)
    assert [note for note in report.notes if "has no rows" in note]


def test_what_was_wrong_when_it_was_shipped_is_told_apart(originals: dict[Kind, Path], tmp_path: Path) -> None:
    store = ImageStore(str(originals["trajectories"].parent / "images"))
    rows = rows_of("trajectories", store)
    rows["train"][0]["images"][0]["bytes"] += b"x"
    folder = ship(tmp_path / "trajectories", "trajectories", rows)
    dated = {(finding.kind, finding.since) for finding in found(folder).findings}
    assert ("changed image", "made") in dated
    assert not {kind for kind, since in dated if since == "shipped"}


def test_any_file_of_an_export_that_was_changed_is_named(originals: dict[Kind, Path], tmp_path: Path) -> None:
    source = find_source(str(originals["trajectories"]), tmp_path, split="train")
    made = tmp_path / "made"
    export(source, LAYOUTS["ms_swift"], made)
    names = [path.relative_to(made).as_posix() for path in made.rglob("*") if path.is_file()]
    shown = [name for name in names if not name.startswith(".") and name != MANIFEST]
    assert len(shown) > 5
    for name in shown:
        folder = Path(shutil.copytree(made, tmp_path / "changed", dirs_exist_ok=True))
        assert changed_files(folder) == set()
        (folder / name).write_bytes((folder / name).read_bytes() + b" ")
        assert changed_files(folder) == {("changed file", name)}
    (folder / "more.jsonl").write_text("")
    (folder / name).unlink()
    assert changed_files(folder) >= {("added file", "more.jsonl"), ("missing file", name)}


def changed_files(folder: Path) -> set[tuple[str, str]]:
    found_here = find_conversations(folder, None)
    assert found_here is not None
    report = audit(found_here, parts={"checks"}, execute=not_executed)
    return {(finding.kind, finding.row) for finding in report.findings if finding.since == "shipped"}


def not_executed(*_: Any, **__: Any) -> Any:
    raise NotComparable("it is not executed here")
