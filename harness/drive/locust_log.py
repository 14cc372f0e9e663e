"""Leaves out what Locust logs about users: arrivals come from the schedule, which also ends the test."""

import logging
from typing import Final

_ABOUT_USERS: Final = ("No run time limit set", "Ramping to ", "All users spawned")
_LOGGERS: Final = ("locust.main", "locust.runners")


def leave_out_users() -> None:
    """Do so from now on, for a test whose users only follow an open schedule."""
    for name in _LOGGERS:
        logging.getLogger(name).addFilter(_is_not_about_users)


def _is_not_about_users(record: logging.LogRecord) -> bool:
    return not record.getMessage().startswith(_ABOUT_USERS)
