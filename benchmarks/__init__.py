"""Benchmarks of speed, memory and learning. Each is a command: `python -m benchmarks.subproblem --help`."""
