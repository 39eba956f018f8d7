"""Weir's packet generator, controlled from Python."""

from weir.generator import Generator, GeneratorError, Refused
from weir.stream import Stream

__all__ = ["Generator", "GeneratorError", "Refused", "Stream"]
