"""Benchmarks: released files and the shipped sample, turned into records."""
