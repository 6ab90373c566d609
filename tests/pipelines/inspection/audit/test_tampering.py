"""Every kind of tampering is found: by the manifest where it is the shipped one, by the published digest in any case,
and without either where the contents themselves contradict each other."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from darkroom.pipelines.inspection.audit import AuditReport, audit, find_conversations
from darkroom.pipelines.publishing.dataset_reader import KEYS, MARKER, dataset_files, kind_of, read_files, split_of
from darkroom.pipelines.publishing.layouts.record_writer import exported_rows
from darkroom.pipelines.publishing.manifest import MANIFEST, row_digest, write_manifest
from darkroom.pipelines.publishing.replay import NotComparable
from darkroom.pipelines.records.digest import digest_bytes
from darkroom.sandbox.errors import UserError
from tests.pipelines.inspection.audit import tamperings
from tests.pipelines.inspection.audit.shipped_homes import PROMPT_LAYOUTS, TRAJECTORY_LAYOUTS, Shipped, shipped_home
from tests.pipelines.inspection.plain_rows import PlainPython


class Tampering(NamedTuple):
    """A change of one of the shipped folders, by its name in ``shipped_homes``."""

    group: str
    name: str
    folder: str
    change: Callable[[Path], Any]


def on_rows(change: tamperings.OnRows) -> tamperings.OnFolder:
    def edit(folder: Path) -> None:
        path = tamperings.train(folder)
        table = pq.read_table(path)
        rows = table.to_pylist()
        change(rows)
        pq.write_table(pa.Table.from_pylist(rows, schema=table.schema), path)

    return edit


def on_card(change: Callable[[str], str]) -> tamperings.OnFolder:
    def edit(folder: Path) -> None:
        card = folder / "README.md"
        card.write_bytes(change(card.read_text(encoding="utf-8")).encode())

    return edit


def on_lines(change: tamperings.OnRows) -> tamperings.OnFolder:
    return lambda folder: tamperings.lines_of(folder / "train.jsonl", change)


def as_it_is(change: tamperings.OnFolder) -> tamperings.OnFolder:
    return change


GROUPS: dict[str, tuple[str, Callable[[Any], tamperings.OnFolder], dict[str, Any]]] = {
    "SFT rows": ("sft", on_rows, tamperings.SFT_ROWS),
    "RL rows": ("rl", on_rows, tamperings.RL_ROWS),
    "SFT card": ("sft", on_card, tamperings.SFT_CARD),
    "RL card": ("rl", on_card, tamperings.RL_CARD),
    "rows of an export": ("ms_swift", on_lines, tamperings.LINES),
    "rows of an export of prompts": ("rl/trl_grpo", on_rows, tamperings.PROMPT_TABLE),
    "files of an export": ("ms_swift", as_it_is, tamperings.EXPORT_FILES),
    "further rows": ("sft", on_rows, tamperings.OWN_ROWS | tamperings.OWN_SFT_ROWS),
    "further cards": ("sft", on_card, tamperings.OWN_CARD),
    "files": ("sft", as_it_is, tamperings.FILES),
}
FOUND_BY_A_DIGEST_ONLY = {
    "manifest": ("sft", as_it_is, tamperings.MANIFESTS),
    "manifest of an export": ("ms_swift", as_it_is, tamperings.EXPORT_MANIFESTS),
}


def kinds_of(groups: dict[str, tuple[str, Callable[[Any], tamperings.OnFolder], dict[str, Any]]]) -> list[Tampering]:
    return [
        Tampering(group, name, folder, on(change))
        for group, (folder, on, changes) in groups.items()
        for name, change in changes.items()
    ]


CHANGES, OF_MANIFESTS = kinds_of(GROUPS), kinds_of(FOUND_BY_A_DIGEST_ONLY)
each_change = pytest.mark.parametrize("kind", CHANGES, ids=lambda kind: f"{kind.group}: {kind.name}")


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Shipped:
    return shipped_home(tmp_path_factory.mktemp("shipped") / "home")


@pytest.fixture(scope="module")
def python() -> Iterator[PlainPython]:
    with PlainPython() as started:
        yield started


def copied(home: Shipped, kind: Tampering, place: Path) -> Path:
    source = home.folder(kind.folder)
    return Path(shutil.copytree(source, place / source.name))


def found(folder: Path, execute: Any, **options: Any) -> AuditReport | None:
    """The report; None where the audit refuses the folder, as its command does with status 2."""
    try:
        conversations = find_conversations(folder, None)
        return audit(conversations or [folder], execute=execute, **options)
    except (UserError, OSError):
        return None


def not_executed(*_: Any, **__: Any) -> Any:
    raise NotComparable("it is not executed here")


def since_shipped(report: AuditReport | None) -> set[str]:
    return {"refused"} if report is None else {each.kind for each in report.findings if each.since == "shipped"}


def test_there_are_as_many_kinds_as_were_promised() -> None:
    asked = {"SFT rows": 43, "RL rows": 20, "SFT card": 14, "RL card": 5, "rows of an export": 11}
    for group, n in asked.items():
        assert sum(kind.group == group for kind in CHANGES) >= n, group
    assert len(CHANGES) + len(OF_MANIFESTS) >= 82 + 40


EXPORTS = (*TRAJECTORY_LAYOUTS, *(f"rl/{name}" for name in PROMPT_LAYOUTS))


@pytest.mark.parametrize("name", ["sft", "rl", *EXPORTS])
def test_what_nobody_changed_has_no_finding(home: Shipped, python: PlainPython, name: str) -> None:
    report = found(home.folder(name), python.execute)
    assert report is not None
    assert (report.findings, report.checked["manifest"]) == ([], 9 if name.startswith("rl") else 5)


@pytest.mark.parametrize("name", EXPORTS)
def test_a_row_more_in_an_export_of_any_layout_is_named(home: Shipped, name: str, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(home.folder(name), tmp_path / "export"))
    path = sorted(folder.glob("train*"))[0]
    if path.suffix == ".parquet":
        table = pq.read_table(path)
        pq.write_table(pa.concat_tables([table, table.slice(0, 1)]), path)
    else:
        tamperings.lines_of(path, lambda rows: rows.append(rows[0]))
    report = found(folder, not_executed, parts={"checks"})
    assert since_shipped(report) == {"added row", "changed file"}


@each_change
def test_a_change_since_shipping_is_found_and_said_to_be_one(home: Shipped, kind: Tampering, tmp_path: Path) -> None:
    folder = copied(home, kind, tmp_path)
    kind.change(folder)
    report = found(folder, not_executed, parts={"checks", "counts"})
    assert since_shipped(report), f"{kind.group}: {kind.name}"
    if "rows" in kind.group and report is not None:
        of_rows = {"changed row", "added row", "missing row"}
        assert since_shipped(report) & of_rows or "order" in kind.name, f"{kind.group}: {kind.name} names no row"


@pytest.mark.parametrize("kind", OF_MANIFESTS, ids=lambda kind: f"{kind.group}: {kind.name}")
def test_a_manifest_that_is_not_the_shipped_one_is_found(home: Shipped, kind: Tampering, tmp_path: Path) -> None:
    folder = copied(home, kind, tmp_path)
    published = digest_bytes((folder / MANIFEST).read_bytes())
    kind.change(folder)
    without = found(folder, not_executed, parts={"checks", "counts"})
    assert without is None or without.n_findings
    if "marker" not in kind.name:
        assert "manifest" in since_shipped(found(folder, not_executed, parts={"checks"}, digest=published))


def rewrite(folder: Path) -> None:
    """Writes manifest and marker anew, as somebody does who wants to hide a change."""
    marker, card = json.loads((folder / MARKER).read_text()), json.loads((folder / MANIFEST).read_text()).get("card")
    rows: dict[str, list[tuple[str, str]]] = {}
    if "layout" in marker:
        for file, _, row_id, row in exported_rows(folder):
            rows.setdefault(file, []).append((row_id, row_digest(row)))
    else:
        for file in dataset_files(folder):
            pairs = ((row[KEYS[kind_of(file)]], row_digest(row)) for row in read_files([file]))
            rows.setdefault(split_of(file), []).extend(pairs)
    (folder / MANIFEST).unlink()
    n_rows = sum(map(len, rows.values()))
    (folder / MARKER).write_text(
        json.dumps(marker | {"manifest": write_manifest(folder, rows, card), "n_rows": n_rows})
    )


@pytest.mark.e2e
@each_change
def test_who_rewrites_the_manifest_is_found_by_the_published_digest_and_often_without(
    home: Shipped, kind: Tampering, tmp_path: Path, python: PlainPython
) -> None:
    folder = copied(home, kind, tmp_path)
    published = digest_bytes((folder / MANIFEST).read_bytes())
    kind.change(folder)
    try:
        rewrite(folder)
    except (UserError, OSError, KeyError):
        assert found(folder, python.execute) is None or kind.name == "a column of another type"
        return
    report = found(folder, python.execute)
    assert since_shipped(report) <= {"refused"}, "nothing tells that it was changed"
    assert bool(report is None or report.n_findings) == (kind.name not in tamperings.UNSEEN.get(kind.group, ()))
    assert since_shipped(found(folder, not_executed, parts={"checks"}, digest=published)) & {"manifest", "refused"}
