"""What the projection costs and whether it holds: commands, not tests. `python -m benchmarks.subproblem --help`."""
