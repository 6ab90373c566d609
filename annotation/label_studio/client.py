"""Client of a Label Studio server with our plug-in (``TaskServer``); idempotent requests are retried. Projects and
tasks need Label Studio's SDK, from the extra ``annotate``; routes of the plug-in do not."""

import getpass
import json
import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, suppress
from datetime import datetime
from email.utils import parsedate_to_datetime
from functools import cached_property
from typing import Any, TypeVar, cast
from urllib.parse import quote

import httpx2

from darkroom.annotation import AnnotationError, FormChanged, ServerUnreachable
from darkroom.annotation.label_studio.forms import PROJECT_SETTINGS, ROUND_FORMS, form, guide_mark
from darkroom.annotation.label_studio.protocol import ChangedTask, Person, TaskListing
from darkroom.sandbox.errors import require_extra

T = TypeVar("T")
MOST_TITLE = 50
"""Characters in the title of a project (Label Studio)."""
PAUSES = (0.5, 1.0, 2.0, 4.0, 8.0)
"""Seconds between attempts of idempotent requests."""
IMPORT_SECONDS = 600.0
"""Long, because an import that timed out here may still be running on the server."""
KEEPALIVE_SECONDS = 1.0
"""The server closes an idle connection after two seconds: a request that goes out in that moment would fail."""
ONCE: Any = {"max_retries": 0}


class LabelStudioClient(AbstractContextManager["LabelStudioClient"]):
    """One server, with the toolkit's own account. Use it as a context manager; methods: see ``TaskServer``."""

    def __init__(self, url: str, token: str, *, seconds: float = 120.0, pauses: Sequence[float] = PAUSES) -> None:
        self.url = url.rstrip("/")
        self._token, self._seconds, self._pauses = token, seconds, pauses
        # no proxy reaches this machine's servers
        self._trust_env = httpx2.URL(self.url).host not in ("127.0.0.1", "::1", "localhost")
        self._operator = {"X-Darkroom-User": str(os.getuid())}  # who runs this command, for the audit log
        with suppress(KeyError):  # a container's user may have no name
            self._operator["X-Darkroom-User"] = quote(getpass.getuser())
        self._http = httpx2.Client(
            base_url=self.url,
            headers={"Authorization": f"Token {token}", **self._operator},
            timeout=seconds,
            limits=httpx2.Limits(keepalive_expiry=KEEPALIVE_SECONDS),
            trust_env=self._trust_env,
        )
        self._clients = ExitStack()
        self._clients.callback(self._http.close)
        self._connection_errors: tuple[type[Exception], ...] = (httpx2.HTTPError, OSError)
        self._api_errors: tuple[type[Exception], ...] = (_Rejected,)

    @cached_property
    def _sdk(self) -> Any:
        """Label Studio's own client. Raises ``ExtraMissing``."""
        require_extra("label_studio_sdk", "annotate", "handing out and pulling tasks")
        import httpx  # the SDK's
        from label_studio_sdk import LabelStudio  # takes more than a second
        from label_studio_sdk.core.api_error import ApiError

        self._connection_errors = (httpx2.HTTPError, httpx.HTTPError, OSError)
        self._api_errors = (_Rejected, ApiError)
        limits = httpx.Limits(keepalive_expiry=KEEPALIVE_SECONDS)
        more: Any = {"limits": limits, "trust_env": self._trust_env, "headers": self._operator}
        client = httpx.Client(timeout=self._seconds, **more)
        self._clients.callback(client.close)
        # the SDK has no types here
        return LabelStudio(base_url=self.url, api_key=self._token, timeout=self._seconds, httpx_client=client)  # type: ignore[no-untyped-call]

    def __exit__(self, *error: object) -> None:
        self._clients.close()

    def people(self) -> list[Person]:
        return people_in(self.accounts())

    def accounts(self) -> list[dict[str, Any]]:
        """Every account, removed ones too (``is_active``)."""
        rows: list[dict[str, Any]] = self._plugin("GET", "people")["people"]
        return [{"is_active": True, "practice": [], **row} for row in rows]  # an earlier version has no such fields

    def add_person(self, email: str, *, role: str, password: str, name: str = "") -> dict[str, Any]:
        """Create an account, change its role, or let it come back; returns id, email, role and token."""
        return self._plugin("POST", "people", json={"email": email, "role": role, "password": password, "name": name})

    def remove_person(self, email: str) -> int:
        """Close an account and keep its submissions; returns the number of its open tasks, which others get."""
        return int(self._plugin("POST", "people/remove", json={"email": email})["n_released"])

    def set_password(self, email: str, password: str) -> None:
        self._plugin("POST", "people/password", json={"email": email, "password": password})

    def practice_sets(self) -> dict[str, str]:
        """The digest of each campaign's practice images on the server."""
        return dict(self._plugin("GET", "practice/sets")["sets"])

    def set_practice(self, campaign: str, content: Mapping[str, Any]) -> None:
        """Replace a campaign's practice images; an empty mapping removes them."""
        self._plugin("POST", "practice/sets", json={"campaign": campaign, "set": content})

    def note_act(self, act: str) -> None:
        """Write what a command did to the server's audit log."""
        self._plugin("POST", "audit", json={"act": act})

    def audit(self) -> Iterator[dict[str, Any]]:
        """The audit log of administrators: time, who, request, status, note."""
        return self._pages("audit", 0)

    def blocked_submissions(self, after: int) -> list[dict[str, Any]]:
        return cast(list[dict[str, Any]], self._plugin("GET", "hits", params={"after": after})["hits"])

    def create_project(self, campaign: str, round: str, *, n_excluded: int, guide: str = "") -> int:
        description = project_description(campaign, round)
        descriptions = {description, *(project_description(campaign, round, r) for r in ROUND_FORMS[round].roles)}
        for project in self._retry(lambda: list(self._sdk.projects.list(request_options=ONCE))):
            if project.description in descriptions:
                return int(project.id)
        created = self._retry(
            lambda: self._sdk.projects.create(
                title=project_title(campaign, round),
                description=description,
                label_config=form(round),
                expert_instruction=guide,
                maximum_annotations=1 + n_excluded,
                request_options=ONCE,
                **PROJECT_SETTINGS,
            )
        )
        return int(created.id)

    def check_project(self, project_id: int, round: str, *, guide: str = "") -> bool:
        try:
            project = self._retry(lambda: self._sdk.projects.get(id=project_id, request_options=ONCE))
        except _NotFound:
            return False
        if (project.label_config or "").strip() != form(round):
            problem = "was changed or belongs to another version of Darkroom"
            mend = "restore it with `darkroom annotate sync --reset-forms`"
            raise FormChanged(f"the form of {self.url}/projects/{project_id}/settings/labeling {problem}; {mend}")
        if guide and guide_mark(guide) not in (project.expert_instruction or ""):
            renewed: Any = {"expert_instruction": guide, "request_options": ONCE}
            self._retry(lambda: self._sdk.projects.update(id=project_id, **renewed))
        return True

    def open_to(self, project_id: int, campaign: str, round: str, roles: Sequence[str]) -> None:
        description = project_description(campaign, round, *roles)
        project = self._retry(lambda: self._sdk.projects.get(id=project_id, request_options=ONCE))
        if project.description != description:
            self._retry(lambda: self._sdk.projects.update(id=project_id, description=description, request_options=ONCE))

    def n_tasks(self, project_id: int) -> int:
        return int(self._retry(lambda: self._sdk.projects.get(id=project_id, request_options=ONCE)).task_number or 0)

    def reset_form(self, project_id: int, round: str, *, guide: str) -> None:
        """Skip a missing project. Raises ``AnnotationError`` when submitted annotations do not fit the form."""
        texts = {"label_config": form(round), "expert_instruction": guide}
        with suppress(_NotFound):
            self._retry(lambda: self._sdk.projects.update(id=project_id, request_options=ONCE, **texts))

    def import_tasks(self, project_id: int, tasks: Sequence[Mapping[str, Any]]) -> list[int]:
        options: Any = {"max_retries": 0, "timeout_in_seconds": int(IMPORT_SECONDS)}
        answer = self._once(
            lambda: self._sdk.projects.import_tasks(
                id=project_id, request=list(tasks), return_task_ids=True, request_options=options
            )
        )
        return list(answer.task_ids or [])

    def tasks_after(self, project_id: int, task_id: int) -> Iterator[TaskListing]:
        for row in self._pages("tasks", task_id, project=project_id):
            data = row["data"] or {}
            yield TaskListing(row["id"], str(data.get("key", "")), row["n_annotations"], data, row["overlap"])

    def now(self) -> datetime:
        return parsedate_to_datetime(self._retry(lambda: self._http.get("/health")).headers["date"])

    def changed_since(
        self, project_id: int, watermark: str, *, n_excluded: int, last_annotation: int = 0
    ) -> Iterator[ChangedTask]:
        filters = {"project": project_id, "since": watermark, "annotation": last_annotation, "minimum": n_excluded}
        return (ChangedTask(row["id"], row["annotations"]) for row in self._pages("changes", 0, **filters))

    def _pages(self, route: str, after: int | None, **filters: Any) -> Iterator[dict[str, Any]]:
        while after is not None:
            page = self._plugin("GET", route, params={**filters, "after": after})
            yield from page["tasks"]
            after = page["next"]

    def unheld_locks(self, project_id: int, *, release: bool) -> list[int]:
        task_ids = cast(list[int], self._plugin("GET", "locks", params={"project": project_id})["tasks"])
        if release and task_ids:  # no request that changes nothing is in the audit log
            self._plugin("POST", "locks", params={"project": project_id})
        return task_ids

    def withdraw(self, task_ids: Sequence[int]) -> list[int]:
        return cast(list[int], self._plugin("POST", "withdrawn", json={"tasks": list(task_ids)})["tasks"])

    def set_overlaps(self, overlaps: Mapping[int, int]) -> None:
        self._plugin("POST", "overlaps", json={"overlaps": {str(task): n for task, n in overlaps.items()}})

    def delete_task(self, task_id: int) -> None:
        self._retry(lambda: self._sdk.tasks.delete(id=str(task_id), request_options=ONCE))

    def _plugin(self, method: str, route: str, **request: Any) -> dict[str, Any]:
        path = f"/darkroom/{route}"

        def call() -> dict[str, Any]:
            response = self._http.request(method, path, **request)
            if response.status_code >= 400:
                raise _Rejected(response.status_code, response.text)
            return cast(dict[str, Any], response.json())

        try:
            return self._retry(call)
        except _NotFound as error:
            problem = "this Label Studio runs without Darkroom's plug-in, or with an older version of it"
            mend = "start this version with `darkroom annotate up`"
            raise AnnotationError(f"{self.url}{path} not found: {problem}; {mend}") from error

    def _retry(self, call: Callable[[], T]) -> T:
        """Repeat an idempotent call while the server is down or fails."""
        for pause in self._pauses:
            try:
                return self._once(call)
            except ServerUnreachable:
                time.sleep(pause)
        return self._once(call)

    def _once(self, call: Callable[[], T]) -> T:
        try:
            return call()
        except self._api_errors as error:
            raise self._error(error) from error
        except self._connection_errors as error:
            problem = f"Label Studio at {self.url} does not answer ({type(error).__name__}: {error})"
            kept = "Everything received so far is kept, and the next sync resumes"
            raise ServerUnreachable(f"{problem}; check `darkroom annotate status`. {kept}") from error
        except ValueError as error:
            raise ServerUnreachable(f"Label Studio at {self.url} answered with invalid JSON: {error}") from error

    def _error(self, error: Any) -> AnnotationError:
        status, body = error.status_code or 0, error_sentence(error.body)
        if status == 401:
            return AnnotationError(
                f"Label Studio at {self.url} rejects the token (401): it was changed or has expired. Set "
                "DARKROOM_STUDIO_TOKEN, or restart the server with `darkroom annotate down`, then `darkroom annotate "
                "up`: a start sets its own"
            )
        if status == 404:
            return _NotFound(f"{self.url}: not found (404): {body}")
        if status >= 500 or status in (408, 429):
            return ServerUnreachable(f"Label Studio at {self.url} fails ({status}): {body}")
        return AnnotationError(f"Label Studio at {self.url} rejects the request ({status}): {body}")


def people_in(accounts: Iterable[Mapping[str, Any]]) -> list[Person]:
    return [Person(row["id"], row["email"], row["name"], row["role"], row["is_active"]) for row in accounts]


def project_description(campaign: str, round: str, *roles: str) -> str:
    """The description that tells the plug-in the round, and the roles if they are not all of the round's."""
    is_narrowed = bool(roles) and set(roles) != set(ROUND_FORMS[round].roles)
    return f"darkroom {round}{':' + ','.join(roles) if is_narrowed else ''} {campaign}"


def project_title(campaign: str, round: str) -> str:
    """The title on its page and on the start page: "Streets: write questions"."""
    return f"{campaign[:1].upper()}{campaign[1:]}: {ROUND_FORMS[round].title}"[:MOST_TITLE]


def error_sentence(body: Any) -> str:
    """The sentence of a server's error, from its JSON; its text without any."""
    if isinstance(body, str):
        try:
            body = json.loads(body)
        except ValueError:
            return " ".join(body.split())[:500]
    if not isinstance(body, Mapping):
        return str(body)[:500]
    detail = str(body.get("detail") or "").strip()
    messages = [] if detail in ("", "Validation error") else [detail]
    messages += _messages(body.get("validation_errors"))
    sentences = (message if message[-1:] in ".!?" else f"{message}." for message in messages)
    return " ".join(sentences)[:500] or "no reason given"


def _messages(errors: Any) -> list[str]:
    """Label Studio's validation errors: lists by field, at any depth."""
    if isinstance(errors, Mapping):
        return [
            message if field == "non_field_errors" else f"{field}: {message}"
            for field, inner in errors.items()
            for message in _messages(inner)
        ]
    if isinstance(errors, list | tuple):
        return [message for inner in errors for message in _messages(inner)]
    return [str(errors)] if errors else []


class _NotFound(AnnotationError):
    """404: no such project or route."""


class _Rejected(Exception):
    """An error of a route of the plug-in, like the SDK's for the others."""

    def __init__(self, status_code: int, body: str) -> None:
        super().__init__(f"status {status_code}: {body}")
        self.status_code, self.body = status_code, body
