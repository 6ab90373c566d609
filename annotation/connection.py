"""Which server a workspace talks to: the one it started, or the one that the environment names."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping

from annotation.faults import AnnotationFault, ServerUnreachable
from annotation.server import StudioHome
from annotation.studio import Studio
from pipelines.workspace import Workspace

URL, TOKEN = "DARKROOM_STUDIO_URL", "DARKROOM_STUDIO_TOKEN"


def studio_home(workspace: Workspace) -> StudioHome:
    """Where the workspace keeps its own server."""
    return StudioHome(workspace.annotation, workspace.environments, workspace.images_url)


def find_task_url(workspace: Workspace, environment: Mapping[str, str] = os.environ) -> Callable[[int, int], str]:
    """Where a task (project, number) can be looked at; a path alone where no server is known."""
    server = studio_home(workspace).find()
    url = (environment.get(URL) or (server.url if server else "")).rstrip("/")
    return lambda project, task: f"{url}/projects/{project}/data?task={task}"


def connect(workspace: Workspace, environment: Mapping[str, str] = os.environ) -> Studio:
    """The server. Raises ``AnnotationFault`` for half of a name, ``ServerUnreachable`` when none runs here."""
    url, token = environment.get(URL), environment.get(TOKEN)
    if url and token:
        return Studio(url, token)
    if url or token:
        raise AnnotationFault(f"a server elsewhere needs both {URL} and {TOKEN}")
    home = studio_home(workspace)
    server = home.find()
    if server is None or not server.process.is_running:
        raise ServerUnreachable(
            f"no Label Studio runs for {workspace.annotation}: start one with `darkroom annotate up`, or name one with "
            f"{URL} and {TOKEN}"
        )
    return Studio(server.url, home.admin.token)
