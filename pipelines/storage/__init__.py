"""A workspace on disk: tables, the ledger, images and videos, each written whole or not at all."""
