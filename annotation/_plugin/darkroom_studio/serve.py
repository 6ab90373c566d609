"""gunicorn's application: loaded and prepared once (``--preload``), then the workers are forked from it."""

from __future__ import annotations

from darkroom_studio import bootstrap

bootstrap.main()

from django.core.wsgi import get_wsgi_application  # noqa: E402  # isort: skip
from django.db import connections  # noqa: E402  # isort: skip
from django.urls import get_resolver  # noqa: E402  # isort: skip

application = get_wsgi_application()
assert get_resolver().url_patterns, "loads every view before the workers are forked"
connections.close_all()  # a connection cannot be shared by processes
bootstrap.say_step("serve")
