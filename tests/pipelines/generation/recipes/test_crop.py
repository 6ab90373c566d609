"""Crop: a named or visible target is cropped at once; one that must be searched for is looked for."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from darkroom.pipelines.generation import engine
from darkroom.pipelines.generation.engine import Family
from darkroom.pipelines.generation.recipes import load_recipes
from darkroom.pipelines.models.policies import oracle_script
from darkroom.pipelines.records import Truth, TruthBox
from darkroom.pipelines.sources import SourceRow
from tests.image_files import encoded
from tests.matrices import first_quickly
from tests.pipelines.generation.recipes.conftest import PARTITION, _signed
from tests.pipelines.scripted import Scripted, run_all

PLACES = [(80, 60, 128, 84), (320, 200, 368, 224), (540, 380, 588, 404)]


@dataclass(frozen=True)
class Searches:
    """Three tags in each image, the target first, in the middle, last; and one image with a single tag."""

    name: str = "searches"
    n_shards: int = 1
    fingerprint: str = "searches"

    def rows(self, shard: int) -> Iterator[SourceRow]:
        for n in range(4):
            places = [PLACES[n], *(place for place in PLACES if place is not PLACES[n])] if n < 3 else PLACES[:1]
            image = _signed(n, "A1B", places[0], (1280, 960))
            boxes = tuple(TruthBox("tag", *place) for place in places)
            truth = Truth(boxes=boxes, details=json.dumps({"found": "searched"}))
            yield SourceRow(
                f"row/{n}", (encoded(image),), f"Which tag {n} says A1B?", "A1B", truth=truth, license="CC0"
            )


@pytest.fixture
def searched(workspace):
    engine.intake(workspace, Searches(), 0, PARTITION)
    return lambda family: Family(workspace, load_recipes()[family], PARTITION)


def test_candidates_are_looked_at_from_left_to_right_until_one_shows_the_target(searched, kept, rejects) -> None:
    family, policy = searched("crop"), Scripted(oracle_script("crop"))
    run_all(family, policy)
    rows = kept(family)
    assert {name: len(row.rounds) for name, row in rows.items()} == {"row/0": 1, "row/1": 2, "row/2": 3}
    scores = [check.score for row in rows.values() for check in row.checks if check.name == "place_could_be_known"]
    assert sorted(scores) == [pytest.approx(-1 / 3, abs=1e-3)] * 2 + [pytest.approx(2 / 3, abs=1e-3)]
    assert {row: reject.reason for row, reject in rejects(family).items()} == {"row/3": "unsuitable"}


def test_a_policy_is_told_one_candidate_after_the_other(searched) -> None:
    family, policy = searched("crop"), Scripted(oracle_script("crop"))
    run_all(family, policy)
    turns = [turn for turn in policy.turns if "candidates" in turn.task.hint]
    assert turns
    for turn in turns:
        told, said = turn.task.hint["candidates"].split("; "), str(turn.messages)
        assert all(region in said for region in told[: len(turn.rounds) + 1])
        assert not any(region in said for region in told[len(turn.rounds) + 1 :])


@pytest.mark.parametrize("name", first_quickly(["error_correction", "further_enhancement", "operation_aware"]))
def test_families_that_tell_the_place_do_not_take_what_must_be_searched_for(searched, rejects, name) -> None:
    family = searched(name)
    run_all(family)
    assert {reject.reason for reject in rejects(family).values()} == {"not_applicable"}
    assert len(rejects(family)) == 4
