import pytest

from train.conformance import check_dataset, check_images, check_tokens
from train.conversations import conversation
from train.faults import TrainFault
from train.reading import Reader
from train.rows import rows_without_pixels
from train.templates import template


def tokens(row, processor, *, layout="turns", max_tokens=8192, template=None):
    reader = Reader(processor, template or TEMPLATE, layout)
    return check_tokens(row, reader=reader, max_tokens=max_tokens)


TEMPLATE = template("sft", "qwen2_5_vl")


@pytest.mark.parametrize("layout", ["turns", "inline"])
def test_every_row_of_a_sound_dataset_conforms(dataset, rows, processor, layout):
    found = check_dataset(
        rows, rows_without_pixels(dataset), reader=Reader(processor, TEMPLATE, layout), max_tokens=8192
    )
    assert found.n_rows == found.n_sampled == len(rows)
    assert 0 < found.n_trained < found.n_tokens


@pytest.mark.parametrize("change", [lambda images: images[:-1], lambda images: [*images, images[0]]])
def test_a_row_with_too_few_or_too_many_images_is_refused_by_its_id(row, change):
    row["images"] = change(row["images"])
    with pytest.raises(TrainFault, match=r"row t2 cannot be trained on: it shows 2 images .* export the dataset again"):
        check_images(row, conversation(row, layout="turns"))


def test_images_out_of_order_are_refused(row):
    rounds = [{**turn, "observation": {**turn["observation"], "images": [0]}} for turn in row["rounds"][-1:]]
    row["rounds"] = rounds
    with pytest.raises(TrainFault, match=r"row t2: its turns show the images \[0, 0\]; the row has 2"):
        check_images(row, conversation(row, layout="turns"))


def test_a_row_longer_than_the_model_reads_is_refused(row, processor):
    with pytest.raises(TrainFault, match=r"row t2 .* tokens, the model reads 50; lower --max-pixels"):
        tokens(row, processor, max_tokens=50)


def test_a_token_that_straddles_the_border_of_an_observation_is_refused(row, processor):
    """What the stock template does with the layout inline: the observation is trained."""
    from trl.chat_template_utils import qwen2_5_vl_training_chat_template

    with pytest.raises(TrainFault, match=r"row t2 .* the loss mask trains '"):
        tokens(row, processor, layout="inline", template=qwen2_5_vl_training_chat_template)


def test_a_template_that_drops_images_is_refused(row, processor):
    broken = TEMPLATE.replace("<|vision_start|><|image_pad|><|vision_end|>", "")
    with pytest.raises(TrainFault, match=r"row t2 cannot be trained on: .*Found total 0 .* tokens and 2 images"):
        tokens(row, processor, template=broken)
