"""Who is listed, and who is not."""

from __future__ import annotations

import random

from darkroom.annotation.quality.annotators import measure_annotators
from darkroom.annotation.quality.outliers import find_outliers
from darkroom.annotation.rounds.submissions import PlantedErrorCheck


def rows(state, **caught):
    """People with so many planted errors caught of so many."""
    one = state()
    for person, (n, of) in caught.items():
        one.planted_checks += [PlantedErrorCheck("moved_box", person, place < n) for place in range(of)]
    return measure_annotators([one])


def test_who_catches_none_of_six_where_others_catch_nearly_all_is_listed(state):
    (found,) = find_outliers(rows(state, ann=(9, 10), bo=(10, 10), jo=(0, 6)))
    assert (found.person.email, found.measure, str(found.share), str(found.others)) == (
        "jo",
        "planted_errors",
        "0%",
        "95%",
    )


def test_one_missed_error_is_no_concern(state):
    assert find_outliers(rows(state, ann=(9, 10), bo=(10, 10), jo=(0, 1))) == []


def test_the_best_of_all_is_no_concern(state):
    assert {one.person.email for one in find_outliers(rows(state, ann=(30, 30), jo=(5, 30)))} == {"jo"}


def test_somebody_alone_has_nobody_to_be_compared_with(state):
    assert find_outliers(rows(state, jo=(0, 50))) == []


def test_among_people_who_are_alike_hardly_anybody_is_listed(state):
    draw = random.Random(5)
    teams = [{f"p{n}": (sum(draw.random() < 0.8 for _ in range(12)), 12) for n in range(10)} for _ in range(30)]
    assert sum(len(find_outliers(rows(state, **team))) for team in teams) <= 300 / 40


def test_who_waves_everything_through_is_found_in_a_campaign(quality):
    found = find_outliers(quality.people)
    assert (found[0].person.name, found[0].measure) == ("Jonas", "planted_errors")
    assert len(found) <= 4
