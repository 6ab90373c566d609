import json

import pytest

from darkroom.train.models.loading import VISION_TOKENS, load_model, load_processor, model_type, suppressed_tokens
from darkroom.train.runs.checkpoints import folder_digest
from darkroom.train.tiny import ARCHITECTURES, build


@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_the_same_seed_gives_the_same_bytes(tmp_path, arch):
    for name in ("a", "b"):
        build(tmp_path / name, seed=3, arch=arch)
    build(tmp_path / "c", seed=4, arch=arch)
    assert folder_digest(tmp_path / "a") == folder_digest(tmp_path / "b") != folder_digest(tmp_path / "c")


def test_a_complete_checkpoint_is_not_built_again(tmp_path):
    assert build(tmp_path / "a")
    assert not build(tmp_path / "a")
    assert build(tmp_path / "a", texts=["other words"])
    assert build(tmp_path / "a", texts=["other words"], arch="qwen3_vl")
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


def test_the_model_has_a_quarter_of_a_million_weights_and_trains_in_float32(model):
    import torch

    loaded = load_model(model)
    assert 100_000 < loaded.num_parameters() < 500_000
    assert loaded.dtype == torch.float32
    assert model_type(model) == loaded.config.model_type == model.name


def test_no_vision_token_may_be_sampled(processor):
    assert processor.tokenizer.convert_ids_to_tokens(suppressed_tokens(processor)) == list(VISION_TOKENS)


def grid(processor, side):
    from PIL import Image

    found = processor.image_processor(images=[Image.new("RGB", (side, side))], return_tensors="pt")["image_grid_thw"]
    return int(found.prod()) * processor.image_processor.patch_size**2


def test_images_are_scaled_to_between_min_pixels_and_max_pixels(model):
    unit = (2 * ARCHITECTURES[model.name]["patch"]) ** 2
    assert grid(load_processor(model, max_pixels=4 * unit), 400) == 4 * unit
    assert grid(load_processor(model, min_pixels=9 * unit), 20) == 9 * unit


def test_other_programs_load_the_processor_by_path(model):
    from transformers import AutoProcessor

    processor = AutoProcessor.from_pretrained(model, trust_remote_code=True)
    assert type(processor).__name__ == "ImageOnlyProcessor"


# as the repositories of the real models have it
HUB = {
    "qwen2_5_vl": {
        "image_processor_type": "Qwen2VLImageProcessor",
        "min_pixels": 3136,
        "max_pixels": 12845056,
        "patch_size": 14,
    },
    "qwen3_vl": {
        "image_processor_type": "Qwen2VLImageProcessorFast",
        "size": {"longest_edge": 16777216, "shortest_edge": 65536},
        "patch_size": 16,
    },
}


def test_the_processor_of_a_model_from_the_hub_is_read_without_its_videos(model, tmp_path):
    for name in ("config.json", "tokenizer.json", "tokenizer_config.json"):
        (tmp_path / name).write_bytes((model / name).read_bytes())
    common = {"merge_size": 2, "temporal_patch_size": 2, "image_mean": [0.5] * 3, "image_std": [0.5] * 3}
    (tmp_path / "preprocessor_config.json").write_text(json.dumps(common | HUB[model.name]))
    processor = load_processor(tmp_path)
    assert grid(processor, 280) == (280**2 if model.name == "qwen2_5_vl" else 288**2)
    assert load_processor(tmp_path, max_pixels=2_000_000).image_processor.size["longest_edge"] == 2_000_000
