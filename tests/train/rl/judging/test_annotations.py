from darkroom.train.rl.judging import judge_config
from tests.annotations import annotated_with


def test_annotations_name_types_that_there_are() -> None:
    assert annotated_with(judge_config)["open_judge"]["return"] is judge_config.OpenJudge
