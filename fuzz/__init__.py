"""Hostile tries by the thousand, each repeatable by its seed and number: `python -m fuzz.folders --count 10000`."""
