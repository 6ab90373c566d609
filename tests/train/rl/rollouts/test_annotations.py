from darkroom.train.rl.rollouts import scoring
from tests.annotations import annotated_with


def test_annotations_name_types_that_there_are() -> None:
    assert annotated_with(scoring)["Scores.of_groups"]["return"] is scoring.Scores
