// Newton's step by conjugate gradients, H never formed: for models whose dense blocks would be too large.
//
// Let θ = q p. From each layer to the next, H has the blocks B, B(s, s') = −Σ_a θ(s, a, s'). Inside a layer it is D + E:
// D = inflow + outflow, without the θ of fixed entries of p; E is 0 but for clipped pairs, which add to (E x)_j
//
//     θ_j Σ p x                               at a successor j where p is fixed,
//     θ_j ( Σ p x − Σ_G p x / Σ_G p )         at one where it is scaled, with its group G.
//
// The preconditioner is M = Uᵀ C⁻¹ U, U = C + B: one sweep over the layers forward and one back. C is what elimination
// would leave on the diagonal if all that it fills in beside the diagonal, and E, were added to the diagonal. Then M and H
// agree on every x that is constant on the layers, and almost on those that differ little between the successors of a
// state: where H is smallest, and what would take most iterations, the more the larger the layers. `FILL` of it is added,
// short of all, and nothing of what the first state fills in: its successors may be anywhere.
//
// The two sweeps are the product with H too, since H = U + Uᵀ + D + E − 2 C: with t = U⁻¹ x
//
//     U⁻ᵀ H U⁻¹ x = t + U⁻ᵀ (x + (D + E − 2 C) t)
//
// (S. C. Eisenstat, Efficient implementation of a class of preconditioned conjugate gradient methods, SIAM Journal on
// Scientific and Statistical Computing 2, 1981; the lumping is I. Gustafsson's modified incomplete factorisation, BIT 18,
// 1978).
#pragma once

#include "arithmetic.hpp"
#include "interrupt.hpp"
#include "sparse.hpp"
#include "workspace.hpp"

namespace tightrope {

inline constexpr double FILL = 0.99;

/// Take the θ of what does not move from D, for a chunk of which some pairs are not WHOLE.
template <class Set>
void hold(const Set& set, const Lanes& lanes, const Chunk& chunk, Workspace& work) {
    if constexpr (requires { &Set::hold; }) return set.hold(chunk, work.flow(lanes), work.D.data());
    const Index n = chunk.n_lanes;
    double factor[LANES];
    for (Index v = 0; v < n; ++v) factor[v] = work.label[chunk.first + v] != WHOLE ? work.share[chunk.pair + v] : 0.0;
    for (Index row = chunk.first; row < chunk.last; row += n)
        for (Index v = 0; v < n; ++v)
            work.D[lanes.successor[row + v]] -= work.label[row + v] == FIXED ? factor[v] * work.p[row + v] : 0.0;
}

/// Add E x, for a chunk of which some pairs are not WHOLE, and write Σ p x of every pair into `all`.
///
/// read(row, numbers) writes x of a row of slots, add(row, numbers) adds E x of one.
template <class Set, class Read, class Add>
void respond(const Set& set, const Chunk& chunk, const Flow& flow, const Read& read, const Add& add,
             double* __restrict all) {
    for (Index v = 0; v < chunk.n_lanes; ++v) all[v] = 0.0;
    if constexpr (requires { set.kappa; }) return set.respond(chunk, flow, read, add, all);
    const Index n = chunk.n_lanes;
    const double *__restrict p = flow.p, *__restrict W = flow.W + chunk.pair, *__restrict share = flow.share + chunk.pair;
    const std::int8_t* __restrict label = flow.label;
    double mean[LANES], moved[LANES], factor[LANES], group_1[LANES], group_2[LANES], mass_1[LANES], mass_2[LANES];
    for (Index v = 0; v < n; ++v) group_1[v] = group_2[v] = mass_1[v] = mass_2[v] = 0.0;
    for (Index row = chunk.first; row < chunk.last; row += n) {
        read(row, moved);  // look-ups: a loop of their own
        for (Index v = 0; v < n; ++v) {
            moved[v] *= p[row + v];
            const std::int8_t mine = label[row + v];
            all[v] += moved[v];
            group_1[v] += mine == SCALED_1 ? moved[v] : 0.0;
            group_2[v] += mine > SCALED_1 ? moved[v] : 0.0;
            mass_1[v] += mine == SCALED_1 ? p[row + v] : 0.0;
            mass_2[v] += mine > SCALED_1 ? p[row + v] : 0.0;
        }
    }
    for (Index v = 0; v < n; ++v) {
        mean[v] = all[v] / W[v];
        group_1[v] = mean[v] - (mass_1[v] > 0.0 ? group_1[v] / mass_1[v] : 0.0);
        group_2[v] = mean[v] - (mass_2[v] > 0.0 ? group_2[v] / mass_2[v] : 0.0);
        factor[v] = label[chunk.first + v] != WHOLE ? share[v] : 0.0;
    }
    for (Index row = chunk.first; row < chunk.last; row += n) {
        for (Index v = 0; v < n; ++v) {
            const std::int8_t mine = label[row + v];
            const double change = mine == SCALED_1 ? group_1[v] : (mine > SCALED_1 ? group_2[v] : mean[v]);
            moved[v] = factor[v] * p[row + v] * change;
        }
        add(row, moved);
    }
}

/// The sweeps with H as it is: Σ over pairs, for any model.
template <class Set>
class MatrixFree {
public:
    MatrixFree(const Lanes& lanes, const Set& set, Workspace& work) : lanes_(lanes), set_(set), work_(work) {}

    /// C and D for H + damping · diag(inflow + outflow). C is at least the outflow, so M is positive definite.
    void find_pivots(double damping) {
        start_pivots(damping);
        for (Index k = 0; k < lanes_.n_layers(); ++k) fill_in(k);
    }

    void start_pivots(double damping) {
        for (Index s = 0; s < lanes_.n_states(); ++s)
            work_.D[s] = work_.C[s] = (1.0 + damping) * (work_.inflow[s] + work_.outflow[s]) + TINY;
    }

    /// What the elimination of layer k fills in, from C of the next; what does not move, from D.
    void fill_in(Index k) {
        double factor[LANES];
        for (Index c = lanes_.first_chunk(k); c < lanes_.first_chunk(k + 1); ++c) {
            const Chunk chunk = lanes_.chunk(c);
            const Index n = chunk.n_lanes;
            const std::uint32_t* origin = lanes_.origin.data() + chunk.pair;
            const double fill = k > 0 ? FILL : 0.0;
            for (Index v = 0; v < n; ++v)
                factor[v] = fill * work_.share[chunk.pair + v] * work_.outflow[origin[v]] / work_.C[origin[v]];
            for (Index row = chunk.first; row < chunk.last; row += n)
                for (Index v = 0; v < n; ++v) work_.C[lanes_.successor[row + v]] -= factor[v] * work_.p[row + v];
            if (work_.clipped[c]) hold(set_, lanes_, chunk, work_);
        }
    }

    /// For layer k: t = C⁻¹ (x + B t), given t of the next layer, and y of the next layer = E t.
    void pull(Index k, const double* x) {
        double all[LANES], *t = work_.t.data(), *y = work_.y.data();
        const Index begin = lanes_.first_state(k), after = lanes_.first_state(k + 1), end = lanes_.first_state(k + 2);
        for (Index s = begin; s < after; ++s) t[s] = x[s];
        for (Index s = after; s < end; ++s) y[s] = 0.0;
        for (Index c = lanes_.first_chunk(k); c < lanes_.first_chunk(k + 1); ++c) {
            const Chunk chunk = lanes_.chunk(c);
            const Index n = chunk.n_lanes;
            if (work_.clipped[c]) {
                const std::uint32_t* __restrict successor = lanes_.successor.data();
                respond(
                    set_, chunk, work_.flow(lanes_),
                    [&](Index row, double* x) { for (Index v = 0; v < n; ++v) x[v] = t[successor[row + v]]; },
                    [&](Index row, const double* x) { for (Index v = 0; v < n; ++v) y[successor[row + v]] += x[v]; }, all);
            } else {
                for (Index v = 0; v < n; ++v) all[v] = 0.0;
                for (Index row = chunk.first; row < chunk.last; row += n)
                    for (Index v = 0; v < n; ++v) all[v] += work_.p[row + v] * t[lanes_.successor[row + v]];
            }
            for (Index v = 0; v < n; ++v) t[lanes_.origin[chunk.pair + v]] += work_.share[chunk.pair + v] * all[v];
        }
        for (Index s = begin; s < after; ++s) t[s] /= work_.C[s];
    }

    /// The rest of y = E t, once t is found on all layers.
    void finish_pull() {}

    /// For layer k: add Bᵀ y to y of the next layer.
    void push(Index k) {
        double factor[LANES], *__restrict y = work_.y.data();
        const double *__restrict p = work_.p.data(), *__restrict share = work_.share.data();
        const std::uint32_t *__restrict successor = lanes_.successor.data(), *__restrict origin = lanes_.origin.data();
        for (Index c = lanes_.first_chunk(k); c < lanes_.first_chunk(k + 1); ++c) {
            const Chunk chunk = lanes_.chunk(c);
            const Index n = chunk.n_lanes;
            for (Index v = 0; v < n; ++v) factor[v] = share[chunk.pair + v] * y[origin[chunk.pair + v]];
            for (Index row = chunk.first; row < chunk.last; row += n)
                for (Index v = 0; v < n; ++v) y[successor[row + v]] += factor[v] * p[row + v];
        }
    }

private:
    const Lanes& lanes_;
    const Set& set_;
    Workspace& work_;
};

/// The sweeps with H assembled, but for the first layer; as `MatrixFree`.
template <class Set>
class Assembled {
public:
    Assembled(const Lanes& lanes, const Set& set, Workspace& work)
        : lanes_(lanes), work_(work), H_(*work.sparse), first_(lanes, set, work) {}

    void find_pivots(double damping) {
        first_.start_pivots(damping);
        first_.fill_in(0);
        H_.assemble(lanes_, work_);
        H_.eliminate(lanes_, FILL, work_.outflow.data(), work_.C.data());
    }

    void pull(Index k, const double* x) {
        if (k == 0) return first_.pull(0, x);
        work_.pool.ranges(lanes_.first_state(k), lanes_.first_state(k + 1), STATES, [&](Index begin, Index end) {
            double* __restrict t = work_.t.data();
            for (Index s = begin; s < end; ++s) t[s] = (x[s] + H_.pull(s, t)) / work_.C[s];
        });
    }

    void finish_pull() {
        work_.pool.each(lanes_.n_layers() - 2, [&](Index k, int) {
            H_.multiply(lanes_.first_state(k + 2), lanes_.first_state(k + 3), work_.t.data(), work_.y.data());
        });
    }

    void push(Index k) {
        if (k == 0) return first_.push(0);
        work_.pool.ranges(lanes_.first_state(k + 1), lanes_.first_state(k + 2), STATES, [&](Index begin, Index end) {
            for (Index s = begin; s < end; ++s) work_.y[s] += H_.push(s, work_.y.data());
        });
    }

private:
    const Lanes& lanes_;
    Workspace& work_;
    SparseHessian& H_;
    MatrixFree<Set> first_;

    static constexpr Index STATES = 1024;  ///< for one thread at a time
};

/// t = U⁻¹ x and y = E t; the last state takes no part.
template <class Sweeps>
void sweep_back(const Lanes& lanes, Sweeps& sweeps, Workspace& work, const double* x) {
    work.t[lanes.n_states() - 1] = 0.0;
    for (Index k = lanes.n_layers() - 1; k >= 0; --k) sweeps.pull(k, x);
    sweeps.finish_pull();
    work.y[0] = 0.0;
}

/// y = t + U⁻ᵀ (y + x + (D − 2 C) t), and return x · y; the last state takes no part.
template <class Sweeps>
double sweep_forward(const Lanes& lanes, Sweeps& sweeps, Workspace& work, const double* __restrict x) {
    double* __restrict y = work.y.data();
    const double *__restrict t = work.t.data(), *__restrict C = work.C.data(), *__restrict D = work.D.data();
    double product = 0.0;
    for (Index k = 0; k < lanes.n_layers(); ++k) {
        const Index begin = lanes.first_state(k), end = lanes.first_state(k + 1);
        for (Index s = begin; s < end; ++s) y[s] = (y[s] + x[s] + (D[s] - 2.0 * C[s]) * t[s]) / C[s];
        sweeps.push(k);
        for (Index s = begin; s < end; ++s) y[s] += t[s];
        product += dot(x + begin, y + begin, end - begin);
    }
    y[lanes.n_states() - 1] = 0.0;
    return product;
}

/// The sum of term(begin, end) over the layers but the last, in order.
template <class Term>
double sum_over_layers(const Lanes& lanes, Workspace& work, const Term& term) {
    work.pool.each(lanes.n_layers(), [&](Index k, int) {
        work.terms[k] = term(lanes.first_state(k), lanes.first_state(k + 1));
    });
    double sum = 0.0;
    for (Index k = 0; k < lanes.n_layers(); ++k) sum += work.terms[k];
    return sum;
}

/// Overwrite the right-hand side b that x holds with (H + damping · diag(inflow + outflow))⁻¹ b.
///
/// The unknowns are U x, the residual r is U⁻ᵀ (b − H x) and its preconditioner C. It ends when the norm √(r · C r), which
/// does not depend on how much mass a state has, is down to `accuracy` times what it was. Returns the iterations.
template <class Sweeps>
Index conjugate_gradients(const Lanes& lanes, Sweeps sweeps, double accuracy, Index max_iterations, Workspace& work,
                          double* __restrict x, Interrupt& interrupt) {
    double *__restrict r = work.r.data(), *__restrict direction = work.direction.data();
    const double *__restrict C = work.C.data(), *__restrict t = work.t.data(), *__restrict y = work.y.data();
    std::fill(work.t.begin(), work.t.end(), 0.0);
    std::fill(work.direction.begin(), work.direction.end(), 0.0);
    x[lanes.n_states() - 1] = 0.0;
    std::copy_n(x, lanes.n_states(), work.y.begin());
    sweep_forward(lanes, sweeps, work, direction);  // with t = 0 and x = 0: y = U⁻ᵀ b
    double product = sum_over_layers(lanes, work, [&](Index begin, Index end) {
        double sum = 0.0;
        for (Index s = begin; s < end; ++s) {
            r[s] = y[s];
            x[s] = 0.0;
            direction[s] = C[s] * r[s];
            sum += direction[s] * r[s];
        }
        return sum;
    });
    const double target = accuracy * accuracy * product;
    for (Index iteration = 0; iteration < max_iterations; ++iteration) {
        interrupt.check();
        sweep_back(lanes, sweeps, work, direction);
        const double curvature = sweep_forward(lanes, sweeps, work, direction);
        if (!(curvature > 0.0)) return iteration;
        const double length = product / curvature, old = product;
        product = sum_over_layers(lanes, work, [&](Index begin, Index end) {
            double sum = 0.0;
            for (Index s = begin; s < end; ++s) {
                x[s] += length * t[s];
                r[s] -= length * y[s];
                sum += C[s] * r[s] * r[s];
            }
            return sum;
        });
        if (product <= target) return iteration + 1;
        work.pool.each(lanes.n_layers(), [&](Index k, int) {
            for (Index s = lanes.first_state(k); s < lanes.first_state(k + 1); ++s)
                direction[s] = C[s] * r[s] + product / old * direction[s];
        });
    }
    return max_iterations;
}

/// Whether H is assembled: the model has few successors, and the set moves by labels.
template <class Set>
bool assembles(const Workspace& work) {
    return !requires { &Set::kappa; } && work.sparse;
}

/// task(sweeps), with H assembled if it may and can be.
template <class Set, class Task>
auto with_sweeps(const Lanes& lanes, const Set& set, bool assembled, Workspace& work, const Task& task) {
    return assembled && assembles<Set>(work) ? task(Assembled(lanes, set, work)) : task(MatrixFree(lanes, set, work));
}

/// Make H + damping · diag(inflow + outflow) of the last evaluation the matrix of the calls that follow.
template <class Set>
void find_pivots(const Lanes& lanes, const Set& set, bool assembled, double damping, Workspace& work) {
    with_sweeps(lanes, set, assembled, work, [&](auto sweeps) { sweeps.find_pivots(damping); });
}

/// Overwrite x as above, with the matrix of the last `find_pivots`.
template <class Set>
Index conjugate_gradients(const Lanes& lanes, const Set& set, bool assembled, double accuracy, Workspace& work, double* x,
                          Interrupt& interrupt) {
    constexpr Index MAX_ITERATIONS = 500;
    return with_sweeps(lanes, set, assembled, work, [&](auto sweeps) {
        return conjugate_gradients(lanes, sweeps, accuracy, MAX_ITERATIONS, work, x, interrupt);
    });
}

}  // namespace tightrope
