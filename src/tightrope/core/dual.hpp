// The subproblem  min over θ of <cost, θ> + D(θ, reference)  through its dual in the potentials β.
//
// With u = reference · e^{−cost} and, for every pair, W and p* the answer to the pair's question for w = u · e^{β(s')},
//
//     F(β) = Σ_k log Z_k,   Z_k = Σ_{s in layer k, a} e^{−β(s)} W(s,a),   θ = q p*,   q(s,a) = e^{−β(s)} W(s,a) / Z_k.
//
// F is convex, θ at its minimum is the answer, and ∂F/∂β(s') is inflow minus outflow of s'. β is 0 on the first and the
// last layer.
//
// `tilt` makes u, `evaluate` is F and its gradient, `divide` makes θ out of the last evaluation. Numbers are held as they
// are for as long as they are in range; where u is not, or the potentials of a layer are far apart, logarithms take over.
// Layers do not depend on each other: each is a task of its own.
#pragma once

#include "arithmetic.hpp"
#include "sparse.hpp"
#include "workspace.hpp"

namespace tightrope {

inline constexpr double HUGE_WEIGHT = 1e100;  ///< Weights and their inverses up to here are held as they are.
inline constexpr double RANGE = 300.0;        ///< Of potentials in a layer, up to which e^β is shared by all its pairs.

/// The subproblem: the vectors are by tuple.
struct Subproblem {
    const Space& space;
    const double* reference;
    const double* cost;
};

/// F(β) and the flow residual Σ |inflow − outflow| over the inner states.
struct Value {
    double F, residual;
};

/// The range of the tuples of a layer.
struct Tuples {
    Index begin, end;

    Tuples(const Space& space, Index layer)
        : begin(space.pair_ptr[space.state_ptr[space.layer_ptr[layer]]]),
          end(space.pair_ptr[space.state_ptr[space.layer_ptr[layer + 1]]]) {}
};

/// The smallest and the largest of some numbers.
struct Extremes {
    double smallest = INF, largest = -INF;

    void include(Extremes other) {
        smallest = min(other.smallest, smallest);
        largest = max(other.largest, largest);
    }
};

inline Extremes extremes(const double* x, Index n) {
    Extremes found;
    Index j = 0;
    if (n >= 8) {
        Eight low = load_eight(x), high = low;
        for (; j + 8 <= n; j += 8) {
            const Eight y = load_eight(x + j);
            low = y < low ? y : low;
            high = y > high ? y : high;
        }
        for (int v = 0; v < 8; ++v) found.include({low[v], high[v]});
    }
    for (; j < n; ++j) found.include({x[j], x[j]});
    return found;
}

/// u = reference · e^{−cost}, or its logarithm where it leaves the range of numbers; returns whether it does.
///
/// θ keeps every tuple's own u until `divide`; those of free pairs of one state add up.
inline bool tilt(const Subproblem& problem, const Lanes& lanes, Workspace& work, double* __restrict theta) {
    std::vector<Extremes> found(lanes.n_layers());
    work.pool.each(lanes.n_layers(), [&](Index k, int) {
        const Tuples tuples(problem.space, k);
        const double *__restrict reference = problem.reference, *__restrict cost = problem.cost;
        for (Index j = tuples.begin; j < tuples.end; ++j) theta[j] = reference[j] * exp(-cost[j]);
        found[k] = extremes(theta + tuples.begin, tuples.end - tuples.begin);
        std::fill(work.u.begin() + lanes.first_slot(k), work.u.begin() + lanes.first_slot(k + 1), 0.0);
        for (Index j = tuples.begin; j < tuples.end; ++j) work.u[lanes.slot[j]] += theta[j];
    });
    Extremes all;
    for (const Extremes& layer : found) all.include(layer);
    if (all.smallest >= 1.0 / HUGE_WEIGHT && all.largest <= HUGE_WEIGHT) return false;
    std::fill(work.u.begin(), work.u.end(), -INF);
    for (Index j = 0; j < problem.space.n_tuples; ++j) {
        theta[j] = log(problem.reference[j]) - problem.cost[j];
        double& u = work.u[lanes.slot[j]];
        const double above = max(u, theta[j]), below = min(u, theta[j]);
        u = above + log1p(exp(below - above));
    }
    return true;
}

/// e^{β − top} into scale, top the largest β of the layer; returns whether those of some layer are far apart.
inline bool exponentiate(const Lanes& lanes, const double* beta, Workspace& work) {
    bool far_apart = false;
    for (Index k = 0; k <= lanes.n_layers(); ++k) {
        const Index begin = lanes.first_state(k), end = lanes.first_state(k + 1);
        const Extremes found = extremes(beta + begin, end - begin);
        const double top = found.largest;
        far_apart |= top - found.smallest > RANGE;
        for (Index s = begin; s < end; ++s) work.scale[s] = exp(max(beta[s] - top, -RANGE));
        work.top[k] = top;
    }
    return far_apart;
}

/// w = u · scale(s') into p, its sum over each pair into W.
TIGHTROPE_INLINE void weigh(const Lanes& lanes, const Chunk& chunk, Workspace& work) {
    const Index n = chunk.n_lanes;
    const double *__restrict scale = work.scale.data(), *__restrict u = work.u.data();
    double *__restrict p = work.p.data(), *__restrict W = work.W.data() + chunk.pair;
    const std::uint32_t* __restrict successor = lanes.successor.data();
    Index v = 0;
    for (; v + 8 <= n; v += 8) {
        Eight sum = {};
        for (Index j = chunk.first + v; j < chunk.last; j += n) {
            const Eight f = chunk.aligned ? eight_of(scale[successor[j]]) : gather_eight(scale, successor + j);
            const Eight w = load_eight(u + j) * f;
            store_eight(p + j, w);
            sum += w;
        }
        store_eight(W + v, sum);
    }
    for (; v < n; ++v) {
        double sum = 0.0;
        for (Index j = chunk.first + v; j < chunk.last; j += n) {
            p[j] = u[j] * scale[successor[j]];
            sum += p[j];
        }
        W[v] = sum;
    }
}

/// Add share · W to the outflow of every pair's state, and share · W p* to the inflow of its successors.
TIGHTROPE_INLINE void flow(const Lanes& lanes, const Chunk& chunk, Workspace& work) {
    const Index n = chunk.n_lanes;
    const double *__restrict p = work.p.data(), *__restrict share = work.share.data() + chunk.pair;
    const double* __restrict W = work.W.data() + chunk.pair;
    double *__restrict inflow = work.inflow.data(), *__restrict outflow = work.outflow.data();
    const std::uint32_t *__restrict successor = lanes.successor.data(), *__restrict origin = lanes.origin.data() + chunk.pair;
    for (Index v = 0; v < n; ++v) outflow[origin[v]] += share[v] * W[v];
    if (work.sparse && origin[0] > 0) return work.sparse->connect(lanes, chunk, work);
    for (Index row = chunk.first; row < chunk.last; row += n) {
        if (chunk.aligned)
            inflow[successor[row]] += dot(share, p + row, n);
        else
            for (Index v = 0; v < n; ++v) inflow[successor[row + v]] += share[v] * p[row + v];
    }
}

/// Start `flow` over the chunks of layer k.
inline void start_flow(const Lanes& lanes, Index k, Workspace& work) {
    std::fill(work.outflow.begin() + lanes.first_state(k), work.outflow.begin() + lanes.first_state(k + 1), 0.0);
    std::fill(work.inflow.begin() + lanes.first_state(k + 1), work.inflow.begin() + lanes.first_state(k + 2), 0.0);
    if (work.sparse) work.sparse->start(lanes, k);
}

/// Finish it: what was added up is a multiple of 1 / norm.
inline void finish_flow(const Lanes& lanes, Index k, double norm, Workspace& work) {
    for (Index s = lanes.first_state(k); s < lanes.first_state(k + 1); ++s) work.outflow[s] *= norm;
    for (Index s = lanes.first_state(k + 1); s < lanes.first_state(k + 2); ++s) work.inflow[s] *= norm;
    if (work.sparse) work.sparse->finish(lanes, k, norm, work.inflow.data());
}

/// One layer of `evaluate`: log Z, given e^{β − top}. The flows are multiples of 1 / Z, which comes last.
template <class Set>
double evaluate_layer(const Lanes& lanes, const Set& set, Index k, Workspace& work, Scratch& scratch) {
    const Index begin = lanes.first_pair(k), end = lanes.first_pair(k + 1);
    for (Index i = begin; i < end; ++i) work.share[i] = 1.0 / work.scale[lanes.origin[i]];
    start_flow(lanes, k, work);
    for (Index c = lanes.first_chunk(k); c < lanes.first_chunk(k + 1); ++c) {
        const Chunk chunk = lanes.chunk(c);
        weigh(lanes, chunk, work);
        work.clipped[c] = set.answer(chunk, work.answers(), scratch);
        flow(lanes, chunk, work);
    }
    const double Z = dot(work.share.data() + begin, work.W.data() + begin, end - begin), norm = 1.0 / Z;
    for (Index i = begin; i < end; ++i) work.share[i] *= norm;
    finish_flow(lanes, k, norm, work);
    return work.top[k + 1] - work.top[k] + log(Z);
}

/// w = u · e^{β(s') − middle}, those of each pair around 1, its sum into W, and middle − β(s) into share.
inline void weigh_by_logarithms(const Lanes& lanes, const Chunk& chunk, const double* beta, bool logarithmic,
                                Workspace& work) {
    const Index n = chunk.n_lanes;
    for (Index v = 0; v < n; ++v) {
        double least = INF, most = -INF;
        for (Index j = chunk.first + v; j < chunk.last; j += n) {
            const double x = (logarithmic ? work.u[j] : log(work.u[j])) + beta[lanes.successor[j]];
            work.p[j] = x;
            least = x > -INF ? min(x, least) : least;
            most = max(x, most);
        }
        const double middle = most - min(0.5 * (most - least), 2.0 * RANGE);
        double total = 0.0;
        for (Index j = chunk.first + v; j < chunk.last; j += n) {
            work.p[j] = work.p[j] > -INF ? exp(max(work.p[j] - middle, -2.0 * RANGE)) : 0.0;
            total += work.p[j];
        }
        work.W[chunk.pair + v] = total;
        work.share[chunk.pair + v] = middle - beta[lanes.origin[chunk.pair + v]];
    }
}

/// One layer of `evaluate` by logarithms: p* instead of W p*, and 1 for W, since H has products with q / W².
template <class Set>
double evaluate_layer_by_logarithms(const Lanes& lanes, const Set& set, const double* beta, bool logarithmic, Index k,
                                    Workspace& work, Scratch& scratch) {
    double largest = -INF, Z = 0.0;
    for (Index c = lanes.first_chunk(k); c < lanes.first_chunk(k + 1); ++c) {
        const Chunk chunk = lanes.chunk(c);
        weigh_by_logarithms(lanes, chunk, beta, logarithmic, work);
        work.clipped[c] = set.answer(chunk, work.answers(), scratch);
        for (Index v = 0; v < chunk.n_lanes; ++v) {
            double& W = work.W[chunk.pair + v];
            work.share[chunk.pair + v] += log(W);
            largest = max(work.share[chunk.pair + v], largest);
            for (Index j = chunk.first + v; j < chunk.last; j += chunk.n_lanes) work.p[j] /= W;
            W = 1.0;
        }
    }
    const Index begin = lanes.first_pair(k), end = lanes.first_pair(k + 1);
    for (Index i = begin; i < end; ++i) Z += exp(work.share[i] - largest);
    const double log_Z = largest + log(Z);
    for (Index i = begin; i < end; ++i) work.share[i] = exp(work.share[i] - log_Z);
    start_flow(lanes, k, work);
    for (Index c = lanes.first_chunk(k); c < lanes.first_chunk(k + 1); ++c) flow(lanes, lanes.chunk(c), work);
    finish_flow(lanes, k, 1.0, work);
    return log_Z;
}

/// F(β) and the flow residual; writes p, label, W, share, inflow, outflow. `logarithmic` says that u holds logarithms.
template <class Set>
Value evaluate(const Lanes& lanes, const Set& set, const double* beta, bool logarithmic, Workspace& work) {
    const Index L = lanes.n_layers();
    const bool by_logarithms = exponentiate(lanes, beta, work) || logarithmic;
    work.pool.each(L, [&](Index k, int worker) {
        Scratch& scratch = work.scratch[worker];
        work.log_Z[k] = by_logarithms ? evaluate_layer_by_logarithms(lanes, set, beta, logarithmic, k, work, scratch)
                                      : evaluate_layer(lanes, set, k, work, scratch);
    });
    Value value{0.0, 0.0};
    for (Index k = 0; k < L; ++k) value.F += work.log_Z[k];
    for (Index s = lanes.first_state(1); s < lanes.first_state(L); ++s)
        value.residual += abs(work.inflow[s] - work.outflow[s]);
    return value;
}

/// θ of every tuple: what its slot has, in proportion to its own u. Writes θ / u of every slot into `ratio`, which may be p.
inline void divide(const Space& space, const Lanes& lanes, bool logarithmic, Workspace& work, double* ratio,
                   double* __restrict theta) {
    work.pool.each(lanes.n_layers(), [&](Index k, int) {
        const Tuples tuples(space, k);
        const std::uint32_t* __restrict slot = lanes.slot.data();
        const double* p = work.p.data();
        double* __restrict u = work.u.data();
        if (logarithmic) {
            for (Index j = tuples.begin; j < tuples.end; ++j) theta[j] = exp(theta[j] - u[slot[j]]);
            // The parts add up to 1 but for the rounding of logarithms, which may be much.
            std::fill(u + lanes.first_slot(k), u + lanes.first_slot(k + 1), 0.0);
            for (Index j = tuples.begin; j < tuples.end; ++j) u[slot[j]] += theta[j];
        }
        for (Index c = lanes.first_chunk(k); c < lanes.first_chunk(k + 1); ++c) {
            const Chunk chunk = lanes.chunk(c);
            const double* __restrict share = work.share.data() + chunk.pair;
            for (Index row = chunk.first; row < chunk.last; row += chunk.n_lanes)
                for (Index v = 0; v < chunk.n_lanes; ++v)
                    ratio[row + v] = share[v] * p[row + v] / u[row + v];  // in this order: share / u may overflow
        }
        for (Index j = tuples.begin; j < tuples.end; ++j) theta[j] *= ratio[slot[j]];
    });
}

}  // namespace tightrope
