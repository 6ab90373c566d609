"""The audit of datasets: code executed again, measurements repeated, rows encoded, votes and cards counted again, all
compared with what the files say. Nothing is written; rows are read a few at a time."""

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from itertools import groupby, islice
from pathlib import Path
from typing import Literal, NamedTuple, get_args

from cattrs import BaseValidationError

from darkroom import sandbox
from darkroom.pipelines.inspection.audit.conversations import Conversations, execute_rounds, find_conversations, row_of
from darkroom.pipelines.inspection.audit.findings import AuditFinding, AuditReport, DatasetTotals
from darkroom.pipelines.inspection.audit.row_checks import recount, regrade, remeasure, stated_counts, stored_failures
from darkroom.pipelines.inspection.audit.row_records import KnownTruth, NotKnown, Row, case_of, changed_images
from darkroom.pipelines.publishing import dataset_reader as reader
from darkroom.pipelines.publishing.cards import card_code
from darkroom.pipelines.publishing.features import check_columns
from darkroom.pipelines.publishing.layouts.record_writer import exported_rows
from darkroom.pipelines.publishing.manifest import MANIFEST, Manifest
from darkroom.pipelines.publishing.replay import Execute, NotComparable, SetupFailed, in_sandbox, replay_row
from darkroom.pipelines.sources import BadRow, SourceRow
from darkroom.pipelines.storage.stage_runs import Progress
from darkroom.pipelines.storage.store_paths import StorePath
from darkroom.pipelines.storage.workspace import Workspace
from darkroom.sandbox.errors import UserError

Part = Literal["replay", "checks", "counts", "encoding"]
PARTS: tuple[Part, ...] = get_args(Part)
"""``replay``: code executed, observations compared. ``checks``: checks, graders and images' digests. ``counts``: votes,
card, repeated rows and images. ``encoding``: each row as the trainer reads it (see ``Encode``)."""
Encode = Callable[[Sequence[StorePath], Progress | None], AuditReport]
"""Checks how a trainer encodes the rows of datasets (``darkroom.train.examples.conformance.encoding_report``)."""


def audit(
    audited: Sequence[StorePath] | Conversations,
    *,
    parts: Collection[Part] | None = None,
    workspace: Workspace | None = None,
    encode: Encode | None = None,
    execute: Execute = in_sandbox,
    limit: int | None = None,
    progress: Progress | None = None,
    digest: str | None = None,
) -> AuditReport:
    """Audit folders of shipped datasets, or the rows of an export or a release (``find_conversations``). ``parts``
    (None: all, ``encoding`` where ``encode`` is given). ``limit``: rows of each split, without the card's counts; it
    does not apply to ``encoding``. ``digest``: what the one folder's manifest has to have (None: what the folder itself
    says). Without the ``workspace`` that made the datasets, what needs the truth about a sample is counted as not
    measured. Raises ``DatasetError`` for files that are no shipped dataset, ``sandbox.SandboxUnavailable``,
    ``ValueError`` for ``encoding`` without ``encode``."""
    options = _Options(limit, progress, digest)
    chosen = frozenset((PARTS if encode else PARTS[:-1]) if parts is None else parts)
    if isinstance(audited, Conversations):
        return _audit_conversations(audited, chosen, execute, options)
    if "encoding" in chosen and encode is None:
        raise ValueError("the part encoding needs `encode`")
    report = AuditReport()
    of_rows = chosen - {"encoding"}
    if of_rows:
        splits = [split for folder in audited for split in _splits_of(folder)]
        if of_rows == {"replay"} and {split.kind for split in splits} == {"prompts"}:
            names = ", ".join(str(folder) for folder in audited)
            hint = "For these: darkroom audit, darkroom export"
            raise reader.DatasetError(f"{names} holds prompts, no trajectories. {hint}")
        truth = KnownTruth(workspace) if workspace and of_rows != {"replay"} else None
        _audit_splits(splits, _RowAudit(of_rows, execute, truth), report, options)
    if "encoding" in chosen and encode is not None:
        encoded = encode(audited, progress)
        report.take(replace(encoded, n_rows=0) if of_rows else encoded)
    return report


class _Split(NamedTuple):
    """The shards of one split, with checked columns."""

    folder: StorePath
    name: str
    kind: reader.Kind
    files: Sequence[StorePath]


def _splits_of(folder: StorePath) -> Iterator[_Split]:
    """Raises ``DatasetError`` for a file with other columns."""
    for name, shards in groupby(reader.dataset_files(folder), key=reader.split_of):
        files = list(shards)
        kind = reader.kind_of(files[0])
        for file in files:
            check_columns(file, kind)
        yield _Split(folder, name, kind, files)


class _Options(NamedTuple):
    """Rows of a split that are read at most, who hears of them, and the digest that the manifest has to have."""

    limit: int | None
    progress: Progress | None
    digest: str | None


def _audit_splits(splits: Sequence[_Split], row_audit: "_RowAudit", report: AuditReport, options: _Options) -> None:
    (limit, progress, digest), is_checked = options, "checks" in row_audit.parts
    n_all = sum(n if limit is None else min(n, limit) for n in (reader.n_rows_of(split.files) for split in splits))
    unread = ("images", "videos") if row_audit.parts == {"counts"} else ()
    for folder, group in groupby(splits, key=lambda split: split.folder):
        of_folder = list(group)
        report.notes += [f"{folder.name}: {line}" for line in reader.marker_facts(folder).get("intake", ())]
        shipped = _FolderAudit(folder, digest) if row_audit.parts != {"replay"} else None
        totals = DatasetTotals(folder, of_folder[0].kind, shipped.card if shipped else {})
        for split in of_folder:
            rows = ((split, row) for row in islice(reader.read_files(split.files, without=unread), limit))
            for row, result in reader.map_in_threads(rows, row_audit):
                if result.is_whole and "counts" in row_audit.parts:
                    with _malformed(row, split, result):
                        result.add(totals.row(row, split.name))
                if shipped and is_checked:
                    shipped.row(split.name, str(row.get(reader.KEYS[split.kind])), row, result)
                report.take(result)
                if progress is not None:
                    progress(report.n_rows, n_all)
        of_files = shipped.findings(is_whole=limit is None) if shipped and is_checked else AuditReport()
        if limit is None and "counts" in row_audit.parts:
            counted = AuditReport(checked=Counter({"card and counts": 1}))
            counted.add(totals.findings())
            if shipped is not None and shipped.manifest is not None:
                counted.date("shipped" if any(finding.since for finding in of_files.findings) else "made")
            report.take(counted)
        report.take(of_files)


class _FolderAudit:
    """Compare a folder with its manifest, and say of each finding whether it was there when the folder was shipped."""

    def __init__(self, folder: StorePath, digest: str | None) -> None:
        self._folder, self._problem = folder, ""
        self.manifest: Manifest | None = None
        """None where an earlier version made the folder, or it is gone."""
        try:
            self.manifest = Manifest.of(folder)
        except ValueError as error:
            self._problem = str(error)
        card, self._marker = self.manifest.card if self.manifest else {}, reader.marker_facts(folder)
        self.card = card if card.get("code") == card_code() else {}
        """The facts of the card; empty where this version would render it otherwise."""
        expected = digest or self._marker.get("manifest")
        if expected and not self._problem and (self.manifest is None or self.manifest.digest != expected):
            self._problem = f"{MANIFEST} has not the digest {expected}: it was replaced, or is another dataset's"

    def row(self, split: str, row_id: str, row: Row, report: AuditReport) -> None:
        """Date the findings of a row, and add one if the row was changed."""
        if self.manifest is None:
            return
        happened = self.manifest.take(split, row_id, row)
        report.checked["manifest"] += 1
        if happened:
            report.find(f"{happened} row", self._folder.name, row_id, "its columns are not those that were shipped")
        report.date("shipped" if happened else "made")

    def exported(self, folder: Path, report: AuditReport) -> None:
        """Compare the rows of an export, and date the findings of ``report``, which name files and lines."""
        if (manifest := self.manifest) is None or not manifest.ids:
            return
        files, places, rows = dict(manifest.changed_files(folder)), set[str](), AuditReport()
        for file, number, row_id, row in exported_rows(folder):
            place, images = f"{file}:{number}", row.get("images") if isinstance(row, dict) else ()
            rows.checked["manifest"] += 1
            if happened := manifest.take(file, row_id, row):
                rows.find(f"{happened} row", self._folder.name, place, "it is not the one that was shipped")
            if happened or any(image in files for image in images or () if isinstance(image, str)):
                places.add(place)
        rows.date("shipped")
        report.findings = [replace(each, since="shipped" if each.row in places else "made") for each in report.findings]
        report.take(rows)

    def findings(self, *, is_whole: bool = True) -> AuditReport:
        """Compare the manifest itself, and where the folder ``is_whole`` its files, and the rows that were not read."""
        report, name = AuditReport(), self._folder.name
        if self._problem:
            report.find("manifest", name, "", self._problem)
        elif self.manifest is None:
            report.notes.append(f"{name}: no {MANIFEST}, so that a change since shipping is found by its contents only")
        elif not self.manifest.ids:
            report.notes.append(f"{name}: an earlier version's {MANIFEST} has no rows: changes are found by file")
        elif not self.card and "layout" not in self._marker:
            report.notes.append(f"{name}: another version's card: its figures are counted, its text is not compared")
        if self.manifest is not None:
            report.notes.append(f"{name}: manifest {self.manifest.digest}")
        if self.manifest is not None and is_whole:
            missing = self.manifest.missing()
            report.add(AuditFinding("missing row", name, row_id, "it was shipped") for row_id in missing)
            for file, happened in self.manifest.changed_files(self._folder):
                report.find(f"{happened} file", name, file, "it is not as it was shipped")
        report.date("shipped")
        return report


@contextmanager
def _malformed(row: Row, split: _Split, report: AuditReport) -> Iterator[None]:
    """Make an error of a row a finding: its columns may have any type."""
    try:
        yield
    except (BaseValidationError, ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        row_id = str(row.get(reader.KEYS[split.kind]))
        report.find("malformed row", split.folder.name, row_id, f"{type(error).__name__}: {error}")
        report.is_whole = False


@dataclass(frozen=True, slots=True)
class _RowAudit:
    """Audit one row; returns it with its report."""

    parts: frozenset[Part]
    execute: Execute
    truth: KnownTruth | None

    def __call__(self, pair: tuple[_Split, Row]) -> tuple[Row, AuditReport]:
        split, row = pair
        report, dataset = AuditReport(n_rows=1), split.folder.name
        with _malformed(row, split, report):
            if "checks" in self.parts:
                report.checked["bytes of images"] += 1
                for place in changed_images(row):
                    row_id = str(row.get(reader.KEYS[split.kind]))
                    report.find("changed image", dataset, row_id, f"image {place} is not the one of its digest")
            if split.kind == "prompts":
                self._prompt(row, dataset, report)
            else:
                self._trajectory(row, dataset, report)
        return row, report

    def _prompt(self, row: Row, dataset: str, report: AuditReport) -> None:
        if "counts" in self.parts:
            report.checked["votes"] += 1
            report.add(recount(row, self.truth, dataset))
        if "checks" in self.parts:
            report.checked["grader"] += 1
            report.add(regrade(row, self.truth, dataset))

    def _trajectory(self, row: Row, dataset: str, report: AuditReport) -> None:
        if "replay" in self.parts:
            _replay(row, dataset, self.execute, report)
        if "checks" in self.parts:
            _remeasure(row, dataset, self.truth, report)
        if "counts" in self.parts:
            report.checked["votes"] += 1
            report.add(stated_counts(row, dataset))


def _replay(row: Row, dataset: str, execute: Execute, report: AuditReport) -> None:
    report.n_rounds = len(row["rounds"])
    try:
        differences = replay_row(row, execute=execute)
    except NotComparable as error:
        report.not_measured[f"execution: {error}"] += 1
        return
    report.n_replayed, report.n_same = 1, int(not differences)
    report.n_other_sandbox = int(row["provenance"]["sandbox_digest"] != sandbox.sandbox_digest())
    report.n_executed = report.n_rounds
    report.n_images = sum(len(turn["observation"]["images"]) for turn in row["rounds"])
    for difference in differences:
        kind, reason = f"replay: {difference.what}", f"stored {difference.recorded!r}, now {difference.replayed!r}"
        report.find(kind, dataset, row["trajectory_id"], reason, difference.round)


def _remeasure(row: Row, dataset: str, truth: KnownTruth | None, report: AuditReport) -> None:
    for name, finding, missing in remeasure(case_of(row, truth), row, dataset):
        if missing:
            report.not_measured[f"{name}: needs {missing}"] += 1
            continue
        report.checked[name] += 1
        if finding is not None:
            report.add([finding])
    report.add(stored_failures(row, dataset))


def _audit_conversations(
    conversations: Conversations, parts: frozenset[Part], execute: Execute, options: _Options
) -> AuditReport:
    limit, progress, digest = options
    report, n_all, folder = AuditReport(), conversations.n_rows if limit is None else limit, conversations.folder
    report.notes += filter(None, [conversations.note])
    if conversations.note and "checks" not in parts:
        raise UserError(conversations.note)
    perform = partial(_audit_conversation, conversations=conversations, parts=parts, execute=execute)
    for result in reader.map_in_threads(islice(conversations.rows, limit), perform):
        report.take(result)
        if progress is not None:
            progress(report.n_rows, max(report.n_rows, n_all))
    if folder is not None and "checks" in parts:
        shipped = _FolderAudit(folder, digest)
        shipped.exported(folder, report)
        report.take(shipped.findings())
    return report


def _audit_conversation(
    source: SourceRow | BadRow, conversations: Conversations, parts: frozenset[Part], execute: Execute
) -> AuditReport:
    """The code is executed for ``checks``, too, which read whether it ran."""
    report, dataset = AuditReport(n_rows=1), conversations.name
    if isinstance(source, BadRow):
        report.find(f"unreadable: {source.reason}", dataset, source.row, source.evidence)
        return report
    row = row_of(source, is_escaped=conversations.is_escaped)
    report.n_rounds = len(row["rounds"])
    try:
        differences = execute_rounds(row, execute, conversations.max_difference)
    except (NotComparable, SetupFailed) as error:
        report.not_measured[f"execution: {error}"] += 1
        return report
    except sandbox.SandboxUnavailable:
        raise
    except sandbox.SandboxError as error:
        report.find("replay: session", dataset, source.row, f"{type(error).__name__}: {error}")
        return report
    report.n_executed, report.n_images = report.n_rounds, len(row["images"]) - row["n_question_images"]
    if "replay" in parts:
        report.n_replayed, report.n_same = 1, int(not differences)
        for number, difference in differences:
            report.find("replay", dataset, source.row, difference, number)
    if "checks" in parts:
        _remeasure(row, dataset, None, report)
    return report


__all__ = ["PARTS", "AuditFinding", "AuditReport", "Encode", "NotKnown", "Part", "audit", "find_conversations"]
