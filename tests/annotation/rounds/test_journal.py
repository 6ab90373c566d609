from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings, strategies as st

from darkroom.annotation import AnnotationError
from darkroom.annotation.rounds.journal import Journal
from darkroom.annotation.rounds.journal_file import RoundProject, TaskRequest
from darkroom.annotation.rounds.submissions import ROUNDS

RAW = {"completed_by": 2, "updated_by": None, "result": [], "was_cancelled": False, "lead_time": 1.0}


def demand(item: str = "a", round: str = "annotate", serial: int = 0, gold: str = "") -> TaskRequest:
    return TaskRequest(round, item, 0, serial, planted_error=gold)


@pytest.fixture
def journal(tmp_path: Path) -> Journal:
    return Journal(tmp_path)


def test_a_demand_is_entered_once(journal: Journal) -> None:
    for _ in range(2):
        journal.request([demand(), demand("b")])
    assert [item for item, _ in journal.record_tasks(ROUNDS)] == ["a", "b"]


def test_a_request_is_complete_with_one_annotation() -> None:
    assert (demand().overlap, demand().n_wanted) == (1, 1)


DEMANDS = [demand(), demand("b"), demand(round="accept"), demand(serial=1), demand(gold="wrong_answer")]


def test_keys_are_random_and_kept(journal: Journal, tmp_path: Path) -> None:
    keys = journal.request(DEMANDS)
    assert len({*keys}) == len(DEMANDS)
    assert journal.request(DEMANDS) == keys
    assert Journal(tmp_path).request(DEMANDS) == keys, "over restarts"
    assert not {*keys} & {*Journal(tmp_path / "another").request(DEMANDS)}
    assert not {*keys} & {one.key("c") for one in DEMANDS}


def test_names_in_recordings_differ_with_everything() -> None:
    assert len({one.key("c") for one in DEMANDS} | {demand().key("other")}) == 6


def test_the_secret_is_drawn_once_in_a_file_for_its_owner_only(journal: Journal, tmp_path: Path) -> None:
    assert journal.seed == Journal(tmp_path).seed != Journal(tmp_path / "another").seed
    assert journal.path.stat().st_mode & 0o777 == 0o600


def test_of_two_tasks_with_one_key_the_first_counts(journal: Journal) -> None:
    [key] = journal.request([demand()])
    journal.add_tasks(9, [(key, 1)])
    journal.add_tasks(9, [(key, 2)])
    [(_, [work])] = journal.record_tasks(ROUNDS)
    assert (work.task_id, work.project_id) == (1, 9)


def test_every_state_of_an_annotation_is_kept_and_the_same_one_once(journal: Journal) -> None:
    [key] = journal.request([demand()])
    journal.add_tasks(9, [(key, 1)])
    states = [{"id": 5, **RAW}, {"id": 5, **RAW, "created_ago": "2 minutes"}, {"id": 5, **RAW, "lead_time": 2.0}]
    numbers = []
    for state in states:
        journal.add_versions(1, [state])
        numbers.append(journal.last_version)
    assert numbers[0] == numbers[1] < numbers[2]
    [(_, [work])] = journal.record_tasks(ROUNDS)
    assert [revision.raw["lead_time"] for revision in work.versions] == [1.0, 2.0]


def test_what_is_gone_from_the_server_does_not_count_and_may_come_back(journal: Journal) -> None:
    [key] = journal.request([demand()])
    journal.add_tasks(9, [(key, 1)])
    journal.add_versions(1, [{"id": 5, **RAW}])
    journal.add_versions(1, [])
    assert [len(work.versions) for _, works in journal.record_tasks(ROUNDS) for work in works] == [0]
    journal.add_versions(1, [{"id": 5, **RAW}])
    assert [len(work.versions) for _, works in journal.record_tasks(ROUNDS) for work in works] == [1]


def test_a_forgotten_project_keeps_what_was_submitted(journal: Journal) -> None:
    first, second = journal.request([demand("a"), demand("b")])
    journal.set_project("annotate", RoundProject(9))
    journal.add_tasks(9, [(first, 1), (second, 2)])
    journal.add_versions(1, [{"id": 5, **RAW}])
    journal.forget_project("annotate")
    assert journal.project("annotate") is None
    assert [[work.task_id for work in works] for _, works in journal.record_tasks(ROUNDS)] == [[1], [None]]


def test_a_second_sync_is_told_to_wait(journal: Journal, tmp_path: Path) -> None:
    with journal.lock(), pytest.raises(AnnotationError, match="another sync"), Journal(tmp_path).lock():
        pass


def test_a_file_that_cannot_be_opened_is_not_called_damaged(tmp_path: Path) -> None:
    (tmp_path / "journal.sqlite").mkdir()
    with pytest.raises(AnnotationError, match=r"unable to open .*To do: make it and its folder writable"):
        Journal(tmp_path)


def test_a_damaged_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "journal.sqlite").write_bytes(b"no database" * 100)
    with pytest.raises(AnnotationError, match=r"journal\.sqlite cannot be opened"):
        Journal(tmp_path)


def test_what_fails_in_between_leaves_nothing(journal: Journal) -> None:
    journal.request([demand()])
    before = journal.fingerprint
    with pytest.raises(KeyError), journal.transaction():
        journal.add_versions(1, [{"id": 5, **RAW}, RAW])
    assert journal.fingerprint == before


@settings(max_examples=30, deadline=None)
@given(st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 2)), max_size=20))
def test_entering_in_any_order_any_number_of_times_gives_one_row_per_demand(
    tmp_path_factory, entered: list[tuple[str, int]]
) -> None:
    with Journal(tmp_path_factory.mktemp("journal")) as journal:
        for item, serial in entered:
            journal.request([demand(item, serial=serial)])
        found = {(item, work.request.serial) for item, works in journal.record_tasks(ROUNDS) for work in works}
        assert found == set(entered)
