from train.checkpoints import folder_digest
from train.models import VISION_TOKENS, load_model, load_processor, suppressed_tokens
from train.tiny import build


def test_the_same_seed_gives_the_same_bytes(tmp_path):
    for name in ("a", "b"):
        build(tmp_path / name, seed=3)
    build(tmp_path / "c", seed=4)
    assert folder_digest(tmp_path / "a") == folder_digest(tmp_path / "b") != folder_digest(tmp_path / "c")


def test_a_complete_checkpoint_is_not_built_again(tmp_path):
    assert build(tmp_path / "a")
    assert not build(tmp_path / "a")
    assert build(tmp_path / "a", texts=["other words"])
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


def test_the_model_has_a_quarter_of_a_million_weights_and_trains_in_float32(tiny):
    import torch

    model = load_model(tiny)
    assert 100_000 < model.num_parameters() < 500_000
    assert model.dtype == torch.float32


def test_no_vision_token_may_be_sampled(processor):
    assert processor.tokenizer.convert_ids_to_tokens(suppressed_tokens(processor)) == list(VISION_TOKENS)


def test_images_are_scaled_down_to_max_pixels(tiny):
    from PIL import Image

    small = load_processor(tiny, max_pixels=4 * 28 * 28)
    grid = small.image_processor(images=[Image.new("RGB", (400, 400))], return_tensors="pt")["image_grid_thw"]
    assert grid.prod() * 14 * 14 <= 4 * 28 * 28


def test_other_programs_load_the_processor_by_path(tiny):
    from transformers import AutoProcessor

    processor = AutoProcessor.from_pretrained(tiny, trust_remote_code=True)
    assert type(processor).__name__ == "ImageOnlyProcessor"
