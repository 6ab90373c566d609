"""Label Studio's permission hooks: settings name these classes, its models inherit from them."""

from __future__ import annotations

from typing import Any

from darkroom_studio.access import is_open
from tasks.mixins import AnnotationMixin as BaseAnnotationMixin


class AnnotationMixin(BaseAnnotationMixin):
    """Access to an annotation, for reading, changing and deleting: its author and staff only."""

    def has_permission(self, user: Any) -> bool:
        return user.is_staff or self.completed_by_id in (None, user.id)


# The next imports load Label Studio's models, and those load the class above from this module.
from projects.mixins import ProjectMixin as BaseProjectMixin  # noqa: E402  # isort: skip


class ProjectMixin(BaseProjectMixin):
    """Access to a project, its tasks and its label stream: the roles of its round only."""

    def has_permission(self, user: Any) -> bool:
        return bool(super().has_permission(user)) and is_open(self, user)


from users.mixins import UserMixin as BaseUserMixin  # noqa: E402  # isort: skip


class UserMixin(BaseUserMixin):
    """Label Studio shows an annotator only their own annotations on a task; everybody but staff is one."""

    @property
    def is_annotator(self) -> bool:
        return not self.is_staff
