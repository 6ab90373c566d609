"""The plug-in's routes below ``/darkroom/``, in front of Label Studio's own. Who may use them: ``access.yaml``.

people        GET lists accounts; POST {"email", "role", "password", "name"} creates one, changes its role, or lets a
              removed one come back (staff)
people/remove, people/password  POST {"email"}, {"email", "password"} (staff)
hits          GET ?after=N: submissions that validation blocked, and the number to continue from (staff)
tasks, changes  the tasks of a project, and those with new work (staff; ``changes.py``)
overlaps      POST {"overlaps": {"<task>": <annotations that complete it>}} (staff)
images/<sha>  an image of the store (every account)
tasks/<n>/answer  POST {"answer"}: a checker's own answer, before the record is shown (to whom the task was given)
"""

from __future__ import annotations

from core.urls import urlpatterns as studio_urlpatterns
from darkroom_studio.accounts import accounts
from darkroom_studio.administration import blocked_submissions, overlaps
from darkroom_studio.blind_answers import answer
from darkroom_studio.changes import changes, tasks
from darkroom_studio.departures import password, remove
from darkroom_studio.images import image
from darkroom_studio.start import urlpatterns as start_urlpatterns
from django.urls import path

urlpatterns = [
    path("darkroom/people", accounts),
    path("darkroom/people/remove", remove),
    path("darkroom/people/password", password),
    path("darkroom/hits", blocked_submissions),
    path("darkroom/tasks", tasks),
    path("darkroom/changes", changes),
    path("darkroom/overlaps", overlaps),
    path("darkroom/images/<str:sha256>", image),
    path("darkroom/tasks/<int:pk>/answer", answer),
    *start_urlpatterns,
    *studio_urlpatterns,
]
