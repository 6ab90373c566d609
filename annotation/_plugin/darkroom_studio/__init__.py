"""Plug-in for Label Studio 1.23.2 (no fork): roles, access control and validation of submissions on the server.
``settings`` is the entry point (``DJANGO_SETTINGS_MODULE``); ``access`` and ``validation`` need no Django."""
