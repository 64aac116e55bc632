"""Compiled mathematics: arrays in, arrays out. No classes, no randomness, no words."""
