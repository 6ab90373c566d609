"""Label Studio's community settings with the plug-in added: ``DJANGO_SETTINGS_MODULE=darkroom_studio.settings``."""

import sys
from pathlib import Path

import label_studio

# Label Studio's modules import each other as top-level ones, so its command puts its folder on the path. PYTHONPATH
# would not do: Python would also run the sitecustomize in that folder, which needs a test tool.
_FOLDER = str(Path(label_studio.__file__).parent)
if _FOLDER not in sys.path:
    sys.path.insert(0, _FOLDER)

# The base comes first: Label Studio's own module reads django.conf.settings while it is being imported, and Django then
# finds this half-imported module.
from label_studio.core.settings.base import *  # noqa: E402, F403  # isort: skip
from label_studio.core.settings.label_studio import *  # noqa: E402, F403  # isort: skip

MIDDLEWARE = [
    "darkroom_studio.middleware.SlowLineMiddleware",
    *globals()["MIDDLEWARE"],
    "darkroom_studio.fence.AccessMiddleware",
    "darkroom_studio.middleware.SubmissionMiddleware",
]
ROOT_URLCONF = "darkroom_studio.urls"
PROJECT_MIXIN = "darkroom_studio.mixins.ProjectMixin"
ANNOTATION_MIXIN = "darkroom_studio.mixins.AnnotationMixin"
USER_MIXIN = "darkroom_studio.mixins.UserMixin"
TEMPLATES = globals()["TEMPLATES"]
TEMPLATES[0]["DIRS"] = [str(Path(__file__).parent / "templates"), *TEMPLATES[0]["DIRS"]]

_database = globals()["DATABASES"]["default"]
if _database["ENGINE"].endswith("sqlite3"):
    # readers beside one writer, and writers that wait for each other instead of failing with "database is locked"
    _database["OPTIONS"] = {
        "timeout": 60,
        "transaction_mode": "IMMEDIATE",
        "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;",
    }
