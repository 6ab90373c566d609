"""The terms of a task: what its submissions are judged by, frozen in the journal when the task is handed out.

A later change of the campaign's rules or of a form applies to tasks handed out afterwards. People's roles are frozen
with each submission (``Journal.set_people``).
"""

from __future__ import annotations

import json
from typing import Any, NamedTuple

from darkroom.annotation.label_studio.forms import CATEGORIES, REASONS, form, names
from darkroom.annotation.rounds.campaign import Campaign, Rule
from darkroom.annotation.rounds.journal_entries import Demand
from darkroom.annotation.rounds.submissions import ImageRules
from darkroom.pipelines.records.digest import digest

RULES = ("max_share", "max_rework", "experts_per_record", "expert_rule", "checked_twice", "seed")
"""The fields that are rules of the campaign; the others are the form's."""


class Terms(NamedTuple):
    """The rules and the form's version and options; defaults are today's form."""

    max_share: float
    max_rework: int
    form: str = ""
    """Digest of the labelling configuration; empty for a task of an older version."""
    categories: tuple[str, ...] = names(CATEGORIES)
    reasons: tuple[str, ...] = ()
    """Empty: not checked, as the gate of older versions did."""
    experts_per_record: int = 1
    """Of an acceptance; other rounds have the default."""
    expert_rule: Rule = "majority"
    checked_twice: float = 0
    """Of a cross-check; other rounds have the default."""
    seed: int = 0
    """Of the choice of these records; 0 where none is."""

    @property
    def digest(self) -> str:
        return digest(self._asdict())[:20]

    def to_json(self) -> str:
        return json.dumps(self._asdict())

    @classmethod
    def from_json(cls, text: str) -> Terms:
        values: dict[str, Any] = json.loads(text)
        fields: dict[str, Any] = {
            name: tuple(value) if isinstance(value, list) else value for name, value in values.items()
        }
        return cls(**fields)

    def image_rules(self, width: int, height: int) -> ImageRules:
        """The rules of one image's submissions; tasks of older versions were accepted without boxes."""
        return ImageRules(width, height, self.max_share, self.categories, self.reasons, bool(self.form))

    def n_verdicts(self, round: str, item_id: str) -> int:
        """How many people judge the record in this round, each on their own."""
        if round == "accept":
            return self.experts_per_record
        return 2 if round == "cross_check" and is_checked_twice(item_id, self.checked_twice, seed=self.seed) else 1

    def rule(self, round: str) -> Rule:
        """Two checkers of a record have to agree."""
        return self.expert_rule if round == "accept" else "unanimity"

    def asked(self, demand: Demand) -> Demand:
        """A round's first demand, for as many people as these terms ask; others as they are."""
        if demand.serial or demand.planted_error:
            return demand
        n_wanted = self.n_verdicts(demand.round, demand.item_id)
        return demand._replace(n_wanted=n_wanted, overlap=demand.overlap - demand.n_wanted + n_wanted)

    def changes(self, before: Terms) -> list[str]:
        """The differences from earlier terms, for people."""
        rules = [name for name in RULES if getattr(self, name) != getattr(before, name)]
        changed = [f"{name} {_shown(getattr(before, name))} -> {_shown(getattr(self, name))}" for name in rules]
        is_new_form = any(getattr(self, name) != getattr(before, name) for name in self._fields if name not in RULES)
        return changed + (["a new version of the form"] if is_new_form else [])


def is_checked_twice(item_id: str, share: float, *, seed: int = 0) -> bool:
    """Whether an item is in the share, by its digest and the campaign's seed; a larger share contains the smaller."""
    key = ["checked twice", item_id, *([seed] if seed else [])]
    return share > 0 and int(digest(key)[:8], 16) < share * 16**8


def _shown(value: object) -> str:
    return f"{value:g}" if isinstance(value, int | float) else str(value)


def terms_of(campaign: Campaign, round: str) -> Terms:
    """The terms of tasks that are handed out now."""
    version = digest(form(round))[:20]
    terms = Terms(campaign.max_share, campaign.max_rework, version, names(CATEGORIES), names(REASONS))
    if round == "accept":
        return terms._replace(experts_per_record=campaign.experts_per_record, expert_rule=campaign.expert_rule)
    if round == "cross_check" and campaign.checked_twice:
        return terms._replace(checked_twice=campaign.checked_twice, seed=campaign.seed)
    return terms
