"""The data itself, audited: what is wrong with a benchmark before any model has seen it."""
