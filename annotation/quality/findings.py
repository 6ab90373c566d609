"""Findings for the campaign's lead: records that wait, and people who are idle, stuck, too fast or drifting, each with
its counts and a command that helps. None is a verdict on a person: look at the work first."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import yaml

from darkroom.annotation.quality.annotators import timestamp
from darkroom.annotation.quality.outliers import Drift, Outlier
from darkroom.annotation.quality.progress import WaitingRecords
from darkroom.annotation.rounds.submissions import ROLE, ROUNDS, RecordState
from darkroom.pipelines.records import AnnotationEvent
from darkroom.pipelines.storage.row_files import by_key

IDLE_SECONDS, N_BLOCKED, FEWEST_TIMES, FAST = 3 * 86_400, 3, 10, 1 / 3
"""Listed are people and records without a submission for longer, people with so many blocked ones since their last
valid one, and of so many times a median below this part of the others'."""
TEXTS = yaml.safe_load(Path(__file__).with_name("findings.yaml").read_text(encoding="utf-8"))


class CampaignFinding(NamedTuple):
    """Something to look at; ``subject`` is a round or an address."""

    kind: str
    subject: str
    sentence: str
    command: str


def _finding(kind: str, subject: str, **facts: Any) -> CampaignFinding:
    sentence, command = (TEXTS[kind][name].format(subject=subject, **facts) for name in ("sentence", "command"))
    return CampaignFinding(kind, subject, sentence, command)


def queue_findings(queues: Iterable[WaitingRecords], as_of: str) -> Iterator[CampaignFinding]:
    """Rounds without people, and those with a record that has waited for more than three days."""
    for queue in queues:
        kind = "waits" if queue.n_open_to else "nobody"
        if kind == "nobody" or _is_long(queue.since, as_of):
            role, people = ROLE[queue.round], len(queue.n_open_to)
            yield _finding(kind, queue.round, n=queue.n, role=role, people=people, since=queue.since)


def people_findings(
    states: Sequence[RecordState], queues: Sequence[WaitingRecords], blocked: Iterable[Mapping[str, Any]], as_of: str
) -> Iterator[CampaignFinding]:
    """People who are idle while others work, stuck at the server's validation, or far faster than the others."""
    events = [event for state in states for event in state.history if event.verdict != "void"]
    planted = [(check.person, check.at) for state in states for check in state.planted_checks]
    done = [*((event.person, event.at) for event in events), *planted]
    work = [(person, at) for person, at in done if timestamp(at) is not None]
    last = {who: max(times) for who, times in by_key(work).items()}
    begun, latest = min((at for _, at in work), default=""), max((at for _, at in work), default="")
    if queues and _is_long(latest, as_of):
        yield _finding("paused", "everybody", n=sum(queue.n for queue in queues), since=latest)
    for email in sorted({email for queue in queues for email in queue.n_open_to}):
        n_open, since = sum(queue.n_open_to.get(email, 0) for queue in queues), last.get(email, begun)
        if n_open and _is_long(since, latest):
            yield _finding("idle" if email in last else "absent", email, n=n_open, since=since)
    new = [entry for entry in blocked if entry["person"] and str(entry["at"]) > last.get(entry["person"], "")]
    for email, entries in sorted(by_key((str(entry["person"]), entry) for entry in new).items()):
        if len(entries) >= N_BLOCKED:
            yield _finding("stuck", email, n=len(entries), problem=" ".join(entries[-1]["problems"]))
    yield from (found for round in ROUNDS for found in _fast(round, [e for e in events if e.round == round]))


def _fast(round: str, events: Iterable[AnnotationEvent]) -> Iterator[CampaignFinding]:
    times = by_key((event.person, event.lead_seconds) for event in events if event.lead_seconds is not None)
    typical = {email: median(own) for email, own in sorted(times.items()) if len(own) >= FEWEST_TIMES}
    for email, seconds in typical.items():
        others = [usual for other, usual in typical.items() if other != email]
        if len(others) > 1 and seconds < FAST * (usual := median(others)):
            facts = {"n": len(times[email]), "others": len(others), "usual": usual}
            yield _finding("fast", email, round=round, seconds=seconds, **facts)


def quality_findings(outliers: Iterable[Outlier], drifts: Iterable[Drift]) -> Iterator[CampaignFinding]:
    """People significantly below everybody else, or below their own first half (Fisher's exact test)."""
    for person, measure, share, others in outliers:
        yield _finding("outlier", person.email, measure=TEXTS["measures"][measure], share=share, others=others)
    for email, measure, before, after in drifts:
        yield _finding("drift", email, measure=TEXTS["measures"][measure], share=after, before=before)


def _is_long(since: str, until: str) -> bool:
    return (timestamp(until) or 0.0) - (timestamp(since) or float("inf")) > IDLE_SECONDS
