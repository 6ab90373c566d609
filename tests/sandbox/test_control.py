"""The positive control: without a protection, attacks succeed and the checker says so.

Only attacks run that do no harm when they succeed: they read or write in the canary's folder, make sockets, forks that
end at once, namespaces and handles. None deletes, sends a signal, or leaves anything behind on the host.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from darkroom.sandbox.doctor import can_run, diagnose
from tests.sandbox.arena import Arena, open_arena
from tests.sandbox.attacks import ATTACKS, LIMITS, attack

pytestmark = pytest.mark.e2e


def escaping(protection: str) -> list[dict]:
    return [case for case in ATTACKS if protection in case.get("escapes_without", ())]


@pytest.fixture(scope="module")
def without_seccomp(photo: Path) -> Iterator[Arena]:
    yield from _unprotected("seccomp", photo)


@pytest.fixture(scope="module")
def without_landlock(photo: Path) -> Iterator[Arena]:
    yield from _unprotected("Landlock", photo)


@pytest.mark.parametrize("case", escaping("seccomp"), ids=lambda case: case["name"])
def test_without_seccomp_the_attack_is_seen_to_succeed(without_seccomp: Arena, case: dict) -> None:
    assert attack(without_seccomp, case).faults


@pytest.mark.parametrize("case", escaping("Landlock"), ids=lambda case: case["name"])
def test_without_landlock_the_attack_is_seen_to_succeed(without_landlock: Arena, case: dict) -> None:
    assert attack(without_landlock, case).faults


@pytest.mark.parametrize(("protection", "least"), [("seccomp", 20), ("Landlock", 10)])
def test_the_control_is_not_empty(protection: str, least: int) -> None:
    assert len(escaping(protection)) >= least


def _unprotected(protection: str, photo: Path) -> Iterator[Arena]:
    """In the lite tier: in the full one, namespaces would stop most of what Landlock stops."""
    if not can_run("lite", diagnose()):
        pytest.skip("the lite tier cannot run here")
    with open_arena(photo, LIMITS, tier="lite", scan="off", _switched_off={protection}) as arena:
        yield arena
