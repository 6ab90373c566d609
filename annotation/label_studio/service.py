"""systemd units of one workspace: the server, and the sync that pulls submissions."""

import getpass
import os
import re
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path

from darkroom.annotation import AnnotationError
from darkroom.annotation.label_studio.forms import templates
from darkroom.pipelines.storage.workspace import Workspace

UNITS = ("darkroom-annotate.service", "darkroom-annotate-sync.service")
SETTINGS = ("DARKROOM_LOCAL", "DARKROOM_IMAGES", "DARKROOM_ENVIRONMENTS")
"""What the units take over from the environment; everything else belongs in ``service.env``."""


def service_units(workspace: Workspace, environment: Mapping[str, str] = os.environ) -> dict[str, str]:
    """The units by file name, with this workspace's paths. Raises ``AnnotationError`` without the program."""
    beside = str(Path(sys.executable).parent)
    program = shutil.which("darkroom", path=f"{beside}{os.pathsep}{environment.get('PATH', os.defpath)}")
    if program is None:
        raise AnnotationError(f"no program `darkroom` in {beside} or on PATH; install the package first")
    settings = {"DARKROOM_HOME": str(workspace.home)}
    settings |= {name: environment[name] for name in SETTINGS if environment.get(name)}
    found = templates(Path(__file__).parent / "templates", escapes=False)  # not HTML: `quoted` escapes
    values = {
        "user": getpass.getuser(),
        "settings": [quoted(f"{name}={value}") for name, value in settings.items()],
        "environment_file": _specifiers(str(workspace.annotation.absolute() / "service.env")),
        "program": quoted(os.path.abspath(program)).replace("$", "$$"),
    }
    return {name: found.get_template(f"{name}.jinja").render(values) + "\n" for name in UNITS}


def quoted(text: str) -> str:
    """One word of a unit file (systemd.syntax, systemd.unit: specifiers)."""
    if re.search(r"[\x00-\x1f\x7f]", text):
        raise AnnotationError(f"a systemd unit cannot hold {text!r}")
    escaped = _specifiers(text).replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _specifiers(text: str) -> str:
    return text.replace("%", "%%")
