"""The access table and how it is read; the walk over a real server is tests/soak/test_annotation_access.py."""

from __future__ import annotations

from pathlib import Path

import pytest

from darkroom.annotation._plugin.darkroom_studio.access import AccessTable, refusal, wait_after

TABLE = AccessTable.load()
TASK = {
    "id": 3,
    "annotators": [7, 8],
    "updated_by": [{"user_id": 7}],
    "total_annotations": 2,
    "overlap": 3,
    "created_at": "2026-03-02",
    "annotations": [
        {"id": 1, "completed_by": 7, "result": ["theirs"], "created_username": "Ann"},
        {"id": 2, "completed_by": {"id": 8, "email": "me"}, "result": ["mine"], "ground_truth": True},
    ],
    "drafts": [{"id": 5, "user": "ann@example.com"}, {"id": 6, "user": "bob@example.com", "created_username": "Bob"}],
    "predictions": [{"id": 9, "result": [], "created_at": "2026-03-02"}],
    "data": {"image": "x", "annotations": "a word of the task's own"},
}


def shaped(value: object, name: str) -> object:
    return TABLE.shaped(value, name, person_id=8, email="bob@example.com")


def test_a_person_sees_of_a_task_what_is_theirs() -> None:
    assert shaped(TASK, "task") == {
        "id": 3,
        "total_annotations": 0,
        "overlap": 1,
        "annotations": [{"id": 2, "completed_by": {"id": 8, "email": "me"}, "result": ["mine"], "ground_truth": False}],
        "drafts": [{"id": 6, "user": "bob@example.com"}],
        "predictions": [{"id": 9, "result": []}],
        "data": {"image": "x", "annotations": "a word of the task's own"},
    }


def test_a_task_with_a_planted_error_looks_like_any_other() -> None:
    planted = TASK | {"annotations": [{"id": 1, "completed_by": 7}, {"id": 4, "completed_by": 9}], "overlap": 4}
    ordinary = TASK | {"annotations": [{"id": 1, "completed_by": 7}], "overlap": 3, "total_annotations": 1}
    assert shaped(planted, "task") == shaped(ordinary, "task")


def test_of_a_list_of_accounts_ones_own_stays() -> None:
    accounts = [{"id": 7, "email": "ann@example.com"}, {"id": 8, "email": "bob@example.com", "date_joined": "x"}]
    assert shaped(accounts, "account_list") == [{"id": 8, "email": "bob@example.com"}]


@pytest.mark.parametrize("content", ["a text", 7, None, [["nested"]]])
def test_what_has_no_shape_is_withheld(content: object) -> None:
    assert shaped(content, "task") in (None, [None], [[None]])


@pytest.mark.parametrize(
    ("route", "method"),
    [
        ("api/tasks/", "POST"),
        ("api/tasks/<int:pk>/", "PATCH"),
        ("api/tasks/<int:pk>/drafts", "GET"),
        ("api/tasks/<int:pk>/annotations/", "GET"),
        ("api/annotations/<int:pk>/", "GET"),
        ("api/annotations/<int:pk>/", "DELETE"),
        ("api/users/(?P<pk>[^/.]+)/$", "PATCH"),
        ("api/users/(?P<pk>[^/.]+)/avatar/$", "POST"),
        ("user/account/", "POST"),
        ("darkroom/people", "GET"),
        ("a/route/of/a/new/version/", "GET"),
    ],
)
def test_what_the_table_does_not_open_is_closed(route: str, method: str) -> None:
    assert TABLE.find(route, method) is None


@pytest.mark.parametrize(
    ("route", "method", "parameters", "body", "said"),
    [
        ("api/tasks/", "GET", {"fields": ["all"]}, None, "'fields'"),
        ("api/tasks/<int:pk>/", "GET", {"review": ["1"]}, None, "'review'"),
        ("api/dm/actions/", "POST", {"id": ["delete_tasks"]}, {}, "'id' with this value"),
        ("api/dm/actions/", "POST", {"id": ["next_task", "delete_tasks"]}, {}, "'id' with this value"),
        ("api/annotations/<int:pk>/", "PATCH", {}, {"ground_truth": True}, "'ground_truth'"),
        ("api/annotations/<int:pk>/", "PATCH", {}, [], "must be a JSON object"),
        ("api/tasks/<int:pk>/annotations/", "POST", {}, {"result": [], "completed_by": 1}, "'completed_by'"),
    ],
)
def test_a_call_with_more_than_its_rule_names_is_refused(
    route: str, method: str, parameters: dict, body: object, said: str
) -> None:
    rule = TABLE.find(route, method)
    assert rule is not None
    assert said in refusal(rule, parameters, body)


def test_a_call_that_keeps_to_its_rule_passes() -> None:
    rule = TABLE.find("api/tasks/<int:pk>/annotations/", "POST")
    assert rule is not None
    assert refusal(rule, {"project": ["3"]}, {"result": [], "lead_time": 3.0, "unique_id": "x"}) == ""


@pytest.mark.parametrize(
    ("n_failures", "elapsed", "wait"),
    [(0, 0, 0), (4, 0, 0), (5, 0, 30), (5, 12, 18), (5, 30, 0), (6, 0, 60), (9, 0, 480), (10, 0, 900), (10**6, 0, 900)],
)
def test_each_wrong_password_after_the_fifth_doubles_the_wait(n_failures: int, elapsed: float, wait: int) -> None:
    assert wait_after(n_failures, elapsed) == wait
    assert wait_after(n_failures, elapsed - 10_000) <= 900, "a clock that was set back holds nobody longer"


def test_numbers_of_other_objects_are_taken_from_the_pages_and_dropped() -> None:
    rules = [rule for row in TABLE.rules.values() for rule in row if rule.dropped]
    assert len(rules) == 5
    for rule in rules:
        assert not {"project", "parent_annotation", "parent_prediction", "id"} & set(rule.body)
        assert refusal(rule, {}, {"result": [], "project": 3, "parent_annotation": 7}) == ""


def test_filters_of_the_next_task_are_not_passed_on() -> None:
    rule = TABLE.find("api/dm/actions/", "POST")
    assert rule is not None
    assert rule.ignores_body
    assert refusal(rule, {"id": ["next_task"], "project": ["3"]}, {"filters": {"items": ["x"]}}) == ""


def test_every_rule_without_a_shape_is_public_a_page_or_a_constant() -> None:
    """JSON that Label Studio writes is cut to its shape; one's own draft is deleted without an answer."""
    rules = [rule for row in TABLE.rules.values() for rule in row]
    open_json = [rule.route for rule in rules if rule.route.startswith("api/") and not rule.answer and not rule.public]
    constant = [rule.route for rule in rules if rule.constant is not None]
    assert set(open_json) - set(constant) == {"api/drafts/<int:pk>/", "api/version/"}


def test_every_number_in_a_route_of_people_must_be_their_own() -> None:
    rules = [rule for row in TABLE.rules.values() for rule in row if not rule.public]
    numbered = [rule for rule in rules if "<int:" in rule.route or "(?P<pk>" in rule.route]
    assert [rule.route for rule in numbered if not rule.own] == []


def test_shapes_that_rules_and_shapes_name_exist() -> None:
    named = {rule.answer for row in TABLE.rules.values() for rule in row if rule.answer}
    nested = {inner for shape in TABLE.shapes.values() for inner in shape.keys.values() if inner}
    assert named | nested == set(TABLE.shapes)


def test_a_table_of_a_file_is_read(tmp_path: Path) -> None:
    path = tmp_path / "access.yaml"
    path.write_text("public: []\npeople: [{route: a/, methods: [GET], parameters: {x: [1]}}]\nanswers: {}\n")
    rule = AccessTable.load(path).find("a/", "GET")
    assert rule is not None
    assert (rule.parameters, rule.public) == ({"x": [1]}, False)
