"""The words of the demo's rows by stage: a version of code (``pipelines/storage/code_versions.json``) stands for rows.

    python -m tests.golden_rows HOME [REASON]

writes ``golden_rows.json`` from a demo's home, after versions were raised for rows that changed. REASON says why one
was raised although no row of the demo changed: what it decides is not in the demo.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow.parquet as pq

from darkroom.pipelines.records.digest import digest
from darkroom.pipelines.storage.stage_runs import VERSIONS

FILE = Path(__file__).with_suffix(".json")
_WORDS = frozenset(
    {
        *(
            "source_row",
            "question",
            "text",
            "thought",
            "code",
            "final_thought",
            "answer",
            "choices",
            "category",
            "hint",
        ),
        *("reason", "check", "disposition", "name", "passed", "verdict", "label", "votes", "helps"),
    }
)
"""Columns and fields with what a model would read; pixels and what is measured on them differ between processors."""
_DERIVED = frozenset({"sft_dataset", "rl_dataset", "street_signs"})
"""Chosen among rows by their ids, which name versions; and training data that no stage makes."""


class Golden(NamedTuple):
    """What was found at some versions, and for which of them a reason was given in place of changed rows."""

    versions: Mapping[str, int]
    rows: Mapping[str, str]
    reasons: Mapping[str, str]


def read_golden() -> Golden:
    return Golden(**json.loads(FILE.read_text(encoding="utf-8")))


def rows_of(home: Path) -> dict[str, str]:
    """A digest of the words of each stage's rows and rejects."""
    words: dict[str, list[Any]] = {}
    for path in sorted((home / "tables").rglob("*.parquet")):
        stage = path.parent.relative_to(home / "tables").as_posix()
        if stage not in _DERIVED:
            words.setdefault(stage, []).append(
                [path.name, [list(_words(row)) for row in pq.read_table(path).to_pylist()]]
            )
    return {stage: digest(found)[:16] for stage, found in words.items()}


def _words(value: Any, name: str = "") -> Iterator[Any]:
    if isinstance(value, dict):
        for key in sorted(set(value) - {"row"}):  # a reject's row, in JSON, with its ids
            yield from _words(value[key], key)
    elif isinstance(value, list):
        for entry in value:
            yield from _words(entry, name)
    elif name in _WORDS and isinstance(value, str | bool):
        yield [name, value]


def complaint(golden: Golden, versions: Mapping[str, int], rows: Mapping[str, str], reason: str = "") -> str:
    """The sentence on rows that changed under the same versions, or the other way round; empty if both go together."""
    changed = sorted(stage for stage in {*rows, *golden.rows} if rows.get(stage) != golden.rows.get(stage))
    raised = sorted(name for name in versions if versions[name] != golden.versions.get(name))
    if changed and not raised:
        return (
            f"the rows of {', '.join(changed)} changed: raise the versions of what decides them (`python -m "
            "scripts.code_versions NAME …`), then write golden_rows.json anew"
        )
    if raised and not changed and not reason:
        return f"versions of {', '.join(raised)} were raised, and no row of the demo changed: give the reason"
    return ""


def main(home: str, reason: str = "") -> None:
    golden, versions = read_golden(), json.loads(VERSIONS.read_text())
    rows = rows_of(Path(home))
    if said := complaint(golden, versions, rows, reason):
        sys.exit(said)
    raised = [f"{name}@{n}" for name, n in versions.items() if n != golden.versions.get(name)]
    reasons = {**golden.reasons, **(dict.fromkeys(raised, reason) if reason else {})}
    content = {"versions": versions, "rows": rows, "reasons": reasons}
    FILE.write_text(json.dumps(content, indent=1, sort_keys=True, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
