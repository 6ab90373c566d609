"""Plug-in for Label Studio 1.23.2 (no fork): roles, access control and validation of submissions on the server.

settings      entry point (``DJANGO_SETTINGS_MODULE``): Label Studio's settings with the parts below added
bootstrap     database migration and the admin account
permissions   roles, open rounds, blinding (no Django)
validation    the rules of a submission, and the log of blocked ones (no Django)
middleware    applies both to every request
mixins        Label Studio's own permission hooks
views         the routes below ``/darkroom/``
"""
