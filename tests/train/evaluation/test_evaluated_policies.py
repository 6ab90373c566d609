"""Who is evaluated, and how they see."""

from pathlib import Path

import pytest

from pipelines.vision.visual_tokens import visual_tokens
from train.evaluation.evaluated_policies import open_policy, vision_of
from train.evaluation.settings import EvaluationSettings

OUT = Path("out")


def test_a_checkpoint_sees_as_its_processor_does(model, rows):
    from train.models.loading import load_processor

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


def test_an_oracle_speaks_its_familys_protocol(store):
    evaluated = open_policy(EvaluationSettings(output=OUT, oracle="operation_aware"), store)
    assert (evaluated.protocol, evaluated.policy.identity.policy) == ("tool_call", "oracle")
