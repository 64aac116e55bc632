"""Assumption 2: |f| ≤ 1, Σ_i max |g_i| ≤ 1 and Σ_i |c_i| ≤ L, promised by problems and checked by learners."""

#: How far rounding may carry a bound of Assumption 2 past its limit.
BOUND_TOLERANCE = 1e-9
