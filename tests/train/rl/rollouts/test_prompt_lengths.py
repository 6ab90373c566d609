import pytest

from darkroom.train.models.loading import load_processor, model_type, template
from darkroom.train.rl.rollouts.prompts import (
    check_lengths,
    check_pixels,
    open_prompts,
    prompt,
    prompt_length,
)
from darkroom.train.runs import TrainError


def read_with(model, **size):
    processor = load_processor(model, **size)
    processor.chat_template = template("grpo", model_type(model))
    return processor


@pytest.mark.parametrize("wording", [None, "thyme_paper"])
def test_a_prompt_is_as_long_as_the_processor_makes_it(dataset, model, wording):
    processor = read_with(model)
    for row in open_prompts(dataset):
        asked = prompt(row, protocol="thyme", wording=wording)
        text = processor.apply_chat_template(asked["prompt"], add_generation_prompt=True, tokenize=False)
        read = processor(text=[text], images=asked["images"] or None)["input_ids"][0]
        assert prompt_length(asked["asked"], processor, "thyme", wording=wording) == len(read)


def test_prompts_that_leave_no_room_are_counted_with_the_way_out(dataset, tiny):
    processor = read_with(tiny)
    longest = max(
        prompt_length(prompt(row, protocol="thyme")["asked"], processor, "thyme") for row in open_prompts(dataset)
    )
    given = {"protocol": "thyme", "modes": ["free"], "max_tokens": 100}
    check_lengths(dataset, processor, **given, context=longest + 100)
    words = rf"[1-7] of 8 prompts .* the longest prompt has {longest}: .* set --max-tokens 99 or less"
    with pytest.raises(TrainError, match=words):
        check_lengths(dataset, processor, **given, context=longest + 99)
    with pytest.raises(TrainError, match="lower --max-pixels, or leave these rows out"):
        check_lengths(dataset, processor, **given, context=20)


def test_the_check_asks_in_the_words_that_are_trained(dataset, tiny):
    processor = read_with(tiny)
    questions = [prompt(row, protocol="thyme")["asked"] for row in open_prompts(dataset)]
    longest = max(prompt_length(one, processor, "thyme", wording="thyme_paper") for one in questions)
    with pytest.raises(TrainError, match=f"the longest prompt has {longest}:"):
        check_lengths(
            dataset, processor, protocol="thyme", modes=["free"], max_tokens=9, context=20, wording="thyme_paper"
        )


def test_a_checkpoint_hands_its_limit_of_pixels_on(tiny, tmp_path):
    """SFT of 2 million pixels, then GRPO without a limit of its own."""
    load_processor(tiny, max_pixels=4 * 784).save_pretrained(tmp_path)
    assert load_processor(tmp_path).image_processor.size["longest_edge"] == 4 * 784
    assert load_processor(tmp_path, max_pixels=9 * 784).image_processor.size["longest_edge"] == 4 * 784


def test_vllm_must_read_images_as_the_trainer_does(tiny, tmp_path):
    load_processor(tiny, max_pixels=4 * 784).save_pretrained(tmp_path)
    check_pixels(tmp_path, load_processor(tmp_path, max_pixels=9 * 784), "vllm_server")
    check_pixels(tmp_path, load_processor(tmp_path, max_pixels=784), "transformers")
    with pytest.raises(TrainError, match=f"--max-pixels {4 * 784}"):
        check_pixels(tmp_path, load_processor(tmp_path, max_pixels=784), "vllm_colocate")
