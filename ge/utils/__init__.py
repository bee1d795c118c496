"""What passes ask about graphs (CANN's import path ``ge.utils``)."""

from ge.utils.ge_utils import GeUtils

__all__ = ["GeUtils"]
