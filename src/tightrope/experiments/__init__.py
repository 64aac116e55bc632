"""Experiments: what is played, what is accounted for, and how it is shown."""
