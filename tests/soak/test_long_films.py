"""A film of more than the limits, 40 minutes at 30 frames a second, is asked about in parts."""

from __future__ import annotations

import io
import json
from pathlib import Path

import numpy as np

from darkroom.pipelines.sources.columns import Columns
from darkroom.pipelines.sources.ingest import ingest_shard
from darkroom.pipelines.sources.jsonl import JsonLinesSource
from darkroom.pipelines.storage.images import ImageStore
from darkroom.sandbox._guest.video import VideoReader
from tests.sandbox.clips import FRAMES_PER_SECOND, encode

SECONDS = 40 * 60 * 30 // FRAMES_PER_SECOND
"""Of 72,000 frames, at the rate of the tests' clips."""
PARTS = [(0, 5), (1200, 1205), (SECONDS - 5, SECONDS)]


def test_parts_of_a_film_beyond_the_limits(tmp_path: Path) -> None:
    film = encode(tmp_path / "film.mp4", n_frames=72_000, size=(32, 16), preset="ultrafast", g="60")
    rows = [{"clip": film.name, "from": start, "to": end} for start, end in [*PARTS, (0, SECONDS)]]
    path = tmp_path / "q.jsonl"
    path.write_text("\n".join(json.dumps({**row, "question": "What moves?", "answer": "a bar"}) for row in rows))
    store = ImageStore(str(tmp_path / "store"))

    whole = Columns(images=None, videos="clip")
    assert {
        reject.reason for reject in ingest_shard(JsonLinesSource("films", path, tmp_path, whole), 0, store).rejects
    } == {"too_large_video"}
    parts = Columns(images=None, videos="clip", segment={"start": "from", "end": "to"})
    intake = ingest_shard(JsonLinesSource("films", path, tmp_path, parts), 0, store)
    assert [reject.reason for reject in intake.rejects] == ["too_large_video"]

    source = VideoReader(str(film))
    for sample, (start, _) in zip(intake.samples, PARTS, strict=True):
        (video,) = sample.videos
        kept = VideoReader(io.BytesIO(store.read(video)))
        first = max(key for key in source.get_key_indices() if key <= start * FRAMES_PER_SECOND)
        assert 5 * FRAMES_PER_SECOND <= len(kept) <= 8 * FRAMES_PER_SECOND
        assert all(np.array_equal(frame, source[first + number]) for number, frame in enumerate(kept))
