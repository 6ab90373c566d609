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

_database = globals()["DATABASES"]["default"]
if _database["ENGINE"].endswith("sqlite3"):
    # readers beside one writer, and writers that wait for each other instead of failing with "database is locked"
    _database["OPTIONS"] = {
        "timeout": 60,
        "transaction_mode": "IMMEDIATE",
        "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;",
    }
