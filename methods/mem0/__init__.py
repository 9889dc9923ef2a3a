"""Mem0: facts extracted from every record, kept up to date by a model's decisions to add, update or delete."""
