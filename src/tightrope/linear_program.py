"""Linear programs, solved by HiGHS: silent, on one thread, the same bits each time, and interruptible."""

from threading import Event, Thread
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np

from tightrope.space import FloatArray, IntArray

if TYPE_CHECKING:
    from highspy.highs import HighsCallbackEvent

#: Seconds between two checks whether a solve has ended; signals are handled in between.
LOOK_EVERY = 0.1

Method = Literal["ipx", "simplex"]


class Optimum(NamedTuple):
    """The answer to a linear program."""

    x: FloatArray  # (n_columns,)
    duals: FloatArray  # (n_rows,) change of the value per unit of the bound: >= 0 for "at least", <= 0 for "at most"


class LinearProgram:
    """min cost·x subject to lower <= x and low <= A x <= high, where rows of A can be added between solves.

    Parameters
    ----------
    cost : (n_columns,)
    lower : (n_columns,), may be −inf.
    tolerance : how far x and the duals may be from feasible, at least 1e-10.
    """

    def __init__(self, cost: FloatArray, lower: FloatArray, tolerance: float = 1e-7) -> None:
        import highspy  # slow to import, and rarely needed

        self.message = ""  # the status of the last solve, as HiGHS reports it
        self._optimal = highspy.HighsModelStatus.kOptimal
        self._highs = highs = highspy.Highs()  # type: ignore[no-untyped-call]
        self._n_columns = len(cost)
        self._set(output_flag=False, threads=1, parallel="off")
        self._set(primal_feasibility_tolerance=tolerance, dual_feasibility_tolerance=tolerance)
        self._stop = Event()
        for callback in (highs.cbSimplexInterrupt, highs.cbIpmInterrupt):
            callback += self._look
        none = np.empty(0, dtype=np.int32)
        infinite = np.full(len(cost), np.inf)
        highs.addCols(len(cost), cost, lower, infinite, 0, none, none, np.empty(0))

    def add_rows(self, row: IntArray, column: IntArray, value: FloatArray, low: FloatArray, high: FloatArray) -> None:
        """Add rows low <= A x <= high, (n_rows,); entries of A are A[row, column] = value, each given once."""
        order = np.lexsort((column, row))
        starts = np.searchsorted(row[order], np.arange(len(low))).astype(np.int32)
        self._highs.addRows(len(low), low, high, len(order), starts, column[order].astype(np.int32), value[order])

    def solve(self, method: Method = "simplex", *, presolve: bool = True) -> Optimum | None:
        """Solve the program, from the last basis if only rows were added; None if there is no optimum (see `message`).

        "ipx" is an interior-point method with crossover to a vertex, faster on large programs.
        """
        self._set(solver=method, presolve="on" if presolve else "off")
        self._run()
        self.message = self._highs.modelStatusToString(self._highs.getModelStatus())
        if self._highs.getModelStatus() != self._optimal:
            return None
        found = self._highs.getSolution()
        return Optimum(np.array(found.col_value), np.array(found.row_dual))

    def clear(self) -> None:
        """Forget the last basis: the next solve starts from nothing."""
        self._highs.clearSolver()

    def _set(self, **options: bool | int | float | str) -> None:
        for name, value in options.items():
            self._highs.setOptionValue(name, value)

    def _run(self) -> None:
        """Run HiGHS in a thread of its own, so that this one handles signals.

        HiGHS stores its number of threads for each calling thread, so the setting of the program that imports tightrope
        is neither used nor changed.
        """
        over = Event()

        def run() -> None:
            try:
                self._highs.run()
                self._highs.resetGlobalScheduler(False)
            finally:
                over.set()

        self._stop.clear()
        solving = Thread(target=run, name="tightrope-highs", daemon=True)
        try:
            solving.start()
            while not over.wait(LOOK_EVERY):
                pass
        except BaseException:  # a signal, maybe before the thread has started
            self._stop.set()
            while solving.is_alive() and not over.wait(LOOK_EVERY):
                pass
            raise

    def _look(self, event: "HighsCallbackEvent") -> None:
        """Called by HiGHS at every iteration."""
        event.interrupt(self._stop.is_set())  # also reset it: the interrupt of the last solve would persist
