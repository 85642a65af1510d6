"""Measurements, as ratios within one run. They inform; they decide nothing."""
