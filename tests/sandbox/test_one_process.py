"""What models write with multiprocessing gives its results, in threads, and says so once."""

import pytest

from darkroom.sandbox import Session

SQUARE = "def square(x): return x * x\n"
NOTE = "note: the sandbox starts no processes: multiprocessing runs in threads of this one\n"
SQUARES = {
    "pool": "from multiprocessing import Pool\nwith Pool(4) as p: print(p.map(square, range(4)))",
    "pool_of_its_module": "from multiprocessing.pool import Pool\nwith Pool() as p: print(p.map(square, range(4)))",
    "pool_of_a_context": "import multiprocessing as mp\n"
    "with mp.get_context('spawn').Pool(2, maxtasksperchild=1) as p:\n"
    "    print(list(p.imap(square, range(4))))",
    "executor": "from concurrent.futures import ProcessPoolExecutor\n"
    "with ProcessPoolExecutor(max_workers=2) as p: print(list(p.map(square, range(4), chunksize=2)))",
    "executor_of_its_module": "import concurrent.futures, multiprocessing as mp\n"
    "with concurrent.futures.process.ProcessPoolExecutor(mp_context=mp.get_context()) as p:\n"
    "    print([f.result() for f in [p.submit(square, n) for n in range(4)]])",
    "processes_and_a_queue": "import multiprocessing as mp\nq = mp.Queue()\n"
    "def put(n): q.put(square(n))\nps = [mp.Process(target=put, args=(n,), daemon=True) for n in range(4)]\n"
    "for p in ps: p.start()\nfor p in ps: p.join()\nprint(sorted(q.get() for _ in ps))\nq.close(); q.join_thread()\n"
    "assert {p.exitcode for p in ps} == {0}",
    "a_manager": "from multiprocessing import Manager, Process\nwith Manager() as m:\n    d = m.dict()\n"
    "    def put(n): d[n] = square(n)\n    ps = [Process(target=put, args=(n,)) for n in range(4)]\n"
    "    for p in ps: p.start()\n    for p in ps: p.join()\n    print(sorted(d.values()))",
    "a_value_and_a_pipe": "import multiprocessing as mp\nv = mp.Value('i', 0)\na, b = mp.Pipe()\n"
    "def add(n):\n    with v.get_lock(): v.value += n\nps = [mp.Process(target=add, args=(n,)) for n in (6, 8)]\n"
    "for p in ps: p.start()\nfor p in ps: p.join()\nb.send([0, 1, 4, 9]); assert v.value == 14; print(a.recv())",
}


@pytest.mark.parametrize("name", SQUARES)
def test_processes_are_threads_and_the_first_use_says_so(session: Session, name: str) -> None:
    code = f"{SQUARE}if __name__ == '__main__':\n" + "\n".join(f"    {line}" for line in SQUARES[name].splitlines())
    first = session.run(code)
    assert (first.error, first.text) == (None, f"{NOTE}[0, 1, 4, 9]\n")
    assert session.run(code).text == "[0, 1, 4, 9]\n"


def test_a_pool_of_threads_needs_no_note(session: Session) -> None:
    code = (
        SQUARE + "from multiprocessing.pool import ThreadPool\nwith ThreadPool() as p: print(p.map(square, range(4)))"
    )
    assert session.run(code).text == "[0, 1, 4, 9]\n"
    assert (
        session.run(code.replace("pool import ThreadPool", "dummy import Pool as ThreadPool")).text == "[0, 1, 4, 9]\n"
    )


def test_a_pool_of_many_fits_the_sessions_threads(session: Session) -> None:
    code = f"{SQUARE}from multiprocessing import Pool\nwith Pool(500) as p: print(sum(p.map(square, range(500))))"
    assert session.run(code).text == f"{NOTE}{sum(n * n for n in range(500))}\n"


def test_an_error_in_a_worker_is_the_codes_own(session: Session) -> None:
    code = "from multiprocessing import Pool\nwith Pool(2) as p: p.map(int, ['1', 'x'])"
    assert (session.run(code).error or "").startswith("ValueError: invalid literal for int() with base 10: 'x'")


def test_what_threads_cannot_do_is_said(session: Session) -> None:
    code = "import multiprocessing as mp, time\np = mp.Process(target=time.sleep, args=(1,))\np.start(); p.terminate()"
    assert "the sandbox starts no processes" in (session.run(code).error or "")


def test_who_asks_for_a_fork_is_told_that_there_is_none(session: Session) -> None:
    error = session.run("import multiprocessing as mp\nmp.get_context('fork').Pool(2)").error
    assert error is not None
    assert error.startswith("OSError: the sandbox starts no processes, so none is forked: multiprocessing.Pool runs in")
