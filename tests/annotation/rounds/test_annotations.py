import pytest

from darkroom.annotation.rounds import campaign, doctor, state_machine, submissions, sync
from tests.annotations import annotated_with


@pytest.mark.parametrize(
    "module", [campaign, doctor, state_machine, submissions, sync], ids=lambda module: module.__name__
)
def test_annotations_name_types_that_there_are(module) -> None:
    assert len(annotated_with(module)) > 5
