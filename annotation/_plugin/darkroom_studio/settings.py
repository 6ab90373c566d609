"""Label Studio's community settings with the plug-in added: ``DJANGO_SETTINGS_MODULE=darkroom_studio.settings``."""

# The base comes first: Label Studio's own module reads django.conf.settings while it is being imported, and Django then
# finds this half-imported module.
from label_studio.core.settings.base import *  # noqa: F403  # isort: skip
from label_studio.core.settings.label_studio import *  # noqa: F403  # isort: skip

MIDDLEWARE = [*globals()["MIDDLEWARE"], "darkroom_studio.fence.Fence", "darkroom_studio.gate.Gate"]
ROOT_URLCONF = "darkroom_studio.urls"
PROJECT_MIXIN = "darkroom_studio.project_mixin.ProjectMixin"
ANNOTATION_MIXIN = "darkroom_studio.annotation_mixin.AnnotationMixin"
USER_MIXIN = "darkroom_studio.user_mixin.UserMixin"
