"""Progress of a campaign as of its last sync: records that wait, the forecast of the end, payments so far; and findings
for its lead, each with its counts and a command that helps. None is a verdict on a person: look at the work first."""

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date, timedelta
from pathlib import Path
from statistics import fmean, median, stdev
from typing import Any, NamedTuple

import yaml

from darkroom.annotation.label_studio.forms import ROUND_FORMS
from darkroom.annotation.label_studio.protocol import Person
from darkroom.annotation.quality.annotators import payments, timestamp, with_amounts
from darkroom.annotation.quality.outliers import Drift, Outlier
from darkroom.annotation.rounds.campaign import Campaign
from darkroom.annotation.rounds.submissions import ROLE, ROUNDS, PlantedErrorCheck, RecordState
from darkroom.pipelines.records import AnnotationEvent
from darkroom.pipelines.storage.row_files import by_key

MOST_DAYS, FEWEST_DAYS, FEWEST_SETTLED = 14, 5, 20
"""A forecast is from so many full days, and needs so many days and records that were settled: accepted or rejected."""


class WaitingRecords(NamedTuple):
    """Records that wait for one round. ``since``: when the one that waits longest came there; empty for new images."""

    round: str
    n: int
    since: str
    n_open_to: Mapping[str, int]
    """The number of these records that each account may do, by address."""


class EndForecast(NamedTuple):
    """The end, if as many records are settled a day as on the last full days (UTC), idle ones too. ``interval``: of the
    pace, at 95 %, by Student's t. ``ends``: the day, the earliest and the latest; empty for more than a century."""

    n_days: int
    n_settled: int
    n_left: int
    per_day: float
    interval: tuple[float, float]
    ends: tuple[str, ...]


class Cost(NamedTuple):
    """Payments by the campaign's rates; ``in_all`` if every image costs what a settled one did; None with too few."""

    currency: str
    so_far: float
    n_submissions: int
    n_settled: int
    in_all: float | None


def queues_of(states: Iterable[RecordState], people: Sequence[Person], campaign: Campaign) -> Iterator[WaitingRecords]:
    waiting = [state for state in states if state.stage == "waiting"]
    for round in ROUNDS:
        records = [state for state in waiting if state.round == round]
        roles = ("checker",) if (round == "cross_check" and not campaign.annotators_check) else ROUND_FORMS[round].roles
        since = min((s.history[-1].at for s in records if s.history and timestamp(s.history[-1].at)), default="")
        closed = Counter(person for state in records for person in {*state.excluded, *state.skipped_by})
        able = [person for person in people if person.is_active and person.role in roles]
        n_open_to = {p.email: max(0, len(records) - closed[p.person_id] - closed[p.email]) for p in able}
        if records:
            yield WaitingRecords(round, len(records), since, n_open_to)


def forecast(states: Sequence[RecordState], as_of: str) -> EndForecast | None:
    """None with too few days or settled records, or nothing left."""
    days = [event.at[:10] for state in states for event in state.history if timestamp(event.at)]
    settled = Counter(state.history[-1].at[:10] for state in states if state.stage != "waiting" and state.history)
    n_left = sum(state.stage == "waiting" for state in states)
    if not days or not n_left or not timestamp(as_of):
        return None
    today = date.fromisoformat(as_of[:10])
    n_days = min(MOST_DAYS, (today - date.fromisoformat(min(days))).days)
    counts = [settled[(today - timedelta(days=n + 1)).isoformat()] for n in range(n_days)]
    if n_days < FEWEST_DAYS or sum(counts) < FEWEST_SETTLED:
        return None
    from scipy.stats import t  # slow to load

    pace, half = fmean(counts), float(t.ppf(0.975, n_days - 1)) * stdev(counts) / math.sqrt(n_days)
    low, high, most = max(0.0, pace - half), pace + half, min(36_500, (date.max - today).days)
    days_left = [n_left / per_day if per_day else math.inf for per_day in (pace, high, low)]
    ends = ((today + timedelta(days=math.ceil(n))).isoformat() if n < most else "" for n in days_left)
    return EndForecast(n_days, sum(counts), n_left, pace, (low, high), tuple(ends))


def cost_of(states: Sequence[RecordState], people: Iterable[Person], campaign: Campaign) -> Cost | None:
    """None without rates."""
    if not campaign.rates:
        return None
    rows, n_settled = payments(states, people), sum(state.stage != "waiting" for state in states)
    so_far = round(sum((float(row["amount"]) for row in with_amounts(rows, campaign.rates)), 0.0), 2)
    in_all = so_far / n_settled * len(states) if n_settled >= FEWEST_SETTLED else None
    return Cost(campaign.currency, so_far, sum(int(row["submissions"]) for row in rows), n_settled, in_all)


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
    states: Iterable[RecordState], queues: Sequence[WaitingRecords], blocked: Iterable[Mapping[str, Any]], as_of: str
) -> Iterator[CampaignFinding]:
    """People who are idle while others work, stuck at the server's validation, or far faster than the others."""
    events = [event for state in states for event in state.history if event.verdict != "void"]
    planted = [check for state in states for check in state.planted_checks]
    done: list[AnnotationEvent | PlantedErrorCheck] = [*events, *planted]
    work = [(each.person, each.at) for each in done if timestamp(each.at) is not None]
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
    for round in ROUNDS:
        yield from _fast(round, (event for event in events if event.round == round))


def _fast(round: str, events: Iterable[AnnotationEvent]) -> Iterator[CampaignFinding]:
    times = by_key((event.person, event.lead_seconds) for event in events if event.lead_seconds is not None)
    typical = {email: median(own) for email, own in sorted(times.items()) if len(own) >= FEWEST_TIMES}
    for email, seconds in typical.items():
        others = [usual for address, usual in typical.items() if address != email]
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
