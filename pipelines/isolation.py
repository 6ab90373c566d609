"""Which failures are one row's own, and which stop a stage because the next row would fare no better."""

from __future__ import annotations

import errno
import traceback

from sqlalchemy.exc import SQLAlchemyError

import sandbox
from pipelines.policies import PolicyUnavailable
from pipelines.rejects import Reason, RowFault
from pipelines.tables import TableStale

_NOT_A_ROWS_FAULT = (PolicyUnavailable, sandbox.SandboxUnavailable, TableStale, SQLAlchemyError)
"""No endpoint, no sandbox, no ledger."""

_NO_DISK = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EIO, errno.EMFILE, errno.ENFILE})
"""The same of an ``OSError``; others are a row's own, like Pillow's for an image that cannot be read."""


def row_fault(fault: Exception) -> RowFault:
    """One row's failure, whatever a recipe, a check or a script raised; the run goes on.

    Raises ``fault`` itself when it is not one row's (``_NOT_A_ROWS_FAULT``, ``_NO_DISK``).
    """
    if isinstance(fault, _NOT_A_ROWS_FAULT) or (isinstance(fault, OSError) and fault.errno in _NO_DISK):
        raise fault
    if isinstance(fault, RowFault):
        return fault
    return RowFault(Reason.STAGE_FAILED, _trace(fault))


def _trace(fault: Exception) -> str:
    return "".join(traceback.format_exception(fault)[-3:]).strip()[-800:]
