"""Compiled lines of single algorithms."""
