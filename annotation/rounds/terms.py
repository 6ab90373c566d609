"""The terms of a task: what its submissions are judged by, frozen in the journal when the task is handed out.

A later change of the campaign's rules or of a form applies to tasks handed out afterwards. People's roles are frozen
with each submission (``Journal.set_people``).
"""

from __future__ import annotations

import json
from typing import Any, NamedTuple

from annotation.label_studio.forms import CATEGORIES, REASONS, form, names
from annotation.rounds.campaign import Campaign
from annotation.rounds.submissions import ImageRules
from pipelines.records.digest import digest

RULES = ("max_share", "max_rework")
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

    def changes(self, before: Terms) -> list[str]:
        """The differences from earlier terms, for people."""
        rules = [name for name in RULES if getattr(self, name) != getattr(before, name)]
        changed = [f"{name} {getattr(before, name):g} -> {getattr(self, name):g}" for name in rules]
        return changed + (["a new version of the form"] if self[2:] != before[2:] else [])


def terms_of(campaign: Campaign, round: str) -> Terms:
    """The terms of tasks that are handed out now."""
    version = digest(form(round))[:20]
    return Terms(campaign.max_share, campaign.max_rework, version, names(CATEGORIES), names(REASONS))
