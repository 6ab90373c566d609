"""Short films: a sign shows up for a moment, and a question names one of the frames that show it.

On demand (the family ``agentic_video``) code shows that frame. In the context (``frames_in_context``, a family of the
experiments alone) the prompt shows frames that are uniformly sampled, and no code is written: PyVision-RL, figure 4.
"""

from collections.abc import Iterator
from pathlib import Path
from random import Random

from PIL import Image

from darkroom.pipelines.demo.images.films import FILMED, HEIGHT, WIDTH, encoded
from darkroom.pipelines.demo.images.material import PHOTOGRAPHS, joint_license, photograph_image
from darkroom.pipelines.demo.images.targets import street_signs
from darkroom.pipelines.generation.recipes import Recipe
from darkroom.pipelines.models.prompts import bundled_prompt
from darkroom.pipelines.models.protocols import PyVision
from darkroom.pipelines.models.tasks import PreparedSample
from darkroom.pipelines.records import Sample, Truth
from darkroom.pipelines.records.digest import seed_from
from darkroom.pipelines.records.reject_reasons import Reason, RowError
from darkroom.pipelines.records.samples import FRAME, TemporalSegment, as_details, temporal_segments
from darkroom.pipelines.sources import SourceRow
from darkroom.pipelines.storage.images import ImageStore
from darkroom.pipelines.verification.checks import answer_matches, no_program
from darkroom.pipelines.vision.frames import sampled_frames
from measurements.ablations.world.made_source import MadeSource

N_FRAMES = 260
FIRST, SHOWN = 100, 9
"""No frame before the first is asked about, so that its number has three digits; a sign shows up for so many frames."""
CONTEXTS = (8, 32)
"""Frames in the context of a training row: of 32 one always shows the sign."""
SIGN_WIDTH = 300


class Films(MadeSource):
    """``n`` films, at most ``N_FRAMES - FIRST``.

    No two ask about the same frame: of rows without an image, the same question would be a near-duplicate.
    """

    name = "sign_films"
    constants = (N_FRAMES, FIRST, SHOWN, SIGN_WIDTH)

    def rows(self, shard: int) -> Iterator[SourceRow]:
        """All of them: there is one shard."""
        asked = Random(f"{self.seed}/asked").sample(range(FIRST, N_FRAMES), self.n)
        for number, frame in enumerate(asked):
            yield _row(f"film/{self.seed}/{number}", frame, Random(f"{self.seed}/{number}"))


def _row(row: str, asked: int, chance: Random) -> SourceRow:
    photograph, (sign,) = PHOTOGRAPHS[chance.choice(FILMED)], street_signs(chance, 1)
    first = min(asked - chance.randrange(SHOWN), N_FRAMES - SHOWN)
    empty = _part(photograph_image(photograph.name), chance)
    height = round(sign.image.height * SIGN_WIDTH / sign.image.width)
    large = sign.image.resize((SIGN_WIDTH, height), Image.Resampling.LANCZOS)
    shown = empty.copy()
    shown.paste(large, (chance.randrange(WIDTH - SIGN_WIDTH), chance.randrange(HEIGHT - height)), large)
    film = encoded([shown if first <= n < first + SHOWN else empty for n in range(N_FRAMES)])
    question, license = f"What colour is the street sign in frame {asked}?", joint_license([photograph.license])
    truth = Truth(details=as_details([TemporalSegment(sign.label, first, first + SHOWN)]))
    return SourceRow(row, (), question, sign.look, (), truth, "attribute", license, videos=(film,))


def _part(photograph: Image.Image, chance: Random) -> Image.Image:
    """A part of a photograph at the size of a frame: films with the same photograph are no near-duplicates."""
    share = chance.uniform(0.3, 0.8)
    width, height = round(share * photograph.width), round(share * photograph.height)
    x, y = chance.randrange(photograph.width - width), chance.randrange(photograph.height - height)
    return photograph.crop((x, y, x + width, y + height)).resize((WIDTH, HEIGHT))


def _prepare(sample: Sample, store: ImageStore) -> PreparedSample:
    """Frames of the film. Raises ``RowError`` (unsuitable) where none of them shows the sign."""
    n_frames = Random(seed_from("frames_in_context", sample.sample_id)).choice(CONTEXTS)
    frames = sampled_frames(sample.videos[0], store, n_frames=n_frames)
    numbers = [int((frame.made_by or "").removeprefix(FRAME)) for frame in frames]
    if not any(moment.first <= number < moment.end for moment in temporal_segments(sample) for number in numbers):
        raise RowError(Reason.UNSUITABLE, f"none of {n_frames} frames shows what is asked about")
    return PreparedSample(frames, mode="forbidden")


FRAMES_IN_CONTEXT = Recipe(
    family="frames_in_context",
    description="Frames in the context: uniformly sampled frames of a film are shown, and no code is written.",
    file=Path(__file__),
    prompt=bundled_prompt("direct"),
    protocol=PyVision(),
    prepare=_prepare,
    checks=(no_program, answer_matches),
    max_rounds=0,
)
