"""How many people a campaign needs, by its rules: no record may wait for a person who does not exist."""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from darkroom.annotation import AnnotationError
from darkroom.annotation.rounds.campaign import Campaign

FEWEST = 3
"""People who write or check: a rejected record goes to one who has not judged it."""


class Shortage(NamedTuple):
    """Too few active accounts of a role."""

    role: str
    n_people: int
    n_needed: int

    def __str__(self) -> str:
        people = f"{self.n_people} {self.role}{'s' * (self.n_people != 1)}"
        command = f"darkroom annotate users add EMAIL --role {self.role}"
        return f"{people}; this campaign needs at least {self.n_needed} (`{command}`)"


def shortages(campaign: Campaign, accounts: Iterable[Mapping[str, Any]]) -> list[Shortage]:
    """The roles with too few people; ``accounts`` as the server lists them.

    Beside an author, a record needs its checkers, and one more person for its copy with a planted error.
    """
    n_of = Counter(str(account["role"]) for account in accounts if account["is_active"])
    n_checking = (2 if campaign.checked_twice else 1) + (1 if campaign.gold_share else 0)
    needed = {"annotator": 1, "checker": n_checking, "expert": campaign.experts_per_record}
    if campaign.annotators_check:
        n_both = max(FEWEST, 1 + n_checking)
        needed |= {"annotator": max(1, n_both - n_of["checker"]), "checker": 0}
    return [Shortage(role, n_of[role], n) for role, n in needed.items() if n_of[role] < n]


def require_experts(campaign: Campaign, accounts: Iterable[Mapping[str, Any]]) -> None:
    """Before the first task is handed out. Raises ``AnnotationError`` when several experts judge each record and there
    are fewer."""
    for short in shortages(campaign, accounts):
        if short.role == "expert" and campaign.experts_per_record > 1:
            raise AnnotationError(f"too few experts: {short}")
