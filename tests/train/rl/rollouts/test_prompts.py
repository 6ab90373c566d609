import io

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image

from darkroom.pipelines.publishing.dataset_reader import DatasetError, read_files
from darkroom.pipelines.publishing.parquet_shards import write_trajectories
from darkroom.pipelines.records import Grader, RLRow
from darkroom.sandbox.errors import UserError
from darkroom.train.examples.datasets import dataset_files
from darkroom.train.rl.methods import settings_of
from darkroom.train.rl.rollouts.prompts import check_prompts, open_prompts, opening, prompt, prompts, question_of
from darkroom.train.runs import TrainError
from tests.pipelines.publishing.shipping import write_prompts
from tests.train.conftest import sign, sum_without_image


@pytest.fixture(scope="module")
def rl(store, tmp_path_factory):
    folder = tmp_path_factory.mktemp("rl")
    samples = [sign(store, 0)[0], sum_without_image(7)[0]]
    graders = [Grader("text"), Grader("number", tolerance=0.1)]
    rows = [RLRow(one, how, "public", "unknown", None, None, None) for one, how in zip(samples, graders, strict=True)]
    write_prompts(folder, rows, store=store, split="train")
    return folder


@pytest.fixture(scope="module")
def signs_asked(dataset):
    return open_prompts(dataset)


def test_a_prompt_is_the_opening_with_the_question_images(signs_asked):
    shown = prompt(signs_asked[0], protocol="thyme")
    assert [message["role"] for message in shown["prompt"]] == ["system", "user"]
    assert len(shown["images"]) == 1
    assert shown["asked"].sample.answer == "red"
    assert (shown["protocol"], shown["sample_id"], shown["mode"]) == ("thyme", "s0", "free")


def test_the_sandbox_is_given_the_file_as_it_is_stored(dataset, signs_asked):
    stored = next(read_files(dataset_files(dataset)))["images"][:1]
    shown = prompt(signs_asked[0], protocol="thyme")
    assert shown["image_files"] == [image["bytes"] for image in stored]
    assert shown["images"][0].tobytes() == Image.open(io.BytesIO(stored[0]["bytes"])).tobytes()


def test_a_prompt_brings_its_videos_for_the_sandbox_alone(signs_asked):
    film = {"bytes": b"film", "path": "0.mp4"}
    assert prompt(signs_asked[0], protocol="thyme")["videos"] == []
    shown = prompt({**signs_asked[0], "videos": [film]}, protocol="thyme")
    assert shown["videos"] == [b"film"]
    assert "film" not in str(shown["prompt"])


def test_a_sample_with_several_trajectories_is_one_prompt(store, tmp_path):
    write_trajectories(tmp_path / "twice", [sign(store, 0), sign(store, 1), sign(store, 0)], store=store)
    assert list(open_prompts(tmp_path / "twice")["sample_id"]) == ["s0", "s1"]


def test_rl_rows_are_asked_in_the_protocol_that_is_wanted(rl):
    asked = prompts(open_prompts(rl), protocol="tool_call")
    assert {row["protocol"] for row in asked} == {"tool_call"}
    assert "<tools>" in str(asked[0]["prompt"]) or "tool_call" in str(asked[0]["prompt"])


def test_rl_rows_bring_their_graders(rl):
    graders = [row["asked"].grader for row in prompts(open_prompts(rl), protocol="thyme")]
    assert graders == [Grader("text"), Grader("number", tolerance=0.1)]


def test_choices_are_part_of_the_question(rows):
    asked = question_of(rows[6])
    assert asked.sample.choices == ("A. 140", "B. 112")
    assert "A. 140\nB. 112" in str(opening(asked, protocol="thyme")[1]["content"][-1]["text"])


def test_a_mode_changes_the_opening(rl):
    row = question_of(open_prompts(rl)[0])
    openings = [str(opening(row, protocol="tool_call", mode=mode)) for mode in ("free", "forced", "forbidden")]
    assert len(set(openings)) == 3


def test_a_mode_that_the_protocol_does_not_have_is_refused(rl):
    with pytest.raises(TrainError, match="cannot be asked in thyme"):
        check_prompts(rl, protocol="thyme", modes=("free", "forced"))


def test_a_question_is_visual_search_as_its_row_says(rl):
    """A row without the value is read by its image and boxes, as rows were before there was the column."""
    row = dict(open_prompts(rl)[0])
    assert question_of(row).visual_search is row["visual_search"]
    assert question_of({**row, "visual_search": False}).visual_search is False
    del row["visual_search"]
    assert question_of({**row, "boxes": []}).visual_search is None
    size = {name: row["image_refs"][0][name] for name in ("width", "height")}
    box = {"label": "", "x1": 0, "y1": 0, "x2": size["width"] // 10, "y2": size["height"] // 10, "image": 0}
    assert question_of({**row, "boxes": [box]}).visual_search is True


def test_columns_of_neither_dataset_are_named(tmp_path):
    pq.write_table(pa.table({"sample_id": ["a"], "prompt": ["b"], "colour": ["red"]}), tmp_path / "train.parquet")
    with pytest.raises(
        DatasetError, match=r"no shipped dataset of trajectories: missing .*unknown \['colour', 'prompt'\]"
    ):
        open_prompts(tmp_path)


def test_a_mixed_folder_is_refused(rl, dataset, tmp_path):
    for number, folder in enumerate((rl, dataset)):
        (source,) = folder.glob("*.parquet")
        (tmp_path / f"train-{number}.parquet").write_bytes(source.read_bytes())
    with pytest.raises(TrainError, match="mixes rl and sft rows"):
        open_prompts(tmp_path)


def test_a_dataset_without_rows_is_refused(store, tmp_path):
    write_prompts(tmp_path, [], store=store, split="train")
    with pytest.raises(TrainError, match="has no rows"):
        open_prompts(tmp_path)


def words(messages):
    return "\n".join(str(message["content"]) for message in messages)


def test_a_papers_prompt_is_what_the_model_is_asked(signs_asked):
    shown = prompt(signs_asked[0], protocol="thyme", wording="thyme_paper")
    assert "User Image Path: image_0.png" in words(shown["prompt"])
    assert shown["image_names"] == ("image_0.png",)  # code may open it so
    assert len(shown["images"]) == 1
    plain = prompt(signs_asked[0], protocol="thyme")
    assert "User Image Path" not in words(plain["prompt"])
    assert plain["image_names"] == ()


def test_a_papers_prompt_has_the_mode_of_each_rollout(signs_asked):
    from darkroom.train.rl.rollouts.trainer import _in_mode

    row = prompt(signs_asked[0], protocol="tool_call", wording="adaptive_paper")
    assert "Determine whether" in words(row["prompt"])
    assert "You must zoom in" in words(_in_mode(row, "forced")["prompt"])
    assert "<tools>" not in words(_in_mode(row, "forbidden")["prompt"])


def test_a_prompt_for_another_protocol_or_an_unknown_one_is_refused_before_training(rl):
    with pytest.raises(TrainError, match="thyme_paper asks for thyme turns, not tool_call: --protocol thyme"):
        check_prompts(rl, protocol="tool_call", wording="thyme_paper")
    with pytest.raises(TrainError, match="thyme_paper asks for thyme turns, not pyvision"):
        settings_of("pyvision", prompt="thyme_paper")
    with pytest.raises(
        UserError, match="no prompt 'x'; there are adaptive_paper, codev_paper, figr_paper, pyvision_paper"
    ):
        settings_of("thyme", prompt="x")


def test_a_prompt_is_part_of_a_checkpoints_inputs_only_where_it_is_set():
    assert not {"prompt", "prompt_file"} & settings_of("thyme").record.keys()
    chosen = settings_of("codev", prompt="codev_paper").record["prompt_file"]
    assert (chosen["name"], chosen["source"]) == ("codev_paper", "CodeV, template 13.1")
    assert len(chosen["digest"]) == 64
