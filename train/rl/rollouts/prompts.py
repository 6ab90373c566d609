"""The prompts of GRPO, from either of the datasets that Darkroom ships (``pipelines/publishing/features.py``), and
their checks before the first step. Of an ``sft`` dataset each sample's question is used once, without trajectory."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any, cast

from datasets import Dataset, Features, Image, List, load_dataset

from darkroom.pipelines.models.protocols import PROTOCOLS
from darkroom.pipelines.models.tasks import question_text
from darkroom.pipelines.publishing.dataset_reader import kind_of, n_rows_of, read_files
from darkroom.pipelines.publishing.features import check_columns, features_of
from darkroom.pipelines.publishing.layouts.trl import messages_of
from darkroom.pipelines.publishing.layouts.turns import Row, Turn, Unrenderable, record_of
from darkroom.pipelines.records import Grader, ImageRef, VideoRef
from darkroom.pipelines.records.reject_reasons import RowError
from darkroom.pipelines.records.rl import shipped_grader
from darkroom.pipelines.rl.candidates import asks_visual_search
from darkroom.pipelines.verification.grading import grader_of
from darkroom.train.examples.datasets import Part, dataset_files, presented
from darkroom.train.examples.encoding import sample_of
from darkroom.train.models.loading import load_processor
from darkroom.train.rl.methods.base import GradedQuestion
from darkroom.train.runs import TrainError
from darkroom.train.runs.options import chosen_wording

_STORED = Image(decode=False)
"""An image as the bytes of its file: the sandbox is given them as they are."""
_DECODED = Image()


def open_prompts(folder: Path, part: Part = "train") -> Dataset:
    """Open the rows of a part of a dataset folder, one per sample, their images as stored bytes. Raises
    ``DatasetError`` for wrong columns, ``TrainError`` for no rows."""
    files = dataset_files(folder, part=part)
    kinds = {kind_of(file): file for file in files}
    if len(kinds) > 1:
        raise TrainError(f"{folder} mixes rl and sft rows: {' and '.join(map(str, kinds.values()))}; split them")
    (kind,) = kinds
    for file in files:
        check_columns(file, kind)
    if not n_rows_of(files):
        raise TrainError(f"{folder} has no rows: look at the rejects of the stages that made it")
    features = Features({**features_of(kind), "images": List(_STORED)})
    rows = load_dataset("parquet", data_files={"train": list(map(str, files))}, split="train", features=features)
    first = {sample: index for index, sample in reversed(list(enumerate(rows["sample_id"])))}
    return rows.select(sorted(first.values()))


def prompts(rows: Dataset, *, protocol: str, wording: str | None = None) -> Dataset:
    """``rows`` as TRL's prompts, in the words of a protocol or of ``wording``; an sft row keeps its own protocol."""
    return presented(rows, lambda row: prompt(row, protocol=row.get("protocol") or protocol, wording=wording))


def prompt(row: Row, *, protocol: str, mode: str = "free", wording: str | None = None) -> dict[str, Any]:
    """One row of ``open_prompts`` as a prompt. ``images`` are what the model sees; ``image_files`` and ``videos`` are
    the bytes that the sandbox opens (no prompt shows a video)."""
    question = question_of(row)
    stored = list(row["images"] or [])[: len(question.sample.images)]
    printed = chosen_wording(wording)
    return {
        "prompt": opening(question, protocol=protocol, mode=mode, wording=wording),
        "images": [_DECODED.decode_example(image) for image in stored],
        "image_files": [image["bytes"] for image in stored],
        "videos": [video["bytes"] for video in row.get("videos") or ()],
        "sample_id": row["sample_id"],
        "protocol": protocol,
        "wording": wording,
        "image_names": printed.image_names(question_text(question.sample), question.sample.images) if printed else (),
        "mode": mode,
        "asked": question,
    }


def question_of(row: Row) -> GradedQuestion:
    """The question of a row. Raises ``TrainError`` with the row's id when it contradicts itself."""
    n_images = row.get("n_question_images", len(row["image_refs"]))
    try:
        images = tuple(record_of(ImageRef, ref) for ref in row["image_refs"][:n_images])
        sample = sample_of(row, images, tuple(record_of(VideoRef, ref) for ref in row.get("video_refs") or ()))
        grader = record_of(Grader, shipped_grader(row)) if row.get("grader") else grader_of(sample)
    except (Unrenderable, RowError) as error:
        raise TrainError(f"row {row['sample_id']}: {error.evidence}; export the dataset again") from error
    stated = row.get("visual_search")
    is_search = asks_visual_search(sample) if stated is None else stated
    return GradedQuestion(sample, grader, row.get("suitable"), row.get("necessity_prior"), is_search)


def opening(
    question: GradedQuestion, *, protocol: str, mode: str = "free", wording: str | None = None
) -> list[dict[str, Any]]:
    """The conversation before the model's first turn, in TRL's form. Raises ``TrainError``."""
    sample = question.sample
    text = question_text(sample)
    try:
        words = chosen_wording(wording, protocol=protocol) or PROTOCOLS[protocol]
        messages = words.opening(text, sample.images, sample.videos, mode=mode)
    except (RowError, ValueError) as error:
        raise TrainError(f"row {sample.sample_id} cannot be asked in {protocol}: {error}") from error
    return messages_of(Turn(message.role, message.parts) for message in messages)


def check_prompts(
    folder: Path, *, protocol: str, modes: Iterable[str] = ("free",), wording: str | None = None, part: Part = "train"
) -> None:
    """Render every row in every mode. Raises ``TrainError`` for the first that cannot be."""
    for row in read_files(dataset_files(folder, part=part), without=("images", "videos")):
        question = question_of(row)
        for mode in modes:
            opening(question, protocol=row.get("protocol") or protocol, mode=mode, wording=wording)


def check_lengths(
    folder: Path,
    processor: Any,
    *,
    protocol: str,
    modes: Iterable[str],
    max_tokens: int,
    context: int,
    wording: str | None = None,
    part: Part = "train",
) -> None:
    """Measure every question of a dataset in every mode, from texts and sizes of images; no pixel is computed. Raises
    ``TrainError``, a rollout of ``max_tokens`` included."""
    lengths: dict[str, int] = {}
    all_modes = list(modes)
    for row in read_files(dataset_files(folder, part=part), without=("images", "videos")):
        if row["sample_id"] not in lengths:
            question, own = question_of(row), row.get("protocol") or protocol
            of_modes = (prompt_length(question, processor, own, mode, wording=wording) for mode in all_modes)
            lengths[row["sample_id"]] = max(of_modes)
    long = [length for length in lengths.values() if length + max_tokens > context]
    if long:
        room = context - max(long)
        mend = f", or set --max-tokens {room} or less" if room > 0 else ", or leave these rows out"
        problem = f"{len(long)} of {len(lengths)} prompts and --max-tokens {max_tokens} exceed the model's context"
        longest = f"the longest prompt has {max(long)}"
        raise TrainError(f"{problem} of {context} tokens; {longest}: lower --max-pixels{mend}")


def check_pixels(model: Path, processor: Any, engine: str) -> None:
    """Raise ``TrainError`` where the ``engine`` is vLLM, which has the checkpoint's own processor, and ``processor``
    reads images in another size: rollouts would be sampled from one image and trained on another."""
    own = load_processor(model).image_processor.size
    if engine != "transformers" and processor.image_processor.size != own:
        limits = f"--min-pixels {own['shortest_edge']} and --max-pixels {own['longest_edge']}"
        mend = f"give {limits}, or others to the SFT that makes the checkpoint"
        raise TrainError(f"--engine {engine} reads images by the checkpoint's own limits: {mend}")


def prompt_length(
    question: GradedQuestion, processor: Any, protocol: str, mode: str = "free", *, wording: str | None = None
) -> int:
    messages = opening(question, protocol=protocol, mode=mode, wording=wording)
    text = processor.apply_chat_template(messages, add_generation_prompt=True, tokenize=False)
    images = processor.image_processor
    n_patches = (
        images.get_number_of_image_patches(image.height, image.width) // images.merge_size**2
        for image in question.sample.images
    )
    return cast(int, len(processor.tokenizer(text)["input_ids"]) + sum(n - 1 for n in n_patches))
