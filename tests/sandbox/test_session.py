"""What a session promises: state, seeds, limits, time."""

import asyncio
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from PIL import Image

from darkroom.sandbox import Group, Limits, SandboxPool, Session
from darkroom.sandbox.process import pid_of, proc_fields

RANDOM_NUMBERS = """
import random
import os, tempfile, uuid
print(random.random(), np.random.rand(), np.random.default_rng().random(), list({'a', 'b', 'c'}))
print(os.urandom(4), uuid.uuid4(), random.SystemRandom().random(), tempfile.mktemp())
noise = np.zeros((4, 4), np.uint8)
cv2.randu(noise, 0, 255)
print(noise.sum())
"""
PRINTS_OBJECTS = "def f(): pass\nfig, ax = plt.subplots()\nprint(f, object(), ax.plot([1]), image_clue_0)"
SHOWS_TWO_FIGURES = "plt.plot([1, 2])\nplt.figure(figsize=(2, 1))\nplt.plot([2, 1])\nplt.show()"


def test_state_lives_across_rounds(session: Session) -> None:
    session.run("import math as m\nk = 3\ndef scaled(x): return m.floor(x) * k")
    assert session.run("print(scaled(2.5), [i * k for i in range(3)])").text == "6 [0, 3, 6]\n"


def test_functions_and_comprehensions_see_the_names_of_their_own_cell(session: Session) -> None:
    observation = session.run(
        "w = 5\ndef f(): return w\nclass A:\n    side = w\nprint(f(), [w * i for i in (1, 2)], A.side)"
    )
    assert (observation.status, observation.text) == ("ok", "5 [5, 10] 5\n")


def test_the_code_finds_its_images_under_names_that_tell_nothing(session: Session) -> None:
    observation = session.run("print(image_path, image_path_0, image_size, image_clue_0.size, image_clue_0.format)")
    path = "/mnt/data/input_images/image_0.jpg"
    assert observation.text == f"{path} {path} (2000, 1500) (2000, 1500) JPEG\n"


def test_every_image_of_a_prompt_has_its_own_name(pool: SandboxPool) -> None:
    images = [Image.new("RGB", (10 + i, 20), (i, 0, 0)) for i in range(3)]
    with pool.group(images) as group, group.session() as session:
        code = "print([Image.open(p).getpixel((0, 0))[0] for p in (image_path_0, image_path_1, image_path_2)])\n"
        assert session.run(code + "print(image_clue_2.size, image_size_1)").text == "[0, 1, 2]\n(12, 20) (11, 20)\n"


def test_a_seed_gives_the_same_numbers_in_every_session(group: Group) -> None:
    def numbers(seed: int) -> str:
        with group.session(seed=seed) as session:
            return session.run(RANDOM_NUMBERS).text

    assert numbers(5) == numbers(5)
    assert numbers(5) != numbers(6)


def test_the_same_code_images_and_seed_give_the_same_observation_byte_for_byte(photo: Path) -> None:
    codes = [RANDOM_NUMBERS, SHOWS_TWO_FIGURES, PRINTS_OBJECTS, "Image.open(image_path).rotate(7).save('r.jpg')\n1 / 0"]

    def observations() -> list[object]:
        with SandboxPool(tier="full") as pool, pool.group([photo]) as group, group.session(seed=3) as session:
            seen = [session.run(code) for code in codes]
        return [
            (o.status, o.text, o.error, o.edits, o.artefacts, [(i.name, i.pixels.tobytes()) for i in o.images])
            for o in seen
        ]

    assert observations() == observations()


def test_an_object_is_printed_with_the_same_stand_in_for_its_address(session: Session) -> None:
    text = session.run("a, b = object(), object()\nprint(a, b, a)").text
    assert text == (
        "<object object at 0x7f0000000010> <object object at 0x7f0000000020> <object object at 0x7f0000000010>\n"
    )


def test_a_timeout_keeps_the_state(pool: SandboxPool) -> None:
    with pool.group(limits=Limits(seconds=0.5)) as group, group.session() as session:
        session.run("kept = 1")
        observation = session.run("import time\nkept = 2\ntime.sleep(60)")
        assert (observation.status, observation.error) == (
            "timeout",
            "TimeoutError: still running after 0.5 s (line 3: time.sleep(60))",
        )
        assert session.run("print(kept)").text == "2\n"


def test_code_that_swallows_the_interruption_is_killed_and_the_session_has_ended(pool: SandboxPool) -> None:
    code = "import signal\nfor n in range(34, 65): signal.signal(n, signal.SIG_IGN)\nwhile True: pass"
    with pool.group(limits=Limits(seconds=0.5, grace=0.3, wall_seconds=60)) as group, group.session() as session:
        observation = session.run(code)
        assert (observation.status, observation.broken, session.alive) == ("timeout", True, False)
        later = session.run("print(1)")
        assert later.status == "killed"
        assert "the session ended earlier" in later.error


def test_a_late_answer_is_never_taken_for_the_next_one(pool: SandboxPool) -> None:
    code = "import time\ntry: time.sleep(60)\nexcept BaseException: print('slow result')"
    with pool.group(limits=Limits(seconds=0.3)) as group, group.session() as session:
        late = session.run(code)
        assert (late.status, late.text) == ("timeout", "slow result\n")
        assert session.run("print('second')").text == "second\n"


def test_too_much_memory_is_a_status_and_the_session_goes_on(session: Session) -> None:
    for code in ("x = np.zeros((40_000, 40_000))", "x = bytearray(10**11)"):
        assert session.run(code).status == "memory"
    assert session.run("print(1)").text == "1\n"


def test_a_process_that_ends_itself_is_reported_as_killed(session: Session) -> None:
    observation = session.run("import os\nos._exit(0)")
    assert (observation.status, observation.broken) == ("killed", True)


def test_changing_an_input_in_place_changes_no_other_open_of_it(session: Session) -> None:
    session.run("a = cv2.imread(image_path); a[:] = 0\npixels = image_clue_0.load(); pixels[0, 0] = (1, 2, 3)")
    session.run("b = Image.open(image_path); b.paste((0, 0, 0), (0, 0, 50, 50))")
    code = """
print(cv2.imread(image_path).any())
print(Image.open(image_path).getpixel((0, 0)) == (1, 2, 3), image_clue_0.getpixel((0, 0)) == (1, 2, 3))
"""
    assert session.run(code).text == "True\nFalse True\n"


def test_shared_pixels_are_those_that_a_decoder_gives(session: Session) -> None:
    code = """
import io
data = open(image_path, 'rb').read()
print((np.asarray(Image.open(io.BytesIO(data))) == np.asarray(Image.open(image_path))).all())
print((cv2.imdecode(np.frombuffer(data, np.uint8), 1) == cv2.imread(image_path)).all())
"""
    assert session.run(code).text == "True\nTrue\n"


def test_a_thread_that_outlives_its_call_computes_nothing_between_calls(session: Session) -> None:
    session.run(
        "import threading, time\nticks = []\n"
        "def tick():\n    while True: ticks.append(time.monotonic()); time.sleep(0.01)\n"
        "threading.Thread(target=tick, daemon=True).start()"
    )
    session.run("while not ticks: time.sleep(0.01)")
    status = f"/proc/{pid_of(session._pidfd)}/status"
    while not proc_fields(status)["State"].startswith("T"):  # it stops as soon as the kernel lets it run
        time.sleep(0.001)
    time.sleep(0.5)
    gaps = "print(max(later - earlier for earlier, later in zip(ticks, ticks[1:])))"
    assert float(session.run(f"n = len(ticks)\nwhile len(ticks) == n: time.sleep(0.01)\n{gaps}").text) >= 0.5


def test_many_sessions_run_in_one_event_loop(group: Group) -> None:
    async def run_all() -> list[str]:
        sessions = [group.session(seed=i) for i in range(6)]
        observations = await asyncio.gather(*(s.arun(f"x = {i}\nprint(x * x)") for i, s in enumerate(sessions)))
        for session in sessions:
            session.close()
        return [observation.text for observation in observations]

    assert asyncio.run(run_all()) == ["0\n", "1\n", "4\n", "9\n", "16\n", "25\n"]


def test_waiting_for_a_cpu_is_not_charged_and_sleeping_is(pool: SandboxPool) -> None:
    busy = "import time\nend = time.process_time() + 0.4\nwhile time.process_time() < end: pass\nprint('done')"
    hogs = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(4 * (os.cpu_count() or 1))]
    try:
        with pool.group(limits=Limits(seconds=1, wall_seconds=300)) as group, group.session() as session:
            assert session.run(busy).text == "done\n"
            assert session.run("import time\ntime.sleep(30)").status == "timeout"
    finally:
        for hog in hogs:
            hog.kill()
            hog.wait()


def test_threads_are_charged_for_all_the_time_they_take(pool: SandboxPool) -> None:
    code = "import hashlib, threading\ndata = bytes(1 << 24)\ndef work():\n    while True: hashlib.sha256(data)\n"
    code += "for _ in range(2): threading.Thread(target=work, daemon=True).start()\nwork()"
    with pool.group(limits=Limits(seconds=1, wall_seconds=300)) as group, group.session() as session:
        assert session.run(code).status == "timeout"


def test_the_wall_clock_has_a_ceiling(pool: SandboxPool) -> None:
    with pytest.raises(ValueError, match="below seconds"):
        Limits(seconds=2, wall_seconds=1)
    assert (Limits(seconds=2).wall_ceiling, Limits(seconds=2, wall_seconds=6).wall_ceiling) == (10, 3)


def test_sessions_that_wait_for_a_cpu_are_not_timed_out(pool: SandboxPool) -> None:
    code = "import time\nend = time.process_time() + 0.15\nwhile time.process_time() < end: pass\nprint('done')"

    async def run_all(sessions: list[Session]) -> set[str]:
        return {observation.text for observation in await asyncio.gather(*(s.arun(code) for s in sessions))}

    with pool.group(limits=Limits(seconds=1, wall_seconds=300)) as group:
        assert asyncio.run(run_all([group.session() for _ in range(10)])) == {"done\n"}


def test_closing_a_session_ends_the_call_that_runs_in_it(pool: SandboxPool) -> None:
    async def close_early(group: Group) -> str:
        session = group.session()
        call = asyncio.ensure_future(session.arun("import time\ntime.sleep(60)"))
        while not pool.stats().running:
            await asyncio.sleep(0.02)
        await asyncio.to_thread(session.close)
        return (await asyncio.wait_for(call, 120)).status

    with pool.group(limits=Limits(seconds=60)) as group:
        assert asyncio.run(close_early(group)) == "killed"


def test_a_session_can_be_opened_and_closed_within_an_event_loop(pool: SandboxPool) -> None:
    async def rollout() -> str:
        async with (
            await pool.agroup([Image.new("RGB", (4, 3))], rollouts=2) as group,
            await group.asession(seed=1) as session,
        ):
            return (await session.arun("print(image_size)")).text

    assert asyncio.run(rollout()) == "(4, 3)\n"


def test_a_database_on_a_file_works(session: Session) -> None:
    code = "import sqlite3\nc = sqlite3.connect('t.db')\nc.execute('create table t(a)')\nc.commit()\nc.close()\n"
    code += "print(sqlite3.connect('t.db').execute('select count(*) from t').fetchone())"
    assert session.run(code).text == "(0,)\n"
