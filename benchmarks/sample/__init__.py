"""The project's own small benchmark: everything in it is invented and written by ``benchmarks.sample.generate``."""
