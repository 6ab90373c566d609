"""Start of the server: migrates the database, if it must be, and creates the admin account. Idempotent.

gunicorn calls ``application`` in its first process. ``python -m darkroom_studio.bootstrap`` makes the template of a
database. Each step is a line of the log, which ``darkroom annotate up`` shows.
"""

from __future__ import annotations

import lzma
import os
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

import django

STEP = "darkroom step: "


def application() -> Any:
    """gunicorn's application: loaded and prepared once (``--preload``), then the workers are forked from it."""
    from django.core.wsgi import get_wsgi_application
    from django.db import connections
    from django.urls import get_resolver

    prepare_database()
    say_step("accounts")
    _admin()
    prepared = get_wsgi_application()
    assert get_resolver().url_patterns, "loads every view before the workers are forked"
    connections.close_all()  # a connection cannot be shared by processes
    say_step("serve")
    return prepared


def prepare_database() -> None:
    installed, expected = version("label-studio"), os.environ["STUDIO_VERSION"]
    if installed != expected:  # the plug-in uses internals of this version, and its routes are classified
        mend = f"Remove that folder, and `darkroom annotate up` installs {expected}"
        where = f"is installed in {sys.prefix}; this version of Darkroom works with {expected} only"
        sys.exit(f"Label Studio {installed} {where}. {mend}")
    django.setup()
    _migrate()
    from darkroom_studio.own_tables import create_tables

    create_tables()


def say_step(name: str) -> None:
    print(f"{STEP}{name}", flush=True)


def _migrate() -> None:
    """Migrate only if it must be: Django's command looks at every model, for seconds."""
    from django.core.management import call_command
    from django.db import connection
    from django.db.migrations.executor import MigrationExecutor

    _restore_schema()
    executor = MigrationExecutor(connection)
    _check_database(executor.loader)
    if executor.migration_plan(executor.loader.graph.leaf_nodes()):
        say_step("migrate")
        call_command("migrate", verbosity=0, interactive=False)


def _restore_schema() -> None:
    """Fill an empty PostgreSQL database from the file that ``STUDIO_SCHEMA`` names; the rest is then migrated."""
    from django.db import DatabaseError, connection, transaction

    path = os.environ.get("STUDIO_SCHEMA")
    if connection.vendor != "postgresql" or not path or connection.introspection.table_names():
        return
    say_step("migrate")
    try:
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute(lzma.decompress(Path(path).read_bytes()).decode())
    except DatabaseError as error:  # a PostgreSQL that does not know something in it
        print(f"the prepared tables do not fit this PostgreSQL ({error}); migrating instead", flush=True)
    connection.close()  # the file sets the search path of its session


def _check_database(loader: Any) -> None:
    """Exit on a database of a newer version: Django ignores migrations that it does not know."""
    on_disk = loader.disk_migrations
    recognized = {*on_disk, *(replaced for migration in on_disk.values() for replaced in migration.replaces)}
    apps = {app for app, _ in on_disk}
    applied = (migration for migration in loader.applied_migrations if migration[0] in apps)
    unknown = sorted(".".join(migration) for migration in applied if migration not in recognized)
    if unknown:
        n, studio = len(unknown), os.environ["STUDIO_VERSION"]
        migrations = f"{n} migrations that {studio} does not know, such as {unknown[-1]}"
        mend = "Start the version of Darkroom that wrote it, or restore the backup from before the upgrade"
        sys.exit(f"this database was written by another version of Label Studio, with {migrations}. {mend}")


def _admin() -> None:
    from organizations.models import Organization
    from rest_framework.authtoken.models import Token
    from users.models import User

    email = os.environ["STUDIO_ADMIN_EMAIL"]
    user = User.objects.filter(email=email).first() or User.objects.create_user(email=email)
    if not user.check_password(os.environ["STUDIO_ADMIN_PASSWORD"]):  # a password that is set anew ends its sessions
        user.set_password(os.environ["STUDIO_ADMIN_PASSWORD"])
    user.is_staff = user.is_superuser = True
    organization = Organization.objects.first()
    if organization is None:
        names = {"title": "Darkroom", "legacy_api_tokens_enabled": True}
        organization = Organization.create_organization(created_by=user, **names)
    else:
        organization.add_user(user)
    # tokens without expiry: a sync that runs for weeks needs one
    organization.jwt.legacy_api_tokens_enabled = True
    organization.jwt.save()
    user.active_organization = organization
    user.save()
    Token.objects.filter(user=user).delete()
    Token.objects.create(user=user, key=os.environ["STUDIO_ADMIN_TOKEN"])


if __name__ == "__main__":
    prepare_database()
