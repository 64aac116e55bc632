"""Parts that several learners share: counts, averages of stochastic costs, prices, budgeted steps."""
