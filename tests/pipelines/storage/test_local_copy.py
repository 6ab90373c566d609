"""What a training reports gets to the home, wherever that is."""

from __future__ import annotations

from pipelines.storage.local_copy import share_folder
from pipelines.storage.places import place
from pipelines.storage.workspace import Workspace


def report(folder, text):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "report.json").write_text(text)


def test_a_report_is_in_the_home_also_where_local_things_are_in_another_folder(tmp_path):
    environment = {"DARKROOM_HOME": str(tmp_path / "home"), "DARKROOM_LOCAL": str(tmp_path / "local")}
    workspace = Workspace.from_environment(environment)
    made, home = workspace.local / "evaluations" / "grpo", workspace.evaluation("grpo")
    for text in ("first", "second"):
        report(made, text)
        share_folder(made, home)
        assert (home / "report.json").read_text() == text
    assert [path.name for path in home.parent.iterdir()] == ["grpo"]


def test_a_report_that_lies_where_it_is_to_be_stays_there(tmp_path):
    report(tmp_path / "grpo", "a report")
    share_folder(tmp_path / "grpo", tmp_path / "grpo")
    assert (tmp_path / "grpo" / "report.json").read_text() == "a report"


def test_a_report_is_uploaded_to_an_object_store(s3, tmp_path):
    report(tmp_path / "grpo", "a report")
    home = place(s3.url()) / "evaluations" / "grpo"
    share_folder(tmp_path / "grpo", home)
    assert (home / "report.json").read_text() == "a report"
