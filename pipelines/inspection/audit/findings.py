"""The report of an audit: findings by kind, what was compared or could not be; totals, of which digests stay."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from types import MappingProxyType
from typing import Any, Literal, Self

from darkroom.pipelines.inspection.audit.row_records import Row
from darkroom.pipelines.publishing.cards import plain, render_card
from darkroom.pipelines.publishing.cards.row_facts import RowFacts
from darkroom.pipelines.publishing.dataset_reader import KEYS, Kind, read_marker
from darkroom.pipelines.records.digest import digest
from darkroom.pipelines.storage.atomic_write import MARKER
from darkroom.pipelines.storage.store_paths import StorePath

MAX_FINDINGS = 10_000
"""Kept with their rows; further ones are counted only, so that an audit of a bad release fits into memory."""
_MAX_DETAIL = 300
_KINDS = ("source", "category", "licence", "split", "origin", "difficulty", "grader")
_FIGURE = re.compile(
    rf"^(?:\| (?:{'|'.join(_KINDS)}|with) [^\n]* \| [1-9]\d* \|$|\d+ trajectories with \d+ images|\d+ questions with)",
    re.MULTILINE,
)
"""What a card says of numbers of rows."""
_STEP = re.compile(
    r"^\| (samples|drafts|runs|verdicts|trajectories|dataset) \| (\d+) \| ([^|\n]*)\|(?: (\d*) ?\|)?$", re.MULTILINE
)
"""The last column is missing in cards of earlier versions, where its rows are among the rejected ones."""
_TAKEN = re.compile(r" (\d+)(?:, | ?$)")
_COUNTS = ("n_rows", "n_rounds", "n_executed", "n_images", "n_replayed", "n_same", "n_other_sandbox")
_COUNTERS = ("kinds", "checked", "not_measured")
Since = Literal["", "made", "shipped"]
"""When a finding came about: the dataset was made so, or was changed after it was shipped; empty: not known."""


@dataclass(frozen=True, slots=True)
class AuditFinding:
    """A contradiction to what the dataset says. ``round`` counts from 1; 0 where it is no round's."""

    kind: str
    """``replay: pixels``, ``check: upright``, ``card``, ``votes``: the table's first column."""
    dataset: str
    row: str
    """The row's id, or its place in a file; empty for a finding of the dataset as a whole."""
    reason: str
    round: int = 0
    since: Since = ""


@dataclass(slots=True)
class AuditReport:
    """The result of an audit. Its counts say how much of the dataset was examined."""

    n_rows: int = 0
    n_rounds: int = 0
    n_images: int = 0
    """Images of observations that were compared."""
    n_executed: int = 0
    """Rounds whose observation was compared."""
    n_replayed: int = 0
    n_same: int = 0
    """Replayed rows whose observations are all equal."""
    n_other_sandbox: int = 0
    """Replayed rows that another version of the sandbox made, equal or not."""
    checked: Counter[str] = field(default_factory=Counter)
    """Rows by the check or count that was done again."""
    not_measured: Counter[str] = field(default_factory=Counter)
    """Rows by what could not be done, and why."""
    kinds: Counter[str] = field(default_factory=Counter)
    """Findings by kind, all of them."""
    findings: list[AuditFinding] = field(default_factory=list)
    """The first ``MAX_FINDINGS``."""
    notes: list[str] = field(default_factory=list)
    """Further lines for people, such as how many tokens the rows have."""
    is_whole: bool = True
    """False for the report of a row that is malformed."""

    def add(self, findings: Iterable[AuditFinding]) -> None:
        """Counts findings, and keeps them while there is room."""
        for finding in findings:
            self.kinds[finding.kind] += 1
            if len(self.findings) < MAX_FINDINGS:
                self.findings.append(finding)

    def find(self, kind: str, dataset: str, row: str, reason: str, round: int = 0) -> None:
        """Add one finding, its reason shortened."""
        self.add([AuditFinding(kind, dataset, row, shortened(reason), round)])

    def date(self, since: Since) -> None:
        """Say of all findings when they came about, but for those of the marker, which does not ship."""
        dated = (each if each.reason.startswith(MARKER) else replace(each, since=since) for each in self.findings)
        self.findings = list(dated)

    def take(self, part: Self) -> None:
        for name in _COUNTS:
            setattr(self, name, getattr(self, name) + getattr(part, name))
        for name in _COUNTERS:
            getattr(self, name).update(getattr(part, name))
        self.findings += part.findings[: MAX_FINDINGS - len(self.findings)]
        self.notes += part.notes

    @property
    def rate(self) -> float:
        """Share of replayed rows that are equal; 1.0 if none was replayed."""
        return self.n_same / self.n_replayed if self.n_replayed else 1.0

    @property
    def n_findings(self) -> int:
        """Number of all findings, including those that are only counted."""
        return self.kinds.total()

    def as_json(self) -> dict[str, Any]:
        return {
            **{name: getattr(self, name) for name in (*_COUNTS, "n_findings")},
            **{name: dict(sorted(getattr(self, name).items())) for name in _COUNTERS},
            "notes": self.notes,
            "findings": list(map(asdict, self.findings)),
        }


def shortened(text: str) -> str:
    """The reason, cut to 300 characters: texts of rows may have any length."""
    return text if len(text) <= _MAX_DETAIL else f"{text[: _MAX_DETAIL - 2]} …"


class DatasetTotals:
    """Counts of one dataset's folder; ``row`` takes each row in, ``findings`` compares at the end. ``card``: the facts
    from which it is rendered anew; without any, its figures are compared with those of the rows."""

    def __init__(self, folder: StorePath, kind: Kind, card: Mapping[str, Any] = MappingProxyType({})) -> None:
        self._folder, self._kind, self._card = folder, kind, card
        self._facts = RowFacts()
        self._first: dict[bytes, str] = {}
        self._splits: dict[bytes, str] = {}

    def row(self, row: Row, split: str) -> Iterator[AuditFinding]:
        """Count a row of ``split``; findings are contradictions to the rows before."""
        self._facts.count(row, split)
        row_id = row[KEYS[self._kind]]
        before = self._first.setdefault(self._content(row), row_id)
        if before is not row_id:
            yield AuditFinding("repeated row", self._folder.name, row_id, f"the same content as {before}")
        for ref in row["image_refs"][: row.get("n_question_images", len(row["image_refs"]))]:
            image = bytes.fromhex(ref.get("parent") or ref["sha256"])
            if self._splits.setdefault(image, split) != split:
                reason = f"an image of its question is in {self._splits[image]}, too"
                yield AuditFinding("image in two splits", self._folder.name, row_id, reason)

    def findings(self) -> Iterator[AuditFinding]:
        """The marker and the card against what was counted."""
        card = self._folder / "README.md"
        try:
            stated = read_marker(self._folder)
        except ValueError as error:
            stated = {}
            yield self._finding(f"{MARKER}: {error}")
        for name in ("n_rows", "n_images"):
            if stated.get(name, n := getattr(self._facts, name)) != n:
                yield self._finding(f"{MARKER}: {name} is {stated[name]}, counted {n}")
        if (looks := self._facts.first_looks).is_beyond_chance:
            reason = f"{looks.n_hits} of {looks.n} first looks at targets that must be searched for show them"
            yield self._finding(f"{reason}; by chance {looks.by_chance:.1f}", kind="known place")
        if card.is_file():
            text = card.read_bytes().decode("utf-8", "replace")
            compared = self._anew(text) if self._card else self._figures(text)
            for reason in (*compared, *_funnel(text)):
                yield self._finding(f"README.md: {reason}")
        elif self._card:
            yield self._finding("README.md: it is missing")

    def _anew(self, text: str) -> Iterator[str]:
        """Lines in which the card differs from what its facts and the rows give."""
        try:
            facts = self._card["facts"] | plain(self._facts.counted())
            expected = render_card(self._kind, {**self._card, "facts": facts})
        except Exception as error:  # noqa: BLE001  # facts are anybody's
            yield f"its facts in MANIFEST cannot be rendered: {type(error).__name__}: {error}"
            return
        yield from _differences(text.split("\n"), expected.split("\n"))
        if text != expected and sorted(text) == sorted(expected):
            yield "its lines are in another order"

    def _content(self, row: Row) -> bytes:
        content: Any = [row["question"], row["answer"], [ref["sha256"] for ref in row["image_refs"]]]
        if self._kind == "trajectories":
            content += [row["final_thought"], [[turn["thought"], turn["code"]] for turn in row["rounds"]]]
        return bytes.fromhex(digest(content))

    def _figures(self, text: str) -> Iterator[str]:
        """Figures of a card of another version that the rows do not give, and those that it lacks of what it counts."""
        facts, stated = self._facts, _FIGURE.findall(text)
        expected = [f"| {kind} {value} | {n} |" for kind in _KINDS for value, n in facts.columns[kind].items() if n]
        rounds = facts.columns["rounds"].items()
        expected += [f"| with {n} round{'' if n == '1' else 's'} of code | {n_rows} |" for n, n_rows in rounds]
        expected += [f"{facts.n_rows} trajectories with {facts.n_images} images", f"{facts.n_rows} questions with"]
        counted = {line.split()[1] for line in stated}
        return _differences(stated, [line for line in expected if line.split()[1] in counted])

    def _finding(self, reason: str, *, kind: str = "card") -> AuditFinding:
        return AuditFinding(kind, self._folder.name, "", shortened(reason))


def _differences(stated: Sequence[str], expected: Sequence[str]) -> Iterator[str]:
    says, lacks = Counter(stated) - Counter(expected), Counter(expected) - Counter(stated)
    yield from (f"says {line!r}, which rows and facts do not give" for line in says.elements())
    yield from (f"does not say {line!r}, which rows and facts give" for line in lacks.elements())


def _funnel(text: str) -> Iterator[str]:
    """Rows in = rows out + rejected rows + those that are not applicable, from stage to stage of the card's yield."""
    before: int | None = None
    for step, n_out, reasons, n_not_applicable in _STEP.findall(text):
        n_in = int(n_out) + sum(map(int, _TAKEN.findall(reasons))) + int(n_not_applicable or 0)
        if before is not None and n_in != before:
            yield f"{step}: {n_out} rows and the rejected ones are {n_in}; the stage before has {before}"
        before = int(n_out)
