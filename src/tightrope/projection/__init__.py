"""The subproblem of Algorithm 1: `projector` solves it, `reference` is the same in plain NumPy, to be read first.

`lanes` lays out tuples and `sets` confidence sets for the `kernels`, which hold the mathematics.
"""
