"""The simplex method on few rows: D x <= alpha and Σ_k w_k = 1, by the inverse of its basis, `table`.

A column is what a policy uses of every row, and 1 for its weight. Whoever calls finds the columns.
"""

import numpy as np

from tightrope.kernels.compile import jit

#: What is no more than this of a step in the simplex method is rounding.
NO_STEP = 1e-11


@jit
def most_exceeded(column, alpha, tolerance):
    """The row that a column exceeds most, by more than the tolerance, or -1."""
    row, excess = -1, tolerance
    for h in range(alpha.size):
        if column[h] - alpha[h] > excess:
            row, excess = h, column[h] - alpha[h]
    return row


@jit
def price_rows(table, cost, relief, tolerance, price, multipliers):
    """price = cost · table; as long as `relief` is in the basis, nothing else costs. Writes price and multipliers.

    The multipliers of the rows D x <= alpha are −price, or 0 where that is negative; returns the row where it is most
    so, whose slack is then worth having, or -1.
    """
    slack, least = -1, -tolerance
    for h in range(price.size):
        price[h] = table[relief, h] if relief >= 0 else 0.0
        if relief < 0:
            for k in range(cost.size):
                price[h] += cost[k] * table[k, h]
        if h < multipliers.size:
            multipliers[h] = -price[h] if price[h] < 0.0 else 0.0
            if -price[h] < least:
                slack, least = h, -price[h]
    return slack


@jit
def yields(table, column, direction):
    """direction = table · column: what the basic columns yield to a new one. Writes direction."""
    for k in range(column.size):
        direction[k] = 0.0
        for h in range(column.size):
            direction[k] += table[k, h] * column[h]


@jit
def first_to_leave(weight, direction, relief):
    """The basic column that has no weight left first as a new one enters, or -1; `relief` before its equals."""
    leaving, step = -1, np.inf
    for k in range(weight.size):
        if direction[k] > NO_STEP:
            ratio = max(weight[k], 0.0) / direction[k]
            if ratio < step or (ratio == step and k == relief):
                leaving, step = k, ratio
    return leaving


@jit
def enter(table, weight, direction, leaving):
    """A new column takes the place of the basic column `leaving`. Writes table, the inverse of the basis, and weight.

    direction is what the basic columns yield to it (`yields`).
    """
    m = weight.size
    weight[leaving] /= direction[leaving]
    for h in range(m):
        table[leaving, h] /= direction[leaving]
    for k in range(m):
        if k != leaving:
            weight[k] -= direction[k] * weight[leaving]
            for h in range(m):
                table[k, h] -= direction[k] * table[leaving, h]
