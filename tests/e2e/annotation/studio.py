"""What the files of this folder share beside their server."""

from __future__ import annotations

import os
import random
import subprocess
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager

import sqlalchemy as sa
from PIL import Image, ImageDraw

from darkroom.annotation.label_studio.server import LabelStudioServer
from tests.e2e.annotators import answer_of, http_client
from tests.own_studio import studio_database

N_IMAGES = 60
SIZE = (2304, 1296)


def database() -> AbstractContextManager[str | None]:
    """None for SQLite."""
    return studio_database(bool(os.environ.get("DARKROOM_TEST_POSTGRES")))


@contextmanager
def tables_of(server: LabelStudioServer) -> Iterator[sa.Connection]:
    """Label Studio's own tables, for what only a kill in the right moment would write."""
    started = server.find()
    assert started is not None
    url = started.database.replace("postgresql://", "postgresql+psycopg://").replace("***", "x")
    file = server.folder / "studio" / "label_studio.sqlite3"
    studio = sa.create_engine(f"sqlite:///{file}" if url == "sqlite" else url)
    with studio.begin() as connection:
        yield connection
    studio.dispose()


def image(number: int) -> Image.Image:
    """A large image with a small white sign."""
    chance = random.Random(number)
    image = Image.new("RGB", SIZE, tuple(chance.randrange(256) for _ in range(3)))
    draw = ImageDraw.Draw(image)
    for _ in range(60):
        x, y = chance.randrange(SIZE[0]), chance.randrange(SIZE[1])
        corner = (x + chance.randrange(20, 500), y + chance.randrange(20, 400))
        draw.rectangle((x, y, *corner), fill=tuple(chance.randrange(256) for _ in range(3)))
    draw.rectangle((580, 650, 668, 686), fill="white")
    draw.text((586, 654), answer_of(number), fill="black", font_size=24)
    return image


def run_darkroom(environment: dict[str, str], *words: str) -> str:
    done = subprocess.run(["darkroom", *words], env=environment, capture_output=True, text=True, timeout=1800)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def logs_in(url: str, email: str, password: str) -> bool:
    with http_client(url) as client:
        client.get("/user/login/")
        body = {"email": email, "password": password, "csrfmiddlewaretoken": client.cookies["csrftoken"]}
        return client.post("/user/login/", data=body, headers={"Referer": url}).status_code == 302
