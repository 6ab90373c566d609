"""Owner-only annotations through Label Studio's ANNOTATION_MIXIN hook."""

from __future__ import annotations

from typing import Any

from tasks.mixins import AnnotationMixin as Base


class AnnotationMixin(Base):
    """Others may neither read, change nor delete an annotation."""

    def has_permission(self, user: Any) -> bool:
        """Asked for one annotation."""
        return user.is_staff or self.completed_by_id in (None, user.id)
