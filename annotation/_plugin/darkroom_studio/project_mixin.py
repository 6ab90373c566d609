"""Per-project access through Label Studio's PROJECT_MIXIN hook. One hook a module: a shared one imports in a circle."""

from __future__ import annotations

from typing import Any

from darkroom_studio.roles import is_open
from projects.mixins import ProjectMixin as Base


class ProjectMixin(Base):
    """Rounds are open to the roles that work in them; other teams' projects as ever."""

    def has_permission(self, user: Any) -> bool:
        """Asked for the project, its tasks and its stream."""
        return bool(super().has_permission(user)) and is_open(self, user)
