"""Judges rows by what a reader makes of them.

Before the tokens: the row renders, its images are the ones that it describes, each is shown once and in order. In the
tokens: one run of image tokens per image, of the length that its size asks for; trained are exactly the model's own
words with the ends of its turns, from the round on that the loss policy says, which leaves no observation and no border
token; the row ends where its conversation ends, and the model reads it whole.

What the model's own words are is taken from the turns of the row (``pipelines/layouts/turns.py``), not from the loss
flags of the messages, which are checked with it.
"""

from __future__ import annotations

import hashlib
import io
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any, NamedTuple

from PIL import Image, UnidentifiedImageError

from pipelines.layouts import turns as rendering
from pipelines.layouts.faults import Unfit, Unrenderable
from pipelines.layouts.turns import Row
from pipelines.messages import Text
from train.collating import IGNORED
from train.conformance.verdicts import Counts, Misfit, RowMisfit, Verdict, refused
from train.reading import Reader


class Indexed(NamedTuple):
    """A row and its place among all."""

    place: int
    row: Row


class Tokens(NamedTuple):
    """A row as it is read."""

    ids: list[int]
    labels: list[int]


def judge(rows: Sequence[Indexed], reader: Reader, *, max_tokens: int) -> list[Verdict]:
    """A verdict on every row. ``reader`` may be one of sizes only; images are ``{"bytes": …}`` or pictures."""
    verdicts: list[Verdict] = []
    opened: list[Indexed] = []
    for place, row in rows:
        try:
            opened.append(Indexed(place, _opened(row)))
        except RowMisfit as misfit:
            verdicts.append(refused(place, row, misfit))
    verdicts += [_verdict(found, tokens, reader, max_tokens) for found, tokens in _read(opened, reader)]
    return sorted(verdicts, key=lambda verdict: verdict.row)


def own_words(row: Row, reader: Reader) -> Iterator[str]:
    """What has to be trained of a row, run by run: the model's turns with their ends, as its loss policy says."""
    said = [turn for turn in rendering.turns(row) if turn.role == "assistant"]
    for turn in said:
        text = "".join(part.text for part in turn.parts if isinstance(part, Text))
        inside = reader.layout == "inline" and turn is not said[-1]
        if turn.trained:
            yield text + ("\n" if inside else "<|im_end|>")


def _opened(row: Row) -> dict[str, Any]:
    """The row with its images opened, of which nothing but the head is decoded. Raises ``RowMisfit``."""
    images = [_image(n, image) for n, image in enumerate(row["images"] or [])]
    try:
        rendering.turns(row)
    except Unrenderable as fault:
        differ = fault.reason == Unfit.IMAGES_DIFFER
        raise RowMisfit(Misfit.IMAGES_DIFFER if differ else Misfit.UNRENDERABLE, fault.evidence) from fault
    _check_described(row, images)
    return {**row, "images": images}


def _image(number: int, image: Any) -> Any:
    """A picture as it is; of stored bytes their picture, whose pixels are read when somebody wants them."""
    if not isinstance(image, Mapping):
        return image
    try:
        return Image.open(io.BytesIO(image["bytes"] or b""))
    except (UnidentifiedImageError, OSError) as fault:
        raise RowMisfit(Misfit.IMAGE_DAMAGED, f"image {number} is no picture: {fault}") from fault


def _check_described(row: Row, images: Sequence[Any]) -> None:
    refs = row["image_refs"]
    if len(images) != len(refs):
        raise RowMisfit(Misfit.IMAGES_DIFFER, f"it holds {len(images)} images and shows {len(refs)}")
    for number, (stored, image, ref) in enumerate(zip(row["images"] or [], images, refs, strict=True)):
        if isinstance(stored, Mapping) and hashlib.sha256(stored["bytes"]).hexdigest() != ref["sha256"]:
            raise RowMisfit(Misfit.IMAGE_DAMAGED, f"image {number} has other bytes than it is described with (sha256)")
        if (image.width, image.height) != (ref["width"], ref["height"]):
            raise RowMisfit(
                Misfit.IMAGES_DIFFER,
                f"image {number} has {image.width}x{image.height} pixels, it is described with "
                f"{ref['width']}x{ref['height']}",
            )


def _read(rows: Sequence[Indexed], reader: Reader) -> Iterator[tuple[Indexed, Tokens | RowMisfit]]:
    """Every row with its tokens: all in one batch, or one by one where the batch as a whole cannot be read."""
    try:
        batch = reader.read([row for _, row in rows]) if rows else {}
    except ValueError as fault:
        if len(rows) > 1:
            for found in rows:
                yield from _read([found], reader)
        else:
            yield rows[0], RowMisfit(Misfit.IMAGE_TOKENS_DIFFER, str(fault))
        return
    for number, found in enumerate(rows):
        kept = batch["attention_mask"][number].bool()
        yield found, Tokens(*(batch[name][number][kept].tolist() for name in ("input_ids", "labels")))


def _verdict(found: Indexed, tokens: Tokens | RowMisfit, reader: Reader, max_tokens: int) -> Verdict:
    place, row = found
    if isinstance(tokens, RowMisfit):
        return refused(place, row, tokens)
    counts = _counts(row, tokens, reader)
    try:
        _check_image_tokens(row, tokens, reader)
        _check_trained(row, tokens, reader)
        _check_end(tokens, reader, max_tokens)
    except RowMisfit as misfit:
        return refused(place, row, misfit, counts)
    return Verdict(place, row["trajectory_id"], row["family"], counts)


def _counts(row: Row, tokens: Tokens, reader: Reader) -> Counts:
    return Counts(
        n_tokens=len(tokens.ids),
        n_trained=sum(label != IGNORED for label in tokens.labels),
        n_images=len(row["images"]),
        n_image_tokens=tokens.ids.count(reader.processor.image_token_id),
    )


def _check_image_tokens(row: Row, tokens: Tokens, reader: Reader) -> None:
    """One run of image tokens per image, in order, of the length that the image's size asks for."""
    images, token = reader.processor.image_processor, reader.processor.image_token_id
    needed = [
        images.get_number_of_image_patches(image.height, image.width) // images.merge_size**2 for image in row["images"]
    ]
    found = [len(list(run)) for is_image, run in groupby(tokens.ids, key=lambda other: other == token) if is_image]
    if found != needed:
        raise RowMisfit(
            Misfit.IMAGE_TOKENS_DIFFER,
            f"it renders runs of {found} image tokens, its {len(needed)} images need {needed}",
        )


def _check_trained(row: Row, tokens: Tokens, reader: Reader) -> None:
    decode = reader.processor.tokenizer.decode
    pairs = zip(tokens.ids, tokens.labels, strict=True)
    runs = [[token for token, _ in run] for on, run in groupby(pairs, key=lambda pair: pair[1] != IGNORED) if on]
    if not runs:
        raise RowMisfit(Misfit.NOTHING_TRAINED, "none of its tokens is trained")
    if reader.train_observations:
        return
    said = [unicodedata.normalize("NFC", decode(run)) for run in runs]
    expected = [unicodedata.normalize("NFC", text) for text in own_words(row, reader)]
    if said != expected:
        raise _mistrained("".join(said), "".join(expected))


def _mistrained(said: str, expected: str) -> RowMisfit:
    start = next((n for n, pair in enumerate(zip(said, expected, strict=False)) if pair[0] != pair[1]), -1)
    start = min(len(said), len(expected)) if start < 0 else start
    found, wanted = said[start : start + 40], expected[start : start + 40]
    if len(said) < len(expected):
        return RowMisfit(Misfit.OWN_WORDS_UNTRAINED, f"the loss mask leaves out {wanted!r}")
    return RowMisfit(Misfit.OBSERVATION_TRAINED, f"the loss mask trains {found!r} where the model wrote {wanted!r}")


def _check_end(tokens: Tokens, reader: Reader, max_tokens: int) -> None:
    if len(tokens.ids) > max_tokens:
        raise RowMisfit(Misfit.TRUNCATED, f"it has {len(tokens.ids)} tokens, {max_tokens} are read")
    end = reader.processor.tokenizer.decode(tokens.ids[-8:])
    if not end.endswith("<|im_end|>\n"):
        raise RowMisfit(Misfit.TRUNCATED, f"it breaks off with {end!r}")
