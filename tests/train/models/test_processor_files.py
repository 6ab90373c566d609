"""What a checkpoint says of images and videos to programs that read it with the stock processor."""

import json

import pytest
from transformers import AutoConfig

from darkroom.train.models.loading import STOCK, load_processor, save_processor

VIDEOS = {"size": {"shortest_edge": 4096, "longest_edge": 25165824}, "fps": 3, "video_processor_type": "Old"}


def read(folder, name):
    return json.loads((folder / f"{name}.json").read_text())


def test_a_checkpoint_names_the_stock_classes_in_the_files_of_both_versions_of_transformers(model):
    kind, video_kind = STOCK[model.name]
    whole = read(model, "processor_config")
    assert whole["processor_class"] == kind
    assert whole["video_processor"]["video_processor_type"] == video_kind
    assert whole["video_processor"]["patch_size"] == whole["image_processor"]["patch_size"]
    assert "auto_map" not in whole["image_processor"]
    assert read(model, "preprocessor_config") == {**whole["image_processor"], "processor_class": kind}
    assert read(model, "video_preprocessor_config") == {**whole["video_processor"], "processor_class": kind}


@pytest.mark.parametrize("file", ["video_preprocessor_config", "processor_config", "preprocessor_config"])
def test_the_settings_of_videos_are_the_first_models(tiny, tmp_path, file):
    base, first, second = (tmp_path / name for name in ("base", "first", "second"))
    base.mkdir()
    (base / f"{file}.json").write_text(
        json.dumps({"video_processor": VIDEOS} if file == "processor_config" else VIDEOS)
    )
    processor = load_processor(tiny, max_pixels=784)
    save_processor(processor, first, model_type="qwen2_5_vl", base=base)
    save_processor(load_processor(first), second, model_type="qwen2_5_vl", base=first)
    for folder in (first, second):
        videos = read(folder, "video_preprocessor_config")
        assert (videos["fps"], videos["size"]) == (3, VIDEOS["size"])
        assert videos["video_processor_type"] == "Qwen2VLVideoProcessor"
        assert read(folder, "preprocessor_config")["size"]["longest_edge"] == 784


def test_the_heads_of_a_tiny_model_are_of_a_size_that_vllm_has_a_kernel_for(model):
    text = AutoConfig.from_pretrained(model).get_text_config()
    assert (getattr(text, "head_dim", None) or text.hidden_size // text.num_attention_heads) == 32
    assert 2 * sum(text.rope_parameters["mrope_section"]) == 32
