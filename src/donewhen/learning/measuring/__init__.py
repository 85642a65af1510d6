"""How good is a judge? Splits, metrics, baselines, trials on unseen tickets, and the credit of each rule."""
