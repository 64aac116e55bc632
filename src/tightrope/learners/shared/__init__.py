"""What several learners have in common: mirror steps in a confidence set, averages of stochastic costs."""
