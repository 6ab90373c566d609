"""Progress of a campaign as of its last sync: records that wait, the forecast of the end, and payments so far."""

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date, timedelta
from statistics import fmean, stdev
from typing import NamedTuple

from darkroom.annotation.label_studio.forms import ROUND_FORMS
from darkroom.annotation.label_studio.protocol import Person
from darkroom.annotation.quality.annotators import payments, timestamp, with_amounts
from darkroom.annotation.rounds.campaign import Campaign
from darkroom.annotation.rounds.submissions import ROUNDS, RecordState

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
    """Payments by the campaign's rates; ``in_all`` if every image costs what a settled one has cost so far, work on
    open records included; None with too few."""

    currency: str
    so_far: float
    n_submissions: int
    n_settled: int
    in_all: float | None


def queues_of(states: Iterable[RecordState], people: Sequence[Person], campaign: Campaign) -> Iterator[WaitingRecords]:
    waiting = [state for state in states if state.stage == "waiting"]
    for round in ROUNDS:
        records = [state for state in waiting if state.round == round]
        only_checkers = round == "cross_check" and not campaign.annotators_check
        roles = ("checker",) if only_checkers else ROUND_FORMS[round].roles
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
