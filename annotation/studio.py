"""The Label Studio server as the rounds need it: few questions and orders, asked again where asking twice is safe."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from email.utils import parsedate_to_datetime
from functools import partial
from types import TracebackType
from typing import Any, Self, TypeVar

import httpx
from label_studio_sdk import LabelStudio
from label_studio_sdk.core.api_error import ApiError

from annotation.faults import AnnotationFault, ServerUnreachable
from annotation.forms import form, instructions
from annotation.journal import Person
from annotation.task_server import Changed, Listed

T = TypeVar("T")
PAGE = 200
PAUSES = (0.5, 1.0, 2.0, 4.0, 8.0)
"""Seconds between attempts at what may be asked twice."""
IMPORT_SECONDS = 600.0
"""An import that is given up may still be under way on the server, so it is given time."""
ONCE: Any = {"max_retries": 0}
TITLES = {
    "annotate": "1 Write records",
    "cross_check": "2 Check records",
    "accept": "3 Accept records",
    "rework": "4 Write rejected records anew",
    "review": "Review trajectories",
    "verify": "Verify public rows",
    "suitability": "Would a drawing help?",
}


class Studio:
    """One server, with the toolkit's own account. Use it as a context manager."""

    def __init__(self, url: str, token: str, *, seconds: float = 120.0, pauses: Sequence[float] = PAUSES) -> None:
        self.url = url.rstrip("/")
        self._pauses = pauses
        local = httpx.URL(self.url).host in ("127.0.0.1", "::1", "localhost")  # no proxy knows this machine's servers
        headers = {"Authorization": f"Token {token}"}
        self._http = httpx.Client(base_url=self.url, headers=headers, timeout=seconds, trust_env=not local)
        # the SDK has no types here
        self._sdk: Any = LabelStudio(base_url=self.url, api_key=token, timeout=seconds, httpx_client=self._http)  # type: ignore[no-untyped-call]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, fault: BaseException | None, tb: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Closes the connections."""
        self._http.close()

    def people(self) -> list[Person]:
        """Every account. Raises ``AnnotationFault`` when the server is another one than `darkroom annotate up` made."""
        rows = self._plugin("GET", "people")["people"]
        return [Person(row["id"], row["email"], row["name"], row["role"]) for row in rows]

    def add_person(self, email: str, *, role: str, password: str, name: str = "") -> dict[str, Any]:
        """Makes an account or changes its role; answers with id, email, role and token."""
        body = {"email": email, "role": role, "password": password, "name": name}
        return self._plugin("POST", "people", json=body)

    def hits(self, after: int) -> list[dict[str, Any]]:
        """What the gate refused, from the place ``after`` on."""
        found: list[dict[str, Any]] = self._plugin("GET", "hits", params={"after": after})["hits"]
        return found

    def create_project(self, campaign: str, round: str, *, n_seats: int) -> int:
        """The project of a round; one with the same description is taken as it is."""
        description = f"darkroom {round} {campaign}"
        for project in self._ask(lambda: list(self._sdk.projects.list(request_options=ONCE))):
            if project.description == description:
                return int(project.id)
        created = self._ask(
            lambda: self._sdk.projects.create(
                title=f"{campaign} · {TITLES[round]}",
                description=description,
                label_config=form(round),
                expert_instruction=instructions(round),
                show_instruction=True,
                maximum_annotations=1 + n_seats,
                sampling="Sequential sampling",
                skip_queue="REQUEUE_FOR_OTHERS",
                show_skip_button=True,
                enable_empty_annotation=False,
                show_collab_predictions=True,
                request_options=ONCE,
            )
        )
        return int(created.id)

    def check_project(self, project_id: int, round: str) -> bool:
        """Whether the project is there. Raises ``AnnotationFault`` when its form is not the one that goes with us."""
        try:
            project = self._ask(lambda: self._sdk.projects.get(id=project_id, request_options=ONCE))
        except _Missing:
            return False
        if (project.label_config or "").strip() != form(round):
            raise AnnotationFault(
                f"the form of {self.url}/projects/{project_id}/settings/labeling was changed, or comes from another "
                "version of Darkroom: put it back with `darkroom annotate sync --reset-forms`"
            )
        return True

    def reset_form(self, project_id: int, round: str) -> None:
        """Gives the project our form. Raises ``AnnotationFault`` when the server finds annotations that it excludes."""
        self._ask(
            lambda: self._sdk.projects.update(
                id=project_id,
                label_config=form(round),
                expert_instruction=instructions(round),
                request_options=ONCE,
            )
        )

    def import_tasks(self, project_id: int, tasks: Sequence[Mapping[str, Any]]) -> list[int]:
        """The new tasks' numbers, in order. Never tried twice: who calls looks for its keys first."""
        options: Any = {"max_retries": 0, "timeout_in_seconds": int(IMPORT_SECONDS)}
        answer = self._once(
            lambda: self._sdk.projects.import_tasks(
                id=project_id, request=list(tasks), return_task_ids=True, request_options=options
            )
        )
        return list(answer.task_ids or [])

    def tasks_after(self, project_id: int, task_id: int) -> Iterator[Listed]:
        """Every task that is younger than ``task_id``."""
        for task in self._tasks(project_id, "task_only", [("tasks:id", "greater", "Number", task_id)]):
            yield Listed(int(task.id), str((task.data or {}).get("key", "")), int(task.total_annotations or 0))

    def now(self) -> datetime:
        """The server's clock, to the second."""
        response = self._ask(lambda: self._http.get("/health"))
        return parsedate_to_datetime(response.headers["date"])

    def changed_since(self, project_id: int, watermark: str, *, n_seats: int) -> Iterator[Changed]:
        """Tasks with more annotations than seats, or skips, that changed after ``watermark`` (empty: ever)."""
        since = [("tasks:updated_at", "greater", "Datetime", watermark)] if watermark else []
        for column, least in (("tasks:total_annotations", n_seats), ("tasks:cancelled_annotations", 0)):
            for task in self._tasks(project_id, "all", [*since, (column, "greater", "Number", least)]):
                yield Changed(int(task.id), [dict(one) for one in task.annotations or ()])

    def set_overlaps(self, overlaps: Mapping[int, int]) -> None:
        """How many people's annotations complete each task; a task that had enough and now lacks some is open again."""
        self._plugin("POST", "overlaps", json={"overlaps": {str(task): n for task, n in overlaps.items()}})

    def delete_task(self, task_id: int) -> None:
        """Takes a task away."""
        self._ask(lambda: self._sdk.tasks.delete(id=str(task_id), request_options=ONCE))

    def _tasks(self, project_id: int, fields: Any, filters: Sequence[tuple[str, str, str, Any]]) -> Iterator[Any]:
        items = [{"filter": f"filter:{c}", "operator": o, "type": t, "value": v} for c, o, t, v in filters]
        query = json.dumps({"filters": {"conjunction": "and", "items": items}, "ordering": ["tasks:id"]})
        page = 1
        while True:
            found = self._ask(partial(self._page, project_id, fields, query, page))
            yield from found
            if len(found) < PAGE:
                return
            page += 1

    def _page(self, project_id: int, fields: Any, query: str, page: int) -> list[Any]:
        try:
            pager = self._sdk.tasks.list(
                project=project_id, fields=fields, query=query, page=page, page_size=PAGE, request_options=ONCE
            )
        except ApiError as fault:
            if fault.status_code == 404 and page > 1:  # past the end
                return []
            raise
        return list(pager.items or ())

    def _plugin(self, method: str, route: str, **sent: Any) -> dict[str, Any]:
        return self._send(method, f"/darkroom/{route}", **sent)

    def _send(self, method: str, path: str, **sent: Any) -> dict[str, Any]:
        def call() -> dict[str, Any]:
            response = self._http.request(method, path, **sent)
            if response.status_code >= 400:
                raise ApiError(status_code=response.status_code, body=response.text)
            found: dict[str, Any] = response.json()
            return found

        try:
            return self._ask(call)
        except _Missing as fault:
            raise AnnotationFault(
                f"{self.url}{path} is not there: this Label Studio runs without Darkroom's plug-in. Start one with "
                "`darkroom annotate up`"
            ) from fault

    def _ask(self, call: Callable[[], T]) -> T:
        """Calls what may be called twice, again and again while the server is down or in trouble."""
        for pause in self._pauses:
            try:
                return self._once(call)
            except ServerUnreachable:
                time.sleep(pause)
        return self._once(call)

    def _once(self, call: Callable[[], T]) -> T:
        try:
            return call()
        except ApiError as fault:
            raise self._fault(fault) from fault
        except (httpx.HTTPError, OSError) as fault:
            raise ServerUnreachable(
                f"Label Studio at {self.url} does not answer ({type(fault).__name__}: {fault}). See `darkroom annotate "
                "status`; what came in is kept, and the next sync goes on from there"
            ) from fault
        except ValueError as fault:
            raise ServerUnreachable(f"Label Studio at {self.url} answered no JSON: {fault}") from fault

    def _fault(self, fault: ApiError) -> AnnotationFault:
        status, said = fault.status_code or 0, str(fault.body)[:500]
        if status == 401:
            return AnnotationFault(
                f"Label Studio at {self.url} refuses the token (401): it was changed or has expired. Set "
                "DARKROOM_STUDIO_TOKEN, or start the server anew with `darkroom annotate up`, which sets its own"
            )
        if status == 404:
            return _Missing(f"{self.url}: not there (404): {said}")
        if status >= 500 or status in (408, 429):
            return ServerUnreachable(f"Label Studio at {self.url} is in trouble ({status}): {said}")
        return AnnotationFault(f"Label Studio at {self.url} refuses ({status}): {said}")


class _Missing(AnnotationFault):
    """404: the project or the route is not there."""
