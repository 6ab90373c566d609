"""The audit of a dataset: its code executed again, its measurements repeated, its votes and its card counted again.

Everything is compared with what the files say. Nothing is written; rows are read a few at a time.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from functools import partial
from itertools import groupby, islice
from typing import NamedTuple

from cattrs import BaseValidationError

from darkroom import sandbox
from darkroom.pipelines.inspection.audit.findings import AuditFinding, AuditReport, shortened
from darkroom.pipelines.inspection.audit.known_truth import KnownTruth
from darkroom.pipelines.inspection.audit.prompt_checks import recount, regrade
from darkroom.pipelines.inspection.audit.row_case import case_of, changed_images
from darkroom.pipelines.inspection.audit.row_checks import remeasure, stated_counts
from darkroom.pipelines.inspection.audit.row_images import NotKnown, Row
from darkroom.pipelines.inspection.audit.totals import DatasetTotals
from darkroom.pipelines.inspection.audit.transcript_rows import (
    Conversations,
    execute_rounds,
    find_conversations,
    row_of,
)
from darkroom.pipelines.publishing.dataset_reader import (
    KEYS,
    Kind,
    check_columns,
    dataset_files,
    kind_of,
    map_in_threads,
    n_rows_of,
    read_files,
    split_of,
)
from darkroom.pipelines.publishing.replay import Execute, NotComparable, SetupFailed, in_sandbox, replay_row
from darkroom.pipelines.sources import BadRow, SourceRow
from darkroom.pipelines.storage.stage import Progress
from darkroom.pipelines.storage.store_paths import StorePath
from darkroom.pipelines.storage.workspace import Workspace


class _Split(NamedTuple):
    """The shards of one split, checked."""

    folder: StorePath
    name: str
    kind: Kind
    files: Sequence[StorePath]


def _splits_of(folder: StorePath) -> Iterator[_Split]:
    """Raises ``DatasetError`` for a file with other columns."""
    for name, shards in groupby(dataset_files(folder), key=split_of):
        files = list(shards)
        kind = kind_of(files[0])
        for file in files:
            check_columns(file, kind)
        yield _Split(folder, name, kind, files)


def audit(
    folders: Sequence[StorePath],
    *,
    execute: Execute | None = None,
    workspace: Workspace | None = None,
    limit: int | None = None,
    progress: Progress | None = None,
) -> AuditReport:
    """Audits shipped datasets (at most ``limit`` rows of each split).

    ``execute`` runs their code; None: the sandbox. ``workspace``: where they were made; without it,
    what needs the truth about a sample is counted as not measured. Raises ``DatasetError`` for files that are no
    shipped dataset, ``sandbox.SandboxUnavailable``.
    """
    splits = [split for folder in folders for split in _splits_of(folder)]
    n_all = sum(n if limit is None else min(n, limit) for n in (n_rows_of(split.files) for split in splits))
    report, run = AuditReport(), execute or in_sandbox
    with KnownTruth(workspace) if workspace else nullcontext() as truth:
        for folder in folders:
            mine = [split for split in splits if split.folder == folder]
            totals = DatasetTotals(folder, mine[0].kind)
            for split in mine:
                rows = islice(read_files(split.files), limit)
                perform = partial(_audited, kind=split.kind, dataset=folder.name, execute=run, truth=truth)
                for row, result in map_in_threads(rows, perform):
                    report.take(result)
                    if row is not None:
                        report.add(totals.row(row, split.name))
                    if progress is not None:
                        progress(report.n_rows, n_all)
            if limit is None:
                report.checked["card and counts"] += 1
                report.add(totals.findings())
    return report


def audit_conversations(
    conversations: Conversations,
    *,
    execute: Execute | None = None,
    limit: int | None = None,
    progress: Progress | None = None,
) -> AuditReport:
    """Audits another trainer's export, or a released trajectory file (``find_conversations``)."""
    report, run = AuditReport(), execute or in_sandbox
    rows = islice(conversations.rows, limit)
    perform = partial(_audited_conversation, conversations=conversations, execute=run)
    for result in map_in_threads(rows, perform):
        report.take(result)
        if progress is not None:
            progress(report.n_rows, max(report.n_rows, conversations.n_rows if limit is None else limit))
    return report


def _audited_conversation(source: SourceRow | BadRow, *, conversations: Conversations, execute: Execute) -> AuditReport:
    result, dataset = AuditReport(n_rows=1), conversations.name
    if isinstance(source, BadRow):
        reason = shortened(source.evidence)
        result.add([AuditFinding(f"unreadable: {source.reason}", dataset, source.row, reason)])
        return result
    row = row_of(source, is_escaped=conversations.is_escaped)
    result.n_rounds = len(row["rounds"])
    try:
        differences = execute_rounds(row, execute, conversations.max_difference)
    except (NotComparable, SetupFailed) as error:
        result.not_measured[f"execution: {error}"] += 1
        return result
    except sandbox.SandboxUnavailable:
        raise
    except sandbox.SandboxError as error:
        reason = shortened(f"{type(error).__name__}: {error}")
        result.add([AuditFinding("replay: session", dataset, source.row, reason)])
        return result
    result.n_executed, result.n_images = result.n_rounds, len(row["images"]) - row["n_question_images"]
    for number, difference in differences:
        result.add([AuditFinding("replay", dataset, source.row, shortened(difference), number)])
    _remeasure(row, dataset, None, result)
    return result


def _audited(
    row: Row, *, kind: Kind, dataset: str, execute: Execute, truth: KnownTruth | None
) -> tuple[Row | None, AuditReport]:
    """One row's audit, with the row unless it is malformed."""
    result = AuditReport(n_rows=1)
    row_id = str(row.get(KEYS[kind]))
    steps: Mapping[Kind, Sequence[Callable[[], None]]] = {
        "trajectories": [
            partial(_replay, row, dataset, execute, result),
            partial(_remeasure, row, dataset, truth, result),
        ],
        "prompts": [partial(_prompt, row, dataset, truth, result)],
    }
    try:
        _compare_images(row, row_id, dataset, result)
        for step in steps[kind]:
            step()
    except (BaseValidationError, KeyError, TypeError, ValueError) as error:
        reason = shortened(f"{type(error).__name__}: {error}")
        result.add([AuditFinding("malformed row", dataset, row_id, reason)])
        return None, result
    return row, result


def _compare_images(row: Row, row_id: str, dataset: str, result: AuditReport) -> None:
    result.checked["bytes of images"] += 1
    for place in changed_images(row):
        result.add([AuditFinding("changed image", dataset, row_id, f"image {place} is not the one of its digest")])


def _replay(row: Row, dataset: str, execute: Execute, result: AuditReport) -> None:
    result.n_rounds = len(row["rounds"])
    try:
        replayed = replay_row(row, execute=execute)
    except NotComparable as error:
        result.not_measured[f"execution: {error}"] += 1
        return
    result.n_executed = result.n_rounds
    result.n_images = sum(len(turn["observation"]["images"]) for turn in row["rounds"])
    for found in replayed.differences:
        reason = f"stored {found.recorded!r}, now {found.replayed!r}"
        row_id = row["trajectory_id"]
        result.add([AuditFinding(f"replay: {found.what}", dataset, row_id, shortened(reason), found.round)])


def _remeasure(row: Row, dataset: str, truth: KnownTruth | None, result: AuditReport) -> None:
    case = case_of(row, truth)
    for name, finding, missing in remeasure(case, row, dataset):
        if missing:
            result.not_measured[f"{name}: needs {missing}"] += 1
            continue
        result.checked[name] += 1
        if finding is not None:
            result.add([finding])
    result.checked["votes"] += 1
    result.add(stated_counts(row, dataset))


def _prompt(row: Row, dataset: str, truth: KnownTruth | None, result: AuditReport) -> None:
    result.checked.update(["votes", "grader"])
    result.add(recount(row, truth, dataset))
    result.add(regrade(row, truth, dataset))


__all__ = [
    "AuditFinding",
    "AuditReport",
    "NotKnown",
    "audit",
    "audit_conversations",
    "find_conversations",
]
