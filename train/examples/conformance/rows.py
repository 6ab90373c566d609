"""Checks of rows, by the tokens and labels that a reader gives them.

Before the tokens: the row renders, its images are the ones that it describes, each is shown once and in order. In the
tokens: one run of image tokens per image, of the length that its size asks for; trained are exactly the model's own
words with the ends of its turns, from the round on that the loss policy says, which leaves no observation and no border
token; the row ends where its conversation ends, and the model reads it whole.

The model's own words are those of the turns of the row (``pipelines/publishing/layouts/turns.py``), not of the loss
flags of the messages, which are checked with them.
"""

import hashlib
import io
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby, takewhile
from typing import Any, NamedTuple

from PIL import Image, UnidentifiedImageError

from darkroom.pipelines.models.messages import Text
from darkroom.pipelines.publishing.layouts import turns as rendering
from darkroom.pipelines.publishing.layouts.turns import Row, Unfit, Unrenderable
from darkroom.train.examples.conformance.report import Misfit, RowMisfit, RowVerdict
from darkroom.train.examples.encoding import IGNORED, RowReader


class IndexedRow(NamedTuple):
    """A row and its place among all."""

    place: int
    row: Row


class Tokens(NamedTuple):
    """A row as it is read."""

    ids: list[int]
    labels: list[int]


def judge(rows: Sequence[IndexedRow], reader: RowReader, *, max_tokens: int) -> list[RowVerdict]:
    """Judge every row. ``reader`` may be one of sizes only; images are ``{"bytes": …}`` or images."""
    verdicts: list[RowVerdict] = []
    opened: list[IndexedRow] = []
    for place, row in rows:
        try:
            opened.append(IndexedRow(place, _opened(row)))
        except RowMisfit as misfit:
            verdicts.append(RowVerdict(place, row["trajectory_id"], row["family"]).refused(misfit))
    verdicts += [_verdict(entry, tokens, reader, max_tokens) for entry, tokens in _read(opened, reader)]
    return sorted(verdicts, key=lambda verdict: verdict.row)


def trained_texts(row: Row, reader: RowReader) -> Iterator[str]:
    """Texts of a row that must be trained, run by run: the model's turns with their ends, as its loss policy says."""
    answers = [turn for turn in rendering.turns(reader.ablated(row)) if turn.role == "assistant"]
    for turn in answers:
        if turn.trained:
            end = "\n" if reader.layout == "inline" and turn is not answers[-1] else "<|im_end|>"
            yield "".join(part.text for part in turn.parts if isinstance(part, Text)) + end


def _opened(row: Row) -> dict[str, Any]:
    """The row with its images opened, of which nothing but the head is decoded. Raises ``RowMisfit``."""
    images = [_image(n, image) for n, image in enumerate(row["images"] or [])]
    try:
        rendering.turns(row)
    except Unrenderable as error:
        differ = error.reason == Unfit.IMAGES_DIFFER
        raise RowMisfit(Misfit.IMAGES_DIFFER if differ else Misfit.UNRENDERABLE, error.evidence) from error
    _check_described(row, images)
    return {**row, "images": images}


def _image(number: int, image: Any) -> Any:
    """The image of stored bytes, decoded lazily; an opened image as it is."""
    if not isinstance(image, Mapping):
        return image
    try:
        return Image.open(io.BytesIO(image["bytes"] or b""))
    except (UnidentifiedImageError, OSError) as error:
        raise RowMisfit(Misfit.IMAGE_DAMAGED, f"image {number} is no image: {error}") from error


def _check_described(row: Row, images: Sequence[Any]) -> None:
    refs = row["image_refs"]
    if len(images) != len(refs):
        raise RowMisfit(Misfit.IMAGES_DIFFER, f"it holds {len(images)} images and shows {len(refs)}")
    for number, (stored, image, ref) in enumerate(zip(row["images"] or [], images, refs, strict=True)):
        if isinstance(stored, Mapping) and hashlib.sha256(stored["bytes"]).hexdigest() != ref["sha256"]:
            raise RowMisfit(Misfit.IMAGE_DAMAGED, f"image {number} has other bytes than it is described with (sha256)")
        if (image.width, image.height) != (ref["width"], ref["height"]):
            pixels, described = f"{image.width}x{image.height}", f"{ref['width']}x{ref['height']}"
            evidence = f"image {number} has {pixels} pixels, it is described with {described}"
            raise RowMisfit(Misfit.IMAGES_DIFFER, evidence)


def _read(rows: Sequence[IndexedRow], reader: RowReader) -> Iterator[tuple[IndexedRow, Tokens | RowMisfit]]:
    """Every row with its tokens: all in one batch, or one by one where the batch as a whole cannot be read."""
    try:
        batch = reader.read([row for _, row in rows]) if rows else {}
    except ValueError as error:
        if len(rows) > 1:
            for entry in rows:
                yield from _read([entry], reader)
        else:
            yield rows[0], RowMisfit(Misfit.IMAGE_TOKENS_DIFFER, str(error))
        return
    for number, entry in enumerate(rows):
        is_token = batch["attention_mask"][number].bool()
        yield entry, Tokens(*(batch[name][number][is_token].tolist() for name in ("input_ids", "labels")))


def _verdict(entry: IndexedRow, tokens: Tokens | RowMisfit, reader: RowReader, max_tokens: int) -> RowVerdict:
    place, row = entry
    about = (place, row["trajectory_id"], row["family"])
    if isinstance(tokens, RowMisfit):
        return RowVerdict(*about).refused(tokens)
    verdict = RowVerdict(
        *about,
        n_tokens=len(tokens.ids),
        n_trained=sum(label != IGNORED for label in tokens.labels),
        n_images=len(row["images"]),
        n_image_tokens=tokens.ids.count(reader.processor.image_token_id),
    )
    try:
        _check_image_tokens(row, tokens, reader)
        _check_trained(row, tokens, reader)
        _check_end(tokens, reader, max_tokens)
    except RowMisfit as misfit:
        return verdict.refused(misfit)
    return verdict


def _check_image_tokens(row: Row, tokens: Tokens, reader: RowReader) -> None:
    """One run of image tokens per image, in order, of the length that the image's size asks for."""
    images, token = reader.processor.image_processor, reader.processor.image_token_id
    n_patches = images.get_number_of_image_patches
    needed = [n_patches(image.height, image.width) // images.merge_size**2 for image in row["images"]]
    run_lengths = [len(list(run)) for is_image, run in groupby(tokens.ids, key=token.__eq__) if is_image]
    if run_lengths != needed:
        evidence = f"it renders runs of {run_lengths} image tokens, its {len(needed)} images need {needed}"
        raise RowMisfit(Misfit.IMAGE_TOKENS_DIFFER, evidence)


def _check_trained(row: Row, tokens: Tokens, reader: RowReader) -> None:
    decode = reader.processor.tokenizer.decode
    pairs = zip(tokens.ids, tokens.labels, strict=True)
    runs = [[token for token, _ in run] for on, run in groupby(pairs, key=lambda pair: pair[1] != IGNORED) if on]
    if not runs:
        raise RowMisfit(Misfit.NOTHING_TRAINED, "none of its tokens is trained")
    if reader.train_observations:
        return
    trained = [unicodedata.normalize("NFC", decode(run)) for run in runs]
    expected = [unicodedata.normalize("NFC", text) for text in trained_texts(row, reader)]
    if trained == expected:
        return
    read, written = "".join(trained), "".join(expected)
    start = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(read, written, strict=False)))
    found, wrote = read[start : start + 40], written[start : start + 40]
    if len(read) < len(written):
        raise RowMisfit(Misfit.OWN_WORDS_UNTRAINED, f"the loss mask leaves out {wrote!r}")
    raise RowMisfit(Misfit.OBSERVATION_TRAINED, f"the loss mask trains {found!r} where the model wrote {wrote!r}")


def _check_end(tokens: Tokens, reader: RowReader, max_tokens: int) -> None:
    if len(tokens.ids) > max_tokens:
        raise RowMisfit(Misfit.TRUNCATED, f"it has {len(tokens.ids)} tokens, {max_tokens} are read")
    end = reader.processor.tokenizer.decode(tokens.ids[-8:])
    if not end.endswith("<|im_end|>\n"):
        raise RowMisfit(Misfit.TRUNCATED, f"it breaks off with {end!r}")
