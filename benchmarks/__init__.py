"""Files in, checked typed records out."""

from benchmarks.loader import load
from benchmarks.params import Parameters

__all__ = ["Parameters", "load"]
