"""How many people a campaign's rules need."""

from __future__ import annotations

from typing import Any

import pytest

from darkroom.annotation import AnnotationError
from darkroom.annotation.rounds.campaign import Campaign, require_experts, shortages


def team(annotators: int, checkers: int, experts: int, removed: int = 0) -> list[dict[str, Any]]:
    roles = ["annotator"] * annotators + ["checker"] * checkers + ["expert"] * experts
    active = [{"role": role, "is_active": True} for role in roles]
    return active + [{"role": "expert", "is_active": False}] * removed + [{"role": "admin", "is_active": True}]


@pytest.mark.parametrize(
    ("rules", "people", "short"),
    [
        ({}, (3, 0, 1), {}),
        ({}, (2, 0, 1), {"annotator": 3}),
        ({}, (1, 2, 1), {}),
        ({}, (0, 3, 1), {"annotator": 1}),
        ({}, (3, 0, 0, 2), {"expert": 1}),
        ({"experts_per_record": 3}, (3, 0, 2, 5), {"expert": 3}),
        ({"experts_per_record": 3}, (3, 0, 3), {}),
        ({"checked_twice": 0.1}, (3, 0, 1), {"annotator": 4}),
        ({"checked_twice": 0.1, "gold_share": 0}, (3, 0, 1), {}),
        ({"annotators_check": False}, (1, 2, 1), {}),
        ({"annotators_check": False}, (9, 1, 1), {"checker": 2}),
        ({"annotators_check": False, "checked_twice": 1}, (9, 2, 1), {"checker": 3}),
    ],
)
def test_a_campaign_needs_as_many_as_its_rules_ask(rules: dict[str, Any], people: Any, short: dict[str, int]) -> None:
    found = shortages(Campaign(**rules), team(*people))
    assert found.keys() == short.keys()
    assert all(f"needs at least {n} (" in found[role] for role, n in short.items())


def test_a_shortage_says_what_to_do() -> None:
    (said,) = shortages(Campaign(experts_per_record=3), team(3, 0, 1)).values()
    assert said == ("1 expert; this campaign needs at least 3 (`darkroom annotate users add EMAIL --role expert`)")


def test_only_a_campaign_for_several_experts_requires_them_beforehand() -> None:
    require_experts(Campaign(), team(0, 0, 0))
    require_experts(Campaign(experts_per_record=2), team(0, 0, 2))
    with pytest.raises(AnnotationError, match="too few experts: 1 expert; this campaign needs at least 2"):
        require_experts(Campaign(experts_per_record=2), team(3, 0, 1))
