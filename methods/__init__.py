"""Forecasting methods: one file each, chosen by a YAML in ``conf/method/``."""
