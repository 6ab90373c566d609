"""Which roles open a round: the plug-in's table, the forms' and what a project's description says."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from darkroom.annotation._plugin.darkroom_studio.access import OPEN_TO, ROLES, is_open, open_roles, round_of
from darkroom.annotation.label_studio.client import project_description
from darkroom.annotation.label_studio.forms import ROUND_FORMS


def person(role: str) -> SimpleNamespace:
    groups = [SimpleNamespace(name=f"darkroom:{role}")] if role else []
    return SimpleNamespace(is_staff=False, groups=SimpleNamespace(all=lambda: groups))


def project(round: str, *roles: str) -> SimpleNamespace:
    return SimpleNamespace(description=project_description("Ampel: rot", round, *roles))


def test_every_round_and_queue_has_roles() -> None:
    assert set(ROUND_FORMS) == set(OPEN_TO)
    assert {role for roles in OPEN_TO.values() for role in roles} == set(ROLES)


def test_a_checker_opens_what_is_checked_and_nothing_that_is_written() -> None:
    assert [name for name in OPEN_TO if is_open(project(name), person("checker"))] == ["cross_check", "verify"]


@pytest.mark.parametrize(
    ("roles", "description", "opened"),
    [
        ((), "darkroom cross_check Ampel: rot", ("annotator", "checker")),
        (("annotator", "checker"), "darkroom cross_check Ampel: rot", ("annotator", "checker")),
        (("checker",), "darkroom cross_check:checker Ampel: rot", ("checker",)),
    ],
)
def test_a_project_is_open_to_the_roles_in_its_description(
    roles: tuple[str, ...], description: str, opened: tuple[str, ...]
) -> None:
    found = project("cross_check", *roles)
    assert (found.description, round_of(found), open_roles(found)) == (description, "cross_check", opened)
    assert [is_open(found, person(role)) for role in (*ROLES, "")] == [role in opened for role in (*ROLES, "")]


def test_a_description_opens_no_round_to_a_role_that_it_is_not_for() -> None:
    assert open_roles(SimpleNamespace(description="darkroom accept:annotator,expert c")) == ("expert",)
    assert not is_open(SimpleNamespace(description="darkroom accept:annotator c"), person("expert"))


@pytest.mark.parametrize("description", ["", None, "darkroom", "another team's"])
def test_a_project_of_another_team_is_not_restricted(description: str | None) -> None:
    assert is_open(SimpleNamespace(description=description), person("checker"))
