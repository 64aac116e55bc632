"""What a run holds at once, in bytes per tuple: models of millions of tuples must fit."""

import tracemalloc

import tightrope as tr


def test_a_run_of_ucpd_stays_within_150_bytes_per_tuple() -> None:
    """Besides the problem itself. Episodes early on renew the confidence set, which is when most is held."""
    problem = tr.make("grid", n_rows=12, n_columns=12, n_steps=20)
    tr.run(problem, "ucpd", episodes=2, regret="never")  # compiles, which takes memory, too
    tracemalloc.start()
    try:
        history = tr.run(problem, "ucpd", episodes=4, regret="never", records=1)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert history["epoch"][-1] == 4
    assert peak <= 150 * problem.space.n_tuples
