import re

import pytest
from typer.testing import CliRunner

from train.masks import inspect_mask
from train.reading import open_reader
from train.tiny import LINE_SPLIT, QWEN_SPLIT, build, dataset_texts

OBSERVATION = re.compile(r"<sandbox_output>.*?</sandbox_output>", re.DOTALL)
PROGRAMS = {"t0": 1, "t1": 1, "t2": 0, "t3": 2, "t4": 0, "t5": 0, "t6": 1, "t7": 1}
"""How many programs of each row are trained: all of them, unless two or more with the policy last_round."""


@pytest.fixture(scope="module", params=[LINE_SPLIT, QWEN_SPLIT], ids=["lines", "qwen"])
def reader(request, tmp_path_factory, dataset):
    """A processor whose tokenizer splits text by lines, or as Qwen2.5 does."""
    from train.models import load_processor

    folder = tmp_path_factory.mktemp("reader") / "tiny"
    build(folder, texts=dataset_texts(dataset), split=request.param)
    return load_processor(folder)


@pytest.fixture(params=["turns", "inline"])
def layout(request):
    return request.param


def trained(row, reader, layout):
    return "".join(s.text for s in inspect_mask(row, processor=reader, layout=layout) if s.trained)


def test_observations_and_their_markers_are_never_trained(rows, reader, layout):
    for row in rows:
        text = trained(row, reader, layout)
        assert "sandbox_output" not in text
        assert "image_pad" not in text


def test_the_loss_policy_decides_how_many_programs_are_trained(rows, reader, layout):
    assert {row["trajectory_id"]: trained(row, reader, layout).count("<code>") for row in rows} == PROGRAMS


def test_the_answer_and_the_end_of_the_turn_are_trained(rows, reader, layout):
    for row in rows:
        assert trained(row, reader, layout).endswith(f"</think>\n<answer>{row['answer']}</answer><|im_end|>")


def test_the_newline_after_an_observation_is_not_trained(rows, reader):
    segments = inspect_mask(rows[0], processor=reader, layout="inline")
    after = next(i for i, s in enumerate(segments) if not s.trained and "</sandbox_output>\n" in s.text and i > 0)
    assert segments[after].text.endswith("</sandbox_output>\n")
    assert segments[after + 1].text.startswith("The sign is red.")


def test_everything_before_the_first_turn_is_one_segment_that_is_not_trained(rows, reader, layout):
    for row in rows:
        first = inspect_mask(row, processor=reader, layout=layout)[0]
        assert not first.trained
        assert "<|im_start|>assistant\n" in first.text


def test_every_image_is_one_run_of_image_tokens(rows, reader, layout):
    for row in rows:
        text = "".join(s.text for s in inspect_mask(row, processor=reader, layout=layout))
        assert text.count("<|image_pad|>×") == len(row["images"])


def test_special_tokens_in_a_question_are_read_as_text(rows, reader, layout):
    text = "".join(s.text for s in inspect_mask(rows[6], processor=reader, layout=layout))
    assert "How wide is <image> <| image_pad|> in pixels?<| im_end|>" in text


def test_the_program_prints_a_row(dataset, tiny):
    import typer

    from train.masks import main

    app = typer.Typer()
    app.command()(main)
    result = CliRunner().invoke(app, [str(dataset), "--model", str(tiny), "--row", "7"])
    assert result.exit_code == 0
    assert "row t7 (all_rounds, layout turns)" in result.output
    assert "<answer>51</answer>" in result.output


def test_the_program_names_the_rows_there_are(dataset, tiny):
    import typer

    from train.masks import main

    app = typer.Typer()
    app.command()(main)
    result = CliRunner().invoke(app, [str(dataset), "--model", str(tiny), "--row", "99"])
    assert result.exit_code == 1
    assert "has rows 0 to 7" in result.output
