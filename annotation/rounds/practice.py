"""Practice images of a campaign, and what became of people's tries. The plug-in's ``practice.py`` shows and compares.

A file has an image a line, with boxes in its pixels; ``example`` are images of the demo.

    {"image": "signs/01.jpg", "question": "What does the blue sign say?", "answer": "Orchard Way", "category": "ocr",
     "boxes": [[2031, 1082, 2199, 1118]]}
"""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import pydantic

from darkroom.annotation import AnnotationError
from darkroom.annotation._plugin.darkroom_studio.validation import N_IMAGES, N_PASSING, PRACTISING
from darkroom.annotation.label_studio.client import LabelStudioClient
from darkroom.annotation.label_studio.forms import CATEGORIES, practice_passages
from darkroom.annotation.label_studio.protocol import Person
from darkroom.annotation.rounds.campaign import CATEGORY_NAMES, Campaign
from darkroom.annotation.rounds.image_pool import add_view, write_trial_images
from darkroom.annotation.rounds.journal import Journal
from darkroom.annotation.rounds.planted_errors import plant
from darkroom.annotation.rounds.submissions import RecordFields
from darkroom.pipelines.records.digest import digest, digest_bytes
from darkroom.pipelines.records.geometry import Box
from darkroom.pipelines.records.reject_reasons import RowError
from darkroom.pipelines.sources.jsonl import parsed_lines
from darkroom.pipelines.storage.media_validation import LARGEST_PIXELS
from darkroom.pipelines.storage.user_files import field_errors
from darkroom.pipelines.storage.workspace import Workspace

EXAMPLE = Path(__file__).with_name("practice_example.jsonl")
"""Questions about the demo's images, as ``init --example`` writes them."""
_Text = Annotated[str, pydantic.Field(min_length=1)]


class PracticeRow(pydantic.BaseModel, extra="forbid", frozen=True):
    """One line of a file."""

    image: _Text
    question: _Text
    answer: _Text
    category: Annotated[str, pydantic.Field(pattern=f"^({'|'.join(CATEGORY_NAMES)})$")]
    count: int | None = None
    boxes: Annotated[tuple[tuple[int, int, int, int], ...], pydantic.Field(min_length=1)]


class PracticeResult(NamedTuple):
    """Outcome of one person's practice; ``n`` and ``n_right`` are the last try's images."""

    email: str
    role: str
    state: str
    """``not begun``, ``practises``, ``stuck`` (two tries or more have failed) or ``passed``."""
    n_tries: int
    n_right: int
    n: int
    hours: float
    last_at: str
    """Time of the last step, ISO 8601; empty before the first."""

    def __str__(self) -> str:
        return f"{self.state}: {self.n_right} of {self.n}, try {self.n_tries}" if self.n_tries else self.state


def practice_results(
    tries: Mapping[str, list[dict[str, Any]]], people: Iterable[Person], campaign: Campaign
) -> Iterator[PracticeResult]:
    """Everybody who has to practise or did, by address; ``tries`` as the server gives them, of any campaign."""
    for person in sorted(people, key=lambda person: person.email):
        own = [each for each in tries.get(person.email, ()) if each["campaign"] == campaign.name]
        if own or (campaign.practice and person.is_active and person.role in PRACTISING):
            last: Mapping[str, Any] = own[-1] if own else {"n_right": 0, "n": 0, "at": ""}
            ends = [each["n_right"] >= N_PASSING for each in own if each["n"] == N_IMAGES]
            state = "passed" if any(ends) else "stuck" if len(ends) > 1 else "practises" if own else "not begun"
            hours, counts = sum(each["seconds"] for each in own) / 3600, (len(own), last["n_right"], last["n"])
            yield PracticeResult(person.email, person.role, state, *counts, hours, last["at"])


def exchange_practice(workspace: Workspace, campaign: Campaign, journal: Journal, studio: LabelStudioClient) -> None:
    """Give the server the campaign's practice images, if they changed, and store people's tries. Raises
    ``AnnotationError``."""
    name, before = campaign.name, studio.practice_sets()
    if not campaign.practice:
        if name in before:
            studio.set_practice(name, {})
        return
    is_example = campaign.practice == "example"
    path = EXAMPLE if is_example else workspace.annotation / campaign.practice
    if not path.is_file():
        raise AnnotationError(f"campaign.yaml: practice: there is no file {path}; or write `practice: example`")
    passages = practice_passages(campaign.max_share, campaign.max_rework)
    content = {"passages": passages, "language": campaign.language}
    version = digest([digest_bytes(path.read_bytes()), content])
    if before.get(name) != version:
        if is_example:
            write_trial_images(workspace, EXAMPLE.stem)
        folder = workspace.annotation / EXAMPLE.stem if is_example else path.parent
        read = _items(workspace, path, folder, f"practice {campaign.seeded(journal.seed).seed}")
        items = list({item["key"]: item for item in read}.values())
        if len(items) < N_IMAGES:
            raise AnnotationError(f"{path}: expected at least {N_IMAGES} different images; found {len(items)}")
        studio.set_practice(name, {**content, "digest": version, "items": items})
    journal.set_practice(studio.accounts())


def _items(workspace: Workspace, path: Path, folder: Path, seed: str) -> Iterator[dict[str, Any]]:
    """Images as the server gets them, with their records and, where one is possible, one with a planted error. Raises
    ``AnnotationError`` with the line."""
    for number, value, problem in parsed_lines(path):
        try:
            row = PracticeRow.model_validate(value)
            image, pixels = workspace.images.ingest_pixels((folder / row.image).read_bytes(), max_pixels=LARGEST_PIXELS)
        except (pydantic.ValidationError, RowError, OSError) as error:
            reason = field_errors(error, most=3) if isinstance(error, pydantic.ValidationError) else error
            raise AnnotationError(f"{path}:{number}: {problem or reason}") from error
        _, view = add_view(workspace.images, image, pixels)
        size, boxes = (image.width, image.height), tuple(Box(*box) for box in row.boxes)
        if not all(box.fits(*size) for box in boxes):
            raise AnnotationError(f"{path}:{number}: a box is not inside its image of {size[0]}x{size[1]} pixels")
        fields = RecordFields(row.question, row.answer, row.category, row.count, boxes)
        planted = plant(fields, size, seed=f"{seed} {number}")
        frame = {"image": (view or image).sha256, "size": size, "question": row.question}
        record = {**_record(fields), "planted": planted and _record(planted.fields)}
        yield {"key": digest([image.sha256, row.question])[:20], **frame, **record}


def _record(fields: RecordFields) -> dict[str, Any]:
    title = next(category.title for category in CATEGORIES if category.name == fields.category)
    return {"answer": fields.answer, "category": title, "count": fields.count, "boxes": [list(b) for b in fields.boxes]}
