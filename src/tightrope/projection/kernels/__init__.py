"""One solve of the subproblem, from the tilted reference to θ: read `newton`, then `dual`, then `kinds` and `l1`."""
