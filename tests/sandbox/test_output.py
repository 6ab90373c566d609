"""Nothing that was printed is lost: however the code treats its streams, and past them."""

import pytest

from darkroom.sandbox import Group, Session

WRAPPERS = {
    "buffer": "sys.stdout = io.TextIOWrapper(sys.stdout.buffer, encoding='utf-8')",
    "buffer_twice": "for _ in range(2): sys.stdout = io.TextIOWrapper(sys.stdout.buffer)",
    "detach": "sys.stdout = io.TextIOWrapper(sys.stdout.detach(), encoding='utf-8')",
    "both": "for name in ('stdout', 'stderr'): setattr(sys, name, io.TextIOWrapper(getattr(sys, name).buffer))",
    "codecs": "sys.stdout = codecs.getwriter('utf-8')(sys.stdout.buffer)",
    "original": "sys.stdout = io.TextIOWrapper(sys.__stdout__.buffer)",
    "descriptor": "sys.stdout = open(sys.stdout.fileno(), 'w', encoding='utf-8')",
    "unbuffered": "sys.stdout = os.fdopen(1, 'w', 1)",
    "reconfigured": "sys.stdout.reconfigure(encoding='utf-8', line_buffering=True)",
}
RUINS = {
    "closed": "sys.stdout.close()",
    "closed_bytes": "sys.stdout.buffer.close()",
    "detached": "sys.stdout.detach()",
    "collected": "import gc\nwrapper = io.TextIOWrapper(sys.stdout.buffer)\ndel wrapper\ngc.collect()",
    "none": "sys.stdout = sys.stderr = None",
    "deleted": "del sys.stdout",
    "caught": "sys.stdout = io.StringIO()",
    "no_stream": "class Stream:\n    def flush(self): raise SystemExit(3)\nsys.stderr = Stream()",
    "descriptors_closed": "os.close(1)\nos.close(2)",
    "descriptor_redirected": "os.dup2(os.open('/dev/null', os.O_WRONLY), 1)",
}
HEAD = "import codecs, io, os, sys\n"


@pytest.mark.parametrize("name", WRAPPERS)
def test_a_wrapped_stream_prints_in_this_call_and_the_next(session: Session, name: str) -> None:
    opening = HEAD + WRAPPERS[name]
    assert session.run(f"{opening}\nprint('first é')").text == "first é\n"
    assert session.run("print('second')").text == "second\n"
    assert session.run(f"{opening}\nprint('third')").text == "third\n"


@pytest.mark.parametrize("name", RUINS)
def test_a_stream_that_the_code_ruins_is_whole_in_the_next_call(session: Session, name: str) -> None:
    first = session.run(HEAD + "print('before', flush=True)\n" + RUINS[name] + ";")
    assert (first.status, first.text) == ("ok", "before\n")
    code = "import os, sys\nprint('after')\nprint('error', file=sys.stderr, flush=True)\nos.write(1, b'raw\\n');"
    assert session.run(code).text == "after\nerror\nraw\n"


def test_a_wrapper_under_another_name_is_flushed(session: Session) -> None:
    assert session.run(HEAD + "out = io.TextIOWrapper(sys.stdout.buffer)\nprint('one', file=out)").text == "one\n"
    assert session.run("print('two', file=out)").text == "two\n"


def test_the_original_streams_are_there(session: Session) -> None:
    code = "import sys\nprint(1, file=sys.__stdout__)\nprint(2, file=sys.__stderr__)\nprint(sys.stdout.fileno())"
    assert session.run(code).text == "1\n2\n1\n"


def test_what_is_written_past_python_comes_back_in_the_order_of_flushing(session: Session) -> None:
    code = "import os\nprint('a', flush=True)\nos.write(1, b'b\\n')\nprint('c', flush=True)\nos.write(2, b'd\\n');"
    assert session.run(code).text == "a\nb\nc\nd\n"
    assert session.run("import ctypes\nctypes.CDLL(None).puts(b'from C');").text == "from C\n"


def test_a_flood_past_python_is_cut_as_any_and_an_error_where_it_ends(session: Session) -> None:
    flood = (
        "import os\nos.write(1, b'first\\n')\nfor _ in range({}): os.write(1, b'x' * 1_000_000)\nos.write(1, b'last');"
    )
    seen = session.run(flood.format(20))
    assert (seen.status, seen.text[:6], seen.text[-4:]) == ("ok", "first\n", "last")
    assert f"[{20_000_010 - 16_384} bytes cut]" in seen.text
    seen = session.run(flood.format(40))
    assert (seen.status, seen.text[:6]) == ("error", "first\n")
    assert "File too large" in (seen.error or "")
    assert session.run("import os\nos.write(1, b'again');").text == "again"


def test_an_error_and_a_timeout_keep_what_a_wrapper_holds(group: Group, session: Session) -> None:
    opening = HEAD + WRAPPERS["buffer"] + "\nprint('kept')\n"
    assert session.run(opening + "1 / 0").text == "kept\n"
    assert session.run(opening + "import time\ntime.sleep(60)").text == "kept\n"


def test_a_stream_that_never_ends_its_flush_is_a_timeout(session: Session) -> None:
    code = "import sys\nclass Stream:\n    def flush(self):\n        while True: pass\nsys.stdout = Stream()"
    assert session.run(code).status == "timeout"
    assert session.run("print(1)").text == "1\n"


def test_a_call_ends_when_its_threads_have_ended(session: Session) -> None:
    code = "import threading, time\ndef late(): time.sleep(0.2); print('late')\n"
    assert session.run(code + "threading.Thread(target=late).start()\nprint('now')").text == "now\nlate\n"


def test_what_a_thread_prints_after_its_call_is_dropped(session: Session) -> None:
    code = "import threading\ngo = threading.Event()\ndef late(): go.wait(); print('late')\n"
    code += "thread = threading.Thread(target=late, daemon=True)\nthread.start()\nprint('now')"
    assert session.run(code).text == "now\n"
    assert session.run("go.set()\nthread.join()\nprint('then')").text == "then\n"


def test_a_pools_threads_print_into_every_call(session: Session) -> None:
    for make in ("from multiprocessing.pool import ThreadPool\npool = ThreadPool(1)", "pool = ThreadPoolExecutor(1)"):
        opening = "from concurrent.futures import ThreadPoolExecutor\n" + make
        assert session.run(f"{opening}\nlist(pool.map(print, [1]));").text == "1\n"
        assert session.run("list(pool.map(print, [2]));").text == "2\n"


def test_the_encoding_of_the_streams_is_the_readers(session: Session) -> None:
    assert session.run("import sys\nsys.stdout.reconfigure(encoding='utf-16')\nprint('é')").text == "é\n"
