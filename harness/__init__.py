"""Time-gated, chronological, reproducible evaluation of financial forecasting methods on Ray."""
