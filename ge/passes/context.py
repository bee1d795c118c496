"""What a pass may ask of the compile that it is part of, and tell it."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping

from ge.error import GeError
from ge.passes.statistics import FusionStatistics

logger = logging.getLogger("atc")


class PassContext:
    """The context of one run of a pass. Without a compile around it there are no options and nobody counts."""

    def __init__(
        self,
        pass_name: str = "",
        *,
        kind: str = "custom pass",
        options: Mapping[str, str] | None = None,
        statistics: FusionStatistics | None = None,
        warn: Callable[[str], None] = logger.warning,
    ) -> None:
        self._pass_name = _checked_text(pass_name, "name")
        self._kind = kind
        self._error_message = ""
        self._refusal = ""
        self._options: Mapping[str, str] = {} if options is None else options
        self.statistics = FusionStatistics() if statistics is None else statistics
        self.warn = warn

    def get_pass_name(self) -> str:
        """Return the name of the pass."""
        return self._pass_name

    @property
    def title(self) -> str:
        """What messages call the pass (ours): ``custom pass <name>``, or ``fusion <name>`` for a built-in one."""
        return f"{self._kind} {self._pass_name}"

    def set_pass_name(self, name: str) -> None:
        """Set the name of the pass (the compiler does that)."""
        self._pass_name = _checked_text(name, "name")

    def get_error_message(self) -> str:
        """Return the message that was set last; empty if none was."""
        return self._error_message

    def set_error_message(self, message: str) -> None:
        """Set what the user is told if the pass fails."""
        self._error_message = _checked_text(message, "message")

    def refuse(self, reason: str) -> None:
        """Say why ``meet_requirements`` is about to say no (ours; built-in fusions use it)."""
        self._refusal = _checked_text(reason, "reason")

    def take_refusal(self) -> str:
        """Return the reason given last and forget it."""
        reason, self._refusal = self._refusal, ""
        return reason

    def get_option_value(self, key: str) -> str:
        """Return an option of the compile by its GE key (``ge.socVersion``). One that was not given is a failure."""
        found = self._options.get(_checked_text(key, "key"))
        if found is None:
            raise GeError(f"Failed to get option value for key: {key}")
        return found


def _checked_text(value: object, what: str) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{what} must be a str, not {type(value).__name__}")
    return str.__str__(value)  # not a subclass with methods of its own
