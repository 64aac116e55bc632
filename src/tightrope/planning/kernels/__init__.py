"""Compiled passes of dynamic programming, the simplex method over policies, and the Euclidean projection."""
