"""Fuzzes the sandbox for as long as asked: `python -m tests.sandbox.fuzz --count 10000 --seed 1` (`make fuzz`).

Four parts (`--part`): `code` runs random code in the sandbox and in plain Python, where text, errors and images must be
the same; `files` opens groups of mutated images and videos, which must be readable or ImageUnreadable; `replies` lets a
session answer its calls itself, with mutated replies under the right nonce; `frames` are the properties of
`test_frames_fuzz`, with `count` examples each. A case of the first three depends on `seed` and its number alone; one
that fails is kept in a file, and the exit status is 1.
"""

import argparse
import json
import re
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from queue import SimpleQueue
from random import Random
from typing import Any

import pytest
from hypothesis import settings
from PIL import Image

from darkroom.sandbox import Group, ImageUnreadable, InputsTooLarge, Limits, Observation, SandboxPool
from darkroom.sandbox.calls import STATUSES
from darkroom.sandbox.neutral import neutralise
from tests.sandbox.plain_python import PlainPython, PlainRound, pixels_of
from tests.sandbox.random_code import SIDES, random_rounds
from tests.sandbox.random_files import KINDS, random_file

_TOKEN = re.compile(r"T\d+\.\d+")
_THREADS = 4
_CASES_PER_GROUP, _CASES_PER_LINE = 500, 500
LIMITS = Limits(seconds=60, memory_mb=2048)

_FORGE = """import sys, os, struct
frame = sys._getframe()
while 'nonce' not in frame.f_locals: frame = frame.f_back
os.write(frame.f_locals['fd'], struct.pack('<QI', frame.f_locals['nonce'], %d) + bytes.fromhex('%s'))
"""
_REPLY: dict[str, Any] = {"status": "ok", "text": "t", "error": None, "edits": [["dedent", None, [0, 1, "x"]]]}
_REPLY |= {"images": [["i.png", 2, 2]], "artefacts": [["i.png", 9, ""]]}


@dataclass
class Finding:
    """What is wrong, and what to keep of the case."""

    kind: str
    text: str
    kept: bytes


@dataclass
class Bench:
    """What all cases of a run share."""

    pool: SandboxPool
    image: Path
    plain: SimpleQueue[PlainPython]
    """One for each thread."""
    counts: Counter[str] = field(default_factory=Counter)


def check_code(bench: Bench, group: Group, number: int, random: Random) -> Finding | None:
    rounds = random_rounds(random, f"T{number}")
    with group.session(seed=1) as session:
        seen = [session.run(code) for code in rounds]
    plain = bench.plain.get()
    outcomes = plain.run(rounds, bench.image)
    bench.plain.put(plain)
    for index, (observation, outcome) in enumerate(zip(seen, outcomes, strict=True)):
        bench.counts[observation.status] += 1
        if found := difference(observation, outcome, f"T{number}."):
            return Finding(found[0], f"round {index}: {found[1]}", json.dumps(rounds, indent=1).encode())
    return None


def difference(observation: Observation, plain: PlainRound, token: str) -> tuple[str, str] | None:
    if any(not each.startswith(token) for each in _TOKEN.findall(observation.text)):
        return "foreign", f"the answer of other code: {observation.text!r}"
    if observation.status == "timeout":
        return "hung", str(observation.error)
    if observation.status not in ("ok", "error"):
        return "lost", f"{observation.status}: {observation.error}"
    text, error = neutralise(plain.text), None if plain.error is None else neutralise(plain.error)
    # to what Python says, the sandbox adds what would mend it
    says_the_same = observation.error == error or (error and str(observation.error).startswith(error))
    if observation.text != text or not says_the_same:
        return "different", f"{observation.text!r}, {observation.error!r}; in plain Python {text!r}, {error!r}"
    images = {pixels_of(image.pixels) for image in observation.images}
    return None if images == plain.images else ("different", f"{len(images)} images, not the same as in plain Python")


def check_file(bench: Bench, _: Group, number: int, random: Random) -> Finding | None:
    kind = KINDS[number % len(KINDS)]
    data = random_file(random, kind)
    is_video = kind == "mp4"
    code = "print(video_clue_0[0].shape)" if is_video else "print(image_clue_0.convert('RGB').size, image_size)"
    try:
        inputs = ([], [data]) if is_video else ([data], [])
        with bench.pool.group(inputs[0], videos=inputs[1]) as group, group.session() as session:
            observation = session.run(code)
            after = session.run("print('lives')")
    except (ImageUnreadable, InputsTooLarge) as error:
        bench.counts[type(error).__name__] += 1
        return None
    except Exception as error:
        return Finding("lost", f"{kind}: {type(error).__name__}: {error}", data)
    bench.counts[f"opened: {observation.status}"] += 1
    expected = ("ok", "error") if is_video else ("ok",)
    if observation.status not in expected or after.text != "lives\n":
        return Finding("lost", f"{kind}: {observation.status}: {observation.error}; then {after.status}", data)
    return None


def check_reply(bench: Bench, group: Group, number: int, random: Random) -> Finding | None:
    reply = bytearray(json.dumps(_REPLY).encode())
    for _ in range(random.randrange(3)):
        start = random.randrange(len(reply))
        reply[start : start + random.randrange(4)] = random.choice((random.randbytes(3), b"9999", b'"', b"[[", b"-1"))
    length = random.choice((len(reply),) * 9 + (0, len(reply) + 1, 1 << 31))
    code = _FORGE % (length, (reply + random.randbytes(random.choice((0, 0, 12, 40)))).hex())
    try:
        with group.session() as forger, group.session() as sibling:
            seen = [forger.run(code), forger.run("print('after')")]
            answer = sibling.run(f"print('T{number}.0')")
    except Exception as error:
        return Finding("lost", f"{type(error).__name__}: {error}", code.encode())
    bench.counts["; ".join(observation.status for observation in seen)] += 1
    if not {observation.status for observation in seen} <= STATUSES or answer.text != f"T{number}.0\n":
        return Finding("foreign", f"{seen}, and its sibling {answer}", code.encode())
    return None


PARTS: dict[str, Callable[[Bench, Group, int, Random], Finding | None]] = {
    "code": check_code,
    "files": check_file,
    "replies": check_reply,
}


@contextmanager
def open_bench() -> Iterator[Bench]:
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        pattern = Image.effect_mandelbrot(SIDES, (-2, -1.5, 1, 1.5), 60)
        Image.merge("RGB", (pattern, pattern.rotate(180), pattern.transpose(Image.Transpose.FLIP_TOP_BOTTOM))).save(
            folder / "image.png"
        )
        pool = stack.enter_context(SandboxPool(limits=LIMITS, echo="off"))
        bench = Bench(pool, folder / "image.png", SimpleQueue())
        for _ in range(_THREADS):
            bench.plain.put(stack.enter_context(closing(PlainPython())))
        yield bench


def fuzz(bench: Bench, part: str, numbers: range, *, seed: int) -> Iterator[tuple[int, Finding | None]]:
    """Numbers of the cases, as they end."""
    check = PARTS[part]
    for start in range(numbers.start, numbers.stop, _CASES_PER_GROUP):
        some = range(start, min(start + _CASES_PER_GROUP, numbers.stop))
        with bench.pool.group([bench.image]) as group, ThreadPoolExecutor(_THREADS) as threads:
            calls = {
                number: threads.submit(check, bench, group, number, Random(f"{part} {seed} {number}"))
                for number in some
            }
            yield from ((number, call.result()) for number, call in calls.items())


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=1000, help="cases of each part")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--first", type=int, default=0, help="number of the first case")
    parser.add_argument("--part", choices=[*PARTS, "frames"], action="append", help="all of them, unless given")
    parser.add_argument("--keep", type=Path, default=Path("fuzz_findings"), help="folder for the cases that fail")
    options = parser.parse_args()
    parts = options.part or [*PARTS, "frames"]
    failed = "frames" in parts and _run_properties(options.count, options.seed)
    for part in (part for part in parts if part in PARTS):
        with open_bench() as bench:
            failed |= _run(bench, part, options) > 0
    return int(failed)


def _run_properties(count: int, seed: int) -> bool:
    """Whether one failed; hypothesis prints the smallest example."""
    settings.register_profile("fuzz", max_examples=count, database=None, print_blob=True)
    options = ["-q", "-p", "no:cacheprovider", "--hypothesis-profile=fuzz", f"--hypothesis-seed={seed}", "--timeout=0"]
    options += ["-W", "ignore::pytest.PytestAssertRewriteWarning"]  # hypothesis is imported here already
    return pytest.main([*options, str(Path(__file__).with_name("test_frames_fuzz.py"))]) != pytest.ExitCode.OK


def _run(bench: Bench, part: str, options: argparse.Namespace) -> int:
    """How many findings there were."""
    found = Counter[str]()
    numbers = range(options.first, options.first + options.count)
    for n_done, (number, finding) in enumerate(fuzz(bench, part, numbers, seed=options.seed), 1):
        if finding is not None:
            found[finding.kind] += 1
            options.keep.mkdir(parents=True, exist_ok=True)
            path = options.keep / f"{part}-{options.seed}-{number}"
            path.write_bytes(finding.kept)
            print(f"{part} {number}: {finding.kind}: {finding.text} (kept in {path})", flush=True)
        if n_done % _CASES_PER_LINE == 0 or n_done == options.count:
            found_text = ", ".join(f"{found[kind]} {kind}" for kind in ("hung", "lost", "foreign", "different"))
            print(f"{part}: {n_done} of {options.count} cases: {found_text}; {dict(bench.counts)}", flush=True)
    return found.total()


if __name__ == "__main__":
    sys.exit(main())
