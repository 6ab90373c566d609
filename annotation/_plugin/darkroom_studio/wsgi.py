"""What gunicorn serves: ``gunicorn darkroom_studio.wsgi:application``."""

from darkroom_studio import paths  # noqa: F401  # first: the settings need the path

from django.core.wsgi import get_wsgi_application  # isort: skip

application = get_wsgi_application()
