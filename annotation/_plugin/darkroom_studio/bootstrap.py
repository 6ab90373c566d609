"""``python -m darkroom_studio.bootstrap [--migrate-only]``: migrates the database and creates the admin account.

Idempotent: a second run resets only the admin's password and token.
"""

from __future__ import annotations

import os
import sys

import django


def main() -> None:
    django.setup()
    from django.core.management import call_command

    call_command("migrate", verbosity=0, interactive=False)
    if "--migrate-only" not in sys.argv:
        _admin()


def _admin() -> None:
    from organizations.models import Organization
    from rest_framework.authtoken.models import Token
    from users.models import User

    email = os.environ["STUDIO_ADMIN_EMAIL"]
    user = User.objects.filter(email=email).first() or User.objects.create_user(email=email)
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
    main()
