"""Before the server answers: migrates the database, if it must be, and creates the admin account. Idempotent.

``darkroom_studio.serve`` calls it in gunicorn's first process; ``python -m darkroom_studio.bootstrap --migrate-only``
makes the template of a database. Each step is a line of the log, which ``darkroom annotate up`` shows.
"""

from __future__ import annotations

import os
import sys

import django

STEP = "darkroom step: "


def main(*, migrate_only: bool = False) -> None:
    django.setup()
    _migrate()
    if not migrate_only:
        say_step("accounts")
        _admin()


def say_step(name: str) -> None:
    print(f"{STEP}{name}", flush=True)


def _migrate() -> None:
    """Django's command looks at every model even when nothing is to be done, for seconds."""
    from django.core.management import call_command
    from django.db import connection
    from django.db.migrations.executor import MigrationExecutor

    executor = MigrationExecutor(connection)
    if executor.migration_plan(executor.loader.graph.leaf_nodes()):
        say_step("migrate")
        call_command("migrate", verbosity=0, interactive=False)


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
        organization = Organization.create_organization(
            created_by=user, title="Darkroom", legacy_api_tokens_enabled=True
        )
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
    main(migrate_only="--migrate-only" in sys.argv)
