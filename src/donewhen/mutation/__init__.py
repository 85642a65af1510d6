"""Small changes of code, to see whether its tests would notice."""
