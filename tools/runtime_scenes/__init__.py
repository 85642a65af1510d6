"""Scenes in which an agent ends, each played by the real client of a runtime against a scripted model on loopback."""
