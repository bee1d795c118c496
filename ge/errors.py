"""Reported errors: one code, one message, one remedy.

Every fault that a user can cause is raised as a :class:`ReportedError`. The catalogue holds, per code, the message
template and the remedy; the command lines print both and nothing else. Codes ``E1xxxx``/``W1xxxx`` are CANN's and keep
CANN's meaning; ``R1xxx`` are those of ``om-run``.
"""

from __future__ import annotations

from dataclasses import dataclass
from string import Formatter


@dataclass(frozen=True)
class CatalogueEntry:
    """Message template (``str.format`` holes) and remedy of one code."""

    template: str
    solution: str


class ReportedError(Exception):
    """A fault to be shown to the user: ``ReportedError("E10016", opname="y", parameter="--input_shape")``.

    ``solution`` replaces the catalogue's remedy where the place of the fault knows a better one; ``also`` carries
    further errors of the same kind that are printed after this one (all unsupported operators at once, for instance).
    Unknown codes and missing holes are programming errors and raise ``KeyError``.
    """

    def __init__(
        self, code: str, /, *, solution: str | None = None, also: tuple[ReportedError, ...] = (), **fields: object
    ) -> None:
        entry = CATALOGUE[code]
        missing = [hole for _, hole, _, _ in Formatter().parse(entry.template) if hole and hole not in fields]
        if missing:
            raise KeyError(f"{code} needs the fields {missing}")
        self.code = code
        self.fields = fields
        self.message = entry.template.format(**fields)
        self.solution = entry.solution.format(**fields) if solution is None else solution
        self.also = also
        super().__init__(f"{code}: {self.message}")

    def lines(self) -> list[str]:
        """Return the printed form: ``CODE: message``, then the remedy, then the errors in ``also``."""
        text = [f"{self.code}: {self.message}"]
        if self.solution:
            text.append(f"        Solution: {self.solution}")
        for error in self.also:
            text.extend(error.lines())
        return text


CATALOGUE: dict[str, CatalogueEntry] = {
    "E10001": CatalogueEntry(
        "Value [{value}] for parameter [{parameter}] is invalid. Reason: {reason}",
        "Give the parameter a valid value.",
    ),
    "E19999": CatalogueEntry("Internal error: {reason}", "This is a fault of the compiler: please report it."),
}
