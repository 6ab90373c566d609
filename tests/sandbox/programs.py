"""Programs as models write them, run round by round in a session: does each do what its author meant?

One entry of cases/models_seen.json:

    {"id": "gpt_zoom_sign", "style": "gpt", "kind": "place", "images": ["scene"], "names": ["shots/12.png"],
     "rounds": ["...", "..."],
     "expect": [{"status": "ok", "text": ["140 x 80"], "not_text": ["None"], "images": 1, "size": [140, 80]},
                [{"status": "ok", "images": 1}, {"message": [["permission", "not found"], ["/mnt/data"]]}]],
     "wait": 1.5}

`expect` has an entry for each round: an expectation, or a list of which one must hold. `images` is the least number of
images shown, `size` that of the first. A `message` is one from which the fix follows: each group has a word in the
printed text or the error, whatever the status; lines of the code that are quoted there don't count. The session must
outlive every round. `wait`: seconds that the host waits before each later round, as if the policy wrote.

    python -m tests.sandbox.programs tests/sandbox/cases/models_seen.json

prints a verdict on each failing program and a table per kind; with `--counts`, the table alone.
"""

import json
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from darkroom.sandbox import Group, Limits, Observation, SandboxPool

CASES = Path(__file__).parent / "cases"
AT_ONCE = 4
"""Sessions: most of the time of a program that waits passes beside others."""


@dataclass(frozen=True)
class Verdict:
    case: dict[str, Any]
    failures: list[str] = field(default_factory=list)
    """Empty if the program did what its author meant; otherwise the first round that did not, and what came back."""

    @property
    def passed(self) -> bool:
        return not self.failures


def read_programs(name: str) -> list[dict[str, Any]]:
    cases: list[dict[str, Any]] = json.loads((CASES / f"{name}.json").read_text())
    return cases


def run_programs(cases: list[dict[str, Any]], pool: SandboxPool) -> list[Verdict]:
    """Verdicts in the order of the cases; programs with the same images share a group."""
    with ExitStack() as stack, ThreadPoolExecutor(AT_ONCE) as threads:
        groups: dict[tuple[tuple[str, ...], tuple[str, ...]], Group] = {}
        for case in cases:
            key = _inputs_of(case)
            if key not in groups:
                groups[key] = stack.enter_context(pool.group([draw(name) for name in key[0]], names=key[1]))
        return list(threads.map(lambda case: judge(case, groups[_inputs_of(case)]), cases))


def judge(case: dict[str, Any], group: Group) -> Verdict:
    with group.session(seed=7) as session:
        for number, (code, expected) in enumerate(zip(case["rounds"], case["expect"], strict=True)):
            if number:
                time.sleep(case.get("wait", 0))
            observation = session.run(code)
            choices = expected if isinstance(expected, list) else [expected]
            misses = [_miss(choice, observation, code) for choice in choices]
            if all(misses):
                return Verdict(case, [f"round {number + 1}: {' | '.join(misses)}", _in_short(observation)])
    return Verdict(case)


def _inputs_of(case: dict[str, Any]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    return tuple(case["images"]), tuple(case.get("names", ()))


def _miss(expected: dict[str, Any], observation: Observation, code: str) -> str:
    """The first part of the expectation that does not hold, or nothing."""
    return next(_misses(expected, observation, code), "")


def _misses(expected: dict[str, Any], observation: Observation, code: str) -> Iterator[str]:
    if observation.broken:
        yield f"the session ended: {observation.status}"
    if observation.status != expected.get("status", observation.status):
        yield f"status {observation.status}"
    for part in expected.get("text", ()):
        if part not in observation.text:
            yield f"{part!r} is not in the text"
    for part in expected.get("not_text", ()):
        if part in observation.text:
            yield f"{part!r} is in the text"
    if len(observation.images) < expected.get("images", 0):
        yield f"{len(observation.images)} images"
    if "size" in expected and list(observation.images[0].pixels.size) != expected["size"]:
        yield f"the first image is {observation.images[0].pixels.size}"
    said = _said(observation, code)
    for group in expected.get("message", ()):
        if not any(word.lower() in said for word in group):
            yield f"no word of {group} in the message"


def _said(observation: Observation, code: str) -> str:
    """The text and the error in small letters, without the lines of the code that they quote."""
    said = f"{observation.text}\n{observation.error or ''}"
    for line in sorted({line.strip() for line in code.splitlines()}, key=len, reverse=True):
        if len(line) > 8:
            said = said.replace(line, "")
    return said.lower()


def _in_short(observation: Observation) -> str:
    edits = [str(edit)[:80] for edit in observation.edits]
    sizes = [image.pixels.size for image in observation.images]
    return f"{observation.status} {observation.text[:300]!r} {observation.error!r} images {sizes} edits {edits}"


def draw(name: str) -> Image.Image:
    return DRAWN[name]()


def scene() -> Image.Image:
    """640x480 in RGB, no smooth edges: three red discs above two blue boxes, below right a green square, on grey."""
    image = Image.new("RGB", (640, 480), (230, 230, 230))
    pen = ImageDraw.Draw(image)
    for x in (100, 300, 500):
        pen.ellipse((x - 40, 80, x + 40, 160), fill=(220, 20, 20))
    for x in (60, 300):
        pen.rectangle((x, 260, x + 159, 399), fill=(20, 20, 220))
    pen.rectangle((560, 400, 599, 439), fill=(20, 180, 20))
    return image


def large() -> Image.Image:
    """3000x3000: a chessboard of fields of 300 pixels, the upper left one black, the lower right one orange."""
    rows, columns = np.mgrid[0:3000, 0:3000] // 300
    pixels = np.repeat(((rows + columns) % 2 * 255).astype(np.uint8)[..., None], 3, axis=2)
    pixels[2700:, 2700:] = (255, 140, 0)
    return Image.fromarray(pixels)


def page() -> Image.Image:
    """800x600, grey levels: five dark lines of text on white."""
    image = Image.new("L", (800, 600), 250)
    pen = ImageDraw.Draw(image)
    for number in range(5):
        line = f"Invoice line {number + 1}: {12 + 7 * number}.50 EUR"
        pen.text((60, 60 + 100 * number), line, font=ImageFont.load_default(32), fill=20)
    return image


def bars() -> Image.Image:
    """500x400: four bars of heights 80, 160, 240 and 320 that stand on an axis at y = 360."""
    image = Image.new("RGB", (500, 400), "white")
    pen = ImageDraw.Draw(image)
    for number, height in enumerate((80, 160, 240, 320)):
        pen.rectangle((60 + 110 * number, 360 - height, 119 + 110 * number, 359), fill=(40, 90, 200))
    pen.line((40, 360, 490, 360), fill="black", width=2)
    return image


def logo() -> Image.Image:
    """200x200 in RGBA: a half-transparent green disc, nothing around it."""
    image = Image.new("RGBA", (200, 200), (0, 0, 0, 0))
    ImageDraw.Draw(image).ellipse((20, 20, 180, 180), fill=(0, 160, 60, 128))
    return image


def scene_changed() -> Image.Image:
    """The scene, without its middle disc."""
    image = scene()
    ImageDraw.Draw(image).rectangle((250, 70, 350, 170), fill=(230, 230, 230))
    return image


DRAWN: dict[str, Callable[[], Image.Image]] = {
    drawing.__name__: drawing for drawing in (scene, large, page, bars, logo, scene_changed)
}


def table(verdicts: list[Verdict]) -> str:
    """How many of each kind pass, and of all."""
    passed, of = Counter[str](), Counter[str]()
    for verdict in verdicts:
        for name in (verdict.case["kind"], "all"):
            of[name] += 1
            passed[name] += verdict.passed
    return "\n".join(
        f"{name:<18}{passed[name]:>4} of {of[name]:>3}" for name in sorted(of, key=lambda each: (each == "all", each))
    )


def main(path: str, *options: str) -> None:
    with SandboxPool(limits=Limits(seconds=10)) as pool:
        verdicts = run_programs(json.loads(Path(path).read_text()), pool)
    for verdict in verdicts if "--counts" not in options else ():
        if not verdict.passed:
            print(f"{verdict.case['id']} ({verdict.case['kind']})", *verdict.failures, sep="\n    ")
    print(table(verdicts))


if __name__ == "__main__":
    main(*sys.argv[1:])
