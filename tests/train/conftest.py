"""A small real dataset: every row was written by the pipeline's own export, with images of a store."""

import os
import warnings

# read by the libraries when they are imported
os.environ["HF_HUB_OFFLINE"] = os.environ["TRL_EXPERIMENTAL_SILENCE"] = "1"
os.environ["HF_HUB_DISABLE_PROGRESS_BARS"] = os.environ["HF_DATASETS_DISABLE_PROGRESS_BARS"] = "1"
os.environ["TOKENIZERS_PARALLELISM"] = "false"

import pytest
from PIL import Image, ImageDraw

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)  # typer 0.25 imports names that click 8.4 deprecates
    import typer  # noqa: F401

from darkroom.pipelines.publishing.parquet_shards import write_trajectories
from darkroom.pipelines.records import Check, Observation, Provenance, Round, Sample, Trajectory, Truth, Usage
from darkroom.pipelines.storage.images import ImageStore

COLOURS = {"red": (220, 20, 20), "green": (20, 200, 20), "blue": (20, 20, 220), "white": (250, 250, 250)}
CROP = (
    "from PIL import Image\nimage = Image.open(image_path)\nprocessed_path = 'crop.png'\n"
    "image.crop((56, 28, 112, 84)).save(processed_path)\nprint(processed_path)"
)


def picture(index):
    """A grey street with one coloured sign, always in the same place."""
    name = list(COLOURS)[index % 4]
    image = Image.new("RGB", (140, 112), (90 + 7 * (index % 6),) * 3)
    ImageDraw.Draw(image).rectangle((60, 30, 110, 80), fill=COLOURS[name])
    return image, name


def crop_round(store, image, ref):
    shown = store.add_pixels(image.crop((56, 28, 112, 84)), parent=ref.sha256, made_by="crop")
    thought = "The sign is small, so I crop it."
    return Round(thought, CROP, Observation("ok", "crop.png", (shown,)))


def count_round():
    return Round("I check the size.", "print(image.size)", Observation("ok", "(140, 112)"))


def failed_round():
    return Round("I crop it.", "print(crop)", Observation("error", "", error="NameError: name 'crop' (line 1)"))


def sample(index, images, question, answer, choices=()):
    return Sample(f"s{index}", "signs", str(index), "CC0-1.0", images, question, choices, answer, Truth(), "attribute")


def trajectory(index, images, rounds, answer, *, thought, loss_policy):
    return Trajectory(
        trajectory_id=f"t{index}",
        sample_id=f"s{index}",
        family="crop",
        protocol="thyme",
        images=images,
        rounds=rounds,
        final_thought=thought,
        answer=answer,
        loss_policy=loss_policy,
        checks=(Check("answer", True),),
        usage=Usage(),
        provenance=Provenance("oracle", "oracle", "1", "{}", "p", "s", index, "c"),
    )


def sign(store, index, *, n_rounds=1, loss_policy="all_rounds"):
    """A row about the colour of a sign, with the crop as its last round."""
    image, colour = picture(index)
    ref = store.add_pixels(image)
    earlier = [failed_round(), count_round()][-(n_rounds - 1) :] if n_rounds > 1 else []
    rounds = (*earlier, crop_round(store, image, ref)) if n_rounds else ()
    return (
        sample(index, (ref,), "What is the colour of the sign?", colour),
        trajectory(index, (ref,), rounds, colour, thought=f"The sign is {colour}.", loss_policy=loss_policy),
    )


def text_round(store, index):
    """A row whose observation is printed text, with a question that holds what could break a renderer."""
    image, _ = picture(index)
    ref = store.add_pixels(image)
    question = "How wide is <image> or <image> <|image_pad|> in pixels?<|im_end|>"
    return (
        sample(index, (ref,), question, "A", ("A. 140", "B. 112")),
        trajectory(index, (ref,), (count_round(),), "A", thought="It is 140 wide.", loss_policy="last_round"),
    )


def sum_without_image(index):
    rounds = (Round("I compute.", "print(17 * 3)", Observation("ok", "51")),)
    return (
        sample(index, (), "What is 17 * 3?", "51"),
        trajectory(index, (), rounds, "51", thought="It is 51.", loss_policy="all_rounds"),
    )


def mixed_pairs(store):
    """Eight rows: one and two rounds, both loss policies, printed text, no code, no image."""
    return [
        sign(store, 0),
        sign(store, 1, loss_policy="last_round"),
        sign(store, 2, n_rounds=2, loss_policy="last_round"),
        sign(store, 3, n_rounds=2),
        sign(store, 4, n_rounds=3, loss_policy="last_round"),
        sign(store, 5, n_rounds=0),
        text_round(store, 6),
        sum_without_image(7),
    ]


@pytest.fixture(scope="session")
def store(tmp_path_factory):
    return ImageStore(str(tmp_path_factory.mktemp("store")))


@pytest.fixture(scope="session")
def dataset(tmp_path_factory, store):
    folder = tmp_path_factory.mktemp("dataset") / "mixed"
    write_trajectories(folder, mixed_pairs(store), store=store)
    return folder


@pytest.fixture(scope="session")
def signs(tmp_path_factory, store):
    """Twenty-four very regular rows: crop the sign, say its colour."""
    folder = tmp_path_factory.mktemp("dataset") / "signs"
    write_trajectories(folder, [sign(store, index) for index in range(24)], store=store)
    return folder


@pytest.fixture(scope="session")
def tinies(tmp_path_factory, dataset):
    """A tiny model of each type, by type."""
    from darkroom.train.tiny import ARCHITECTURES, build, dataset_texts

    folder = tmp_path_factory.mktemp("models")
    for arch in ARCHITECTURES:
        build(folder / arch, texts=dataset_texts(dataset), arch=arch)
    return {arch: folder / arch for arch in ARCHITECTURES}


@pytest.fixture(scope="session")
def tiny(tinies):
    return tinies["qwen2_5_vl"]


@pytest.fixture(scope="session", params=["qwen2_5_vl", "qwen3_vl"])
def model(request, tinies):
    """A tiny model of each type, one after the other."""
    return tinies[request.param]


@pytest.fixture(scope="session")
def tiny_signs(tmp_path_factory, signs):
    """A model whose tokenizer knows the regular rows by heart."""
    from darkroom.train.tiny import build, dataset_texts

    folder = tmp_path_factory.mktemp("models") / "tiny_signs"
    build(folder, texts=dataset_texts(signs))
    return folder


@pytest.fixture(scope="session")
def processor(tiny):
    from darkroom.train.models.loading import load_processor

    return load_processor(tiny)


@pytest.fixture(scope="session")
def rows(dataset):
    from darkroom.train.examples.datasets import open_dataset

    return open_dataset(dataset)


@pytest.fixture
def row(rows):
    """One row as a plain dict that a test may damage."""
    return dict(rows[2])
