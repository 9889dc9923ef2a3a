"""Probes: what a backbone knows of a case without evidence, or against it. Their answers are no forecasts of a table."""
