"""The subproblem of Algorithm 1: `project` states it, `projector` solves it, `priced` adds rows with prices.

Read `reference` first: both solvers in plain NumPy.
"""
