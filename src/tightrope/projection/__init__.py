"""The subproblem of Algorithm 1: `project` asks and `projector` solves; `reference` is the same in plain NumPy.

Read that first. `lanes` lays out tuples and `sets` confidence sets for the `kernels`, which hold the mathematics.
"""
