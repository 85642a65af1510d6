"""Measure a judge: splits, metrics, baselines, trials on unseen tickets, and the credit of each rule."""
