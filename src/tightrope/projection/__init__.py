"""The subproblem of Algorithm 1: `projector` solves it, `lanes` lays it out, `kernels` hold its mathematics."""
