from darkroom.pipelines.selection.decontamination import index
from tests.annotations import annotated_with


def test_annotations_name_types_that_there_are() -> None:
    assert annotated_with(index)["Scanner.report"]["return"] is index.ContaminationReport
