"""Who is evaluated, and how they see."""

from dataclasses import replace
from pathlib import Path

import pytest

from darkroom.pipelines.models.messages import ImagePart
from darkroom.pipelines.records import Sample, Truth
from darkroom.pipelines.records.reject_reasons import RowError
from darkroom.pipelines.vision.visibility import visual_tokens
from darkroom.sandbox.errors import UserError
from darkroom.train.evaluation.questions import Question
from darkroom.train.evaluation.rollouts import open_policy, task_of, vision_of
from darkroom.train.evaluation.settings import EvaluationSettings, check
from darkroom.train.runs import TrainError

OUT = Path("out")


def test_a_checkpoint_sees_as_its_processor_does(model, rows):
    from darkroom.train.models.loading import load_processor

    vision = vision_of(EvaluationSettings(output=OUT, model=str(model)))
    processor = load_processor(model)
    for image in rows[0]["images"]:
        seen = processor.image_processor(images=[image], return_tensors="pt")["image_grid_thw"][0]
        n_tokens = int(seen.prod()) // processor.image_processor.merge_size**2
        assert visual_tokens(*image.size, vision) == n_tokens


@pytest.mark.parametrize(("name", "side"), [("Qwen/Qwen3-VL-8B-Instruct", 32), ("Qwen2.5-VL-7B", 28), ("other", 28)])
def test_an_endpoints_model_sees_as_its_name_says(name, side):
    assert vision_of(EvaluationSettings(output=OUT, url="http://127.0.0.1:1/v1", model=name)).side == side


def test_the_limit_of_pixels_counts(model):
    assert vision_of(EvaluationSettings(output=OUT, model=str(model), max_pixels=4000)).max_pixels == 4000
    assert vision_of(EvaluationSettings(output=OUT, url="http://x/v1", model="m", max_pixels=4000)).max_pixels == 4000


@pytest.mark.parametrize(("wanted", "n_frames"), [({"frames": 4}, 4), ({"frame_rate": 1.0}, 3), ({}, 0)])
def test_sampled_frames_of_a_video_are_in_its_prompt(store, clip, wanted, n_frames):
    """Figure 4 of PyVision-RL: accuracy against visual tokens, which count these frames."""
    film = store.add_video(clip(5))
    sample = Sample("s" * 64, "test", "1", "", (), "What happens?", (), "x", Truth(), "", videos=(film,))
    settings = EvaluationSettings(
        output=OUT, url="http://x/v1", model="m", protocol="pyvision", mode="forbidden", **wanted
    )
    task = task_of(Question("test", sample), 0, open_policy(settings, store))
    shown = [part for part in task.opening[1].parts if isinstance(part, ImagePart)]
    assert (len(task.images), len(shown)) == (n_frames, n_frames)
    assert set(wanted) == {"frames", "frame_rate"} & settings.as_json().keys()


def test_frames_of_a_video_without_a_rate_do_not_apply(store, clip):
    film = replace(store.add_video(clip(5)), fps=0.0)
    sample = Sample("s" * 64, "test", "1", "", (), "What happens?", (), "x", Truth(), "", videos=(film,))
    settings = EvaluationSettings(output=OUT, url="http://x/v1", model="m", protocol="pyvision", frame_rate=1.0)
    with pytest.raises(RowError, match="does not say how many frames"):
        task_of(Question("test", sample), 0, open_policy(settings, store))


@pytest.mark.parametrize("given", [{"model": "m", "frames": 1, "frame_rate": 1.0}, {"oracle": "crop", "frames": 1}])
def test_frames_that_contradict_are_refused(given):
    with pytest.raises(TrainError, match="--frame-rate"):
        check(EvaluationSettings(output=OUT, sources=("demo",), **given))


def test_an_oracle_speaks_its_familys_protocol(store):
    evaluated = open_policy(EvaluationSettings(output=OUT, oracle="operation_aware"), store)
    assert (evaluated.protocol, evaluated.policy.identity.policy) == ("tool_call", "oracle")


def test_a_top_k_reaches_an_endpoint_only_where_it_is_set(store):
    at = EvaluationSettings(output=OUT, url="http://127.0.0.1:1/v1", model="m", temperature=0.5)
    assert "extra_body" not in open_policy(at, store).policy.identity.sampling
    assert "top_k" not in at.as_json()
    chosen = at.model_copy(update={"top_k": 20})
    assert open_policy(chosen, store).policy.identity.sampling["extra_body"] == {"top_k": 20}
    assert chosen.as_json()["top_k"] == 20


def at_an_endpoint(**about):
    return EvaluationSettings(output=OUT, url="http://127.0.0.1:1/v1", model="m", sources=("demo",), **about)


def test_a_prompt_brings_its_protocol_and_is_recorded_where_it_is_set(store):
    chosen = at_an_endpoint(prompt="figr_paper", mode="forbidden")
    check(chosen)
    evaluated = open_policy(chosen, store)
    assert (evaluated.protocol, evaluated.wording.name) == ("tool_call", "figr_paper")
    assert chosen.as_json()["prompt_file"]["source"] == "FIGR, figures 6 (free) and 7 (forbidden)"
    assert not {"prompt", "prompt_file"} & at_an_endpoint().as_json().keys()
    assert open_policy(at_an_endpoint(), store).wording is None


@pytest.mark.parametrize(
    ("about", "says"),
    [
        ({"prompt": "nothing"}, "there is no prompt 'nothing'; there are adaptive_paper, codev_paper, figr_paper"),
        ({"prompt": "thyme_paper", "mode": "forced"}, "no mode 'forced' of prompt thyme_paper; there are free"),
        ({"prompt": "gone.md"}, "gone.md cannot be read"),
    ],
)
def test_a_prompt_that_there_is_not_is_refused_in_a_line(about, says):
    with pytest.raises(UserError, match=says) as error:
        check(at_an_endpoint(**about))
    assert "\n" not in str(error.value)


def test_an_oracle_reads_no_prompt():
    with pytest.raises(TrainError, match="an oracle reads no prompt"):
        check(EvaluationSettings(output=OUT, oracle="crop", sources=("demo",), prompt="thyme_paper"))
