"""Per-project access through Label Studio's PROJECT_MIXIN hook. One hook a module: a shared one imports in a circle."""

from __future__ import annotations

from typing import Any

from darkroom_studio.roles import OPEN_TO, role_of, round_of
from projects.mixins import ProjectMixin as Base


class ProjectMixin(Base):
    """Rounds are open to the roles that work in them; other teams' projects as ever."""

    def has_permission(self, user: Any) -> bool:
        """Asked for the project, its tasks and its stream."""
        if not super().has_permission(user):
            return False
        found = round_of(self)
        return user.is_staff or not found or role_of(user) in OPEN_TO[found]
