"""The plug-in's routes, in front of Label Studio's own: below ``/darkroom/``, and the start page.

``access.yaml`` says who may use them.

people        GET lists accounts; POST {"email", "role", "password", "name"} creates one, changes its role, or lets a
              removed one come back (staff)
people/remove, people/password  POST {"email"}, {"email", "password"} (staff)
hits          GET ?after=N: submissions that validation blocked, and the number to continue from (staff)
tasks, changes, withdrawn  the tasks of a project, those with new work, and their end (staff; ``administration.py``)
locks         tasks with locks of people who do not work on them (staff)
overlaps      POST {"overlaps": {"<task>": <annotations that complete it>}} (staff)
images/<sha>  an image of the store (every account)
tasks/<n>/answer  POST {"answer"}: a checker's own answer, before the record is shown (to whom the task was given)
audit         GET ?after=N: what administrators did; POST {"act"}: what a command did (staff)
practice      the page of a person's practice, and what they submit there (every account); practice/sets (staff)
progress      GET ?project=N: the line above a task, ``{"text": "7 of 40 today, 3 sent back to you"}``
"""

from __future__ import annotations

from core.urls import urlpatterns as studio_urlpatterns
from darkroom_studio import administration as staff
from darkroom_studio.images import image
from darkroom_studio.own_tables import answer
from darkroom_studio.practice import practice, sets
from darkroom_studio.start import home, progress, start
from django.urls import path, re_path

urlpatterns = [
    path("darkroom/people", staff.accounts),
    path("darkroom/people/remove", staff.remove),
    path("darkroom/people/password", staff.password),
    path("darkroom/hits", staff.blocked_submissions),
    path("darkroom/tasks", staff.tasks),
    path("darkroom/withdrawn", staff.withdrawn),
    path("darkroom/changes", staff.changes),
    path("darkroom/overlaps", staff.overlaps),
    path("darkroom/locks", staff.locks),
    path("darkroom/audit", staff.audit),
    path("darkroom/images/<str:sha256>", image),
    path("darkroom/tasks/<int:pk>/answer", answer),
    path("darkroom/progress", progress),
    path("darkroom/practice", practice),
    path("darkroom/practice/sets", sets),
    path("projects/", start),
    re_path(r"^$", home),
    *studio_urlpatterns,
]
