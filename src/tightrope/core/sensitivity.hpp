// How the answer of the subproblem moves with prices of its rows: what Newton's method on them needs.
//
// At the answer θ = q p let every log w(s,a,s') change by x(s,a,s'). With x̄ the mean of x under p, and ∂p/∂log w that of
// `sets.hpp`,
//
//     dθ = M x − θ Σ θ x,   M x = q (∂p/∂log w) x + θ x̄,      the sum over the layer,
//
// and if flow is to be conserved the potentials move too, by the dβ with H dβ = −d(inflow − outflow): then
// x = −A + dβ(s') − dβ(s) for a row A whose price rises.
//
// Everything is by slot, as the solver has laid tuples out. Where those of free pairs share a slot, A has there the mean
// under θ, and what differs from it adds to the curvature alone.
#pragma once

#include "newton.hpp"

namespace tightrope {

/// The rows −A_i / size_i by slot, and how they move θ at the last evaluation, for which H was made anew (`renew_hessian`).
template <class Set>
class Response {
public:
    /// A (m, n_tuples), size (m,).
    Response(const Space& space, const Lanes& lanes, const Set& set, const bool* free, const Workspace& work, const double* A,
             const std::vector<double>& size)
        : space_(space), lanes_(lanes), set_(set), free_(free), work_(work), A_(A), m_(static_cast<Index>(size.size())),
          x_(m_ * lanes.n_slots()), out_(m_ * space.n_states), in_(m_ * space.n_states), overall_(m_ * space.n_layers),
          parts_(m_ * m_ * space.n_layers),
          tables_(work.pool.workers(), std::vector<double>((lanes.longest() + 2) * LANES)) {
        for (const double each : size) scale_.push_back(-1.0 / each);
        for (Index i = 0; i < space.n_pairs; ++i) {
            const Index first = space.pair_ptr[i], last = space.pair_ptr[i + 1];
            if (free[i]) {
                if (runs_.empty() || runs_.back().last != first) runs_.push_back({first, first});
                runs_.back().last = last;
            }
            for (Index h = 0; h < m_; ++h)
                for (Index j = first; j < last; ++j) x(h)[lanes.slot[j]] = scale_[h] * A[h * space.n_tuples + j];
        }
    }

    /// outflow − inflow of every state as the prices of some rows rise, dβ aside; 0 at the first and the last state. That of
    /// row i goes to drained + i · n_states.
    void drain(const std::vector<Index>& rows, const double* theta, double* drained) {
        work_.pool.each(space_.n_layers, [&](Index k, int worker) {
            average(k, rows, theta);
            const Index begin = lanes_.first_state(k), after = lanes_.first_state(k + 1), end = lanes_.first_state(k + 2);
            for (const Index i : rows) {
                double *__restrict out = out_.data() + i * space_.n_states, *__restrict in = in_.data() + i * space_.n_states;
                std::fill(in + after, in + end, 0.0);
                const double* x_i = x(i);
                const double overall = move(
                    k, tables_[worker].data(), out,
                    [&](const Chunk& chunk, Index row, double* to) { std::copy_n(x_i + row, chunk.n_lanes, to); },
                    [&](const Chunk& chunk, Index row, const double*, const double* moved) {
                        const std::uint32_t* to = lanes_.successor.data() + row;
                        if (chunk.aligned)
                            in[*to] += sum(moved, chunk.n_lanes);
                        else
                            for (Index v = 0; v < chunk.n_lanes; ++v) in[to[v]] += moved[v];
                    });
                for (Index s = begin; s < after; ++s) out[s] -= overall * work_.outflow[s];
                for (Index s = after; s < end; ++s) in[s] -= overall * work_.inflow[s];
                overall_[i * space_.n_layers + k] = overall;
            }
        });
        for (const Index i : rows) {
            double* to = drained + i * space_.n_states;
            for (Index s = 1; s < space_.last_state(); ++s)
                to[s] = out_[i * space_.n_states + s] - in_[i * space_.n_states + s];
            to[0] = to[space_.last_state()] = 0.0;
        }
    }

    /// S_ih = x_i · dθ_h of the same rows, (n, n), after `drain`; dβ of row i is at dbeta + i · n_states.
    void curvature(const std::vector<Index>& rows, const double* dbeta, double* S) {
        const Index n = static_cast<Index>(rows.size());
        work_.pool.each(space_.n_layers, [&](Index k, int worker) {
            double* part = parts_.data() + k * m_ * m_;  // of `average`
            for (Index c = 0; c < n; ++c) {
                const Index i = rows[c];
                const double centre = centre_of(i, k, dbeta);
                move(
                    k, tables_[worker].data(), out_.data() + i * space_.n_states,
                    [&](const Chunk& chunk, Index row, double* to) { along(i, chunk, row, dbeta, centre, to); },
                    [&](const Chunk& chunk, Index row, const double* mine, const double* moved) {
                        double other[LANES];
                        part[i * m_ + i] += dot(moved, mine, chunk.n_lanes);
                        for (Index b = 0; b < c; ++b) {
                            along(rows[b], chunk, row, dbeta, centre_of(rows[b], k, dbeta), other);
                            part[i * m_ + rows[b]] += dot(moved, other, chunk.n_lanes);
                        }
                    });
            }
        });
        for (Index c = 0; c < n; ++c)
            for (Index b = 0; b <= c; ++b) {
                double total = 0.0;
                for (Index k = 0; k < space_.n_layers; ++k) total += parts_[(k * m_ + rows[c]) * m_ + rows[b]];
                S[c * n + b] = S[b * n + c] = total;
            }
    }

private:
    /// Tuples first .. last of free pairs.
    struct Run {
        Index first, last;
    };

    double* x(Index i) { return x_.data() + i * lanes_.n_slots(); }

    /// The means of layer k in the slots of free pairs, and Σ θ (x_i − mean)(x_h − mean) of what they hide.
    void average(Index k, const std::vector<Index>& rows, const double* __restrict theta) {
        const Index begin = space_.first_tuple(k), end = space_.first_tuple(k + 1);
        const auto earlier = [](const Run& run, Index tuple) { return run.last <= tuple; };
        const auto first = std::lower_bound(runs_.begin(), runs_.end(), begin, earlier);
        const std::uint32_t* __restrict slot = lanes_.slot.data();
        const auto each_tuple = [&](const auto& task) {
            for (auto run = first; run != runs_.end() && run->first < end; ++run)
                for (Index j = std::max(run->first, begin); j < std::min(run->last, end); ++j) task(j);
        };
        double* part = parts_.data() + k * m_ * m_;
        std::fill(part, part + m_ * m_, 0.0);
        for (const Index i : rows) {
            const double* __restrict A = A_ + i * space_.n_tuples;
            const double scale = scale_[i];
            double* __restrict mean = x(i);
            each_tuple([&](Index j) { mean[slot[j]] = 0.0; });
            each_tuple([&](Index j) { mean[slot[j]] += theta[j] * A[j]; });
            for (Index c = lanes_.first_chunk(k); c < lanes_.first_chunk(k + 1); ++c) {
                const Chunk chunk = lanes_.chunk(c);
                if (!free_[lanes_.pair[chunk.pair]]) break;  // free pairs come first
                for (Index row = chunk.first; row < chunk.last; row += chunk.n_lanes)
                    for (Index v = 0; v < chunk.n_lanes; ++v) {
                        const double mass = work_.share[chunk.pair + v] * work_.p[row + v];
                        mean[row + v] = mass > 0.0 ? scale * mean[row + v] / mass : 0.0;
                    }
            }
            for (const Index h : rows) {
                if (h > i) break;
                const double *__restrict other = A_ + h * space_.n_tuples, *__restrict other_mean = x(h);
                const double other_scale = scale_[h];
                double total = 0.0;
                each_tuple([&](Index j) {
                    const double off = scale * A[j] - mean[slot[j]], other_off = other_scale * other[j] - other_mean[slot[j]];
                    total += theta[j] * off * other_off;
                });
                part[i * m_ + h] = total;
            }
        }
    }

    /// x = −A / size + dβ(s') − dβ(s) of a row of slots, less `centre`.
    void along(Index i, const Chunk& chunk, Index row, const double* dbeta, double centre, double* __restrict to) const {
        const double *__restrict b = dbeta + i * space_.n_states, *__restrict A = x_.data() + i * lanes_.n_slots() + row;
        const std::uint32_t* __restrict successor = lanes_.successor.data() + row;
        const std::uint32_t* __restrict origin = lanes_.origin.data() + chunk.pair;
        for (Index v = 0; v < chunk.n_lanes; ++v) to[v] = A[v] - centre + b[successor[v]] - b[origin[v]];
    }

    /// Σ θ x over layer k for the x of `along`, so that there is next to nothing left of it.
    double centre_of(Index i, Index k, const double* dbeta) const {
        const Index begin = lanes_.first_state(k), after = lanes_.first_state(k + 1), end = lanes_.first_state(k + 2);
        const double* b = dbeta + i * space_.n_states;
        return overall_[i * space_.n_layers + k] + dot(work_.inflow.data() + after, b + after, end - after) -
               dot(work_.outflow.data() + begin, b + begin, after - begin);
    }

    /// M x over layer k: read(chunk, row, x) has to write x of a row of slots, use(chunk, row, x, M x) takes the answer.
    /// Writes the outflow of M x, and returns its sum.
    template <class Read, class Use>
    double move(Index k, double* table, double* __restrict out, const Read& read, const Use& use) const {
        const Index begin = lanes_.first_state(k), after = lanes_.first_state(k + 1);
        std::fill(out + begin, out + after, 0.0);
        double *all = table, *moved = table + LANES, *mine = table + 2 * LANES;
        for (Index c = lanes_.first_chunk(k); c < lanes_.first_chunk(k + 1); ++c) {
            const Chunk chunk = lanes_.chunk(c);
            const Index n = chunk.n_lanes;
            const double *__restrict p = work_.p.data(), *__restrict share = work_.share.data() + chunk.pair;
            const std::uint32_t* __restrict origin = lanes_.origin.data() + chunk.pair;
            if (work_.clipped[c]) {
                const auto kept = [&](Index row) { return mine + (row - chunk.first) / n * LANES; };
                respond(
                    set_, chunk, work_.flow(lanes_),
                    [&](Index row, double* to) {
                        read(chunk, row, kept(row));
                        std::copy_n(kept(row), n, to);
                    },
                    [&](Index row, const double* beside) {
                        for (Index v = 0; v < n; ++v)
                            moved[v] = beside[v] + diagonal(chunk, row, v) * share[v] * p[row + v] * kept(row)[v];
                        use(chunk, row, kept(row), moved);
                    },
                    all);
            } else {
                std::fill(all, all + n, 0.0);
                for (Index row = chunk.first; row < chunk.last; row += n) {
                    read(chunk, row, mine);
                    for (Index v = 0; v < n; ++v) moved[v] = p[row + v] * mine[v];
                    for (Index v = 0; v < n; ++v) all[v] += moved[v];
                    for (Index v = 0; v < n; ++v) moved[v] *= share[v];
                    use(chunk, row, mine, moved);
                }
            }
            for (Index v = 0; v < n; ++v) out[origin[v]] += share[v] * all[v];
        }
        return sum(out + begin, after - begin);
    }

    /// The share of its θ that a slot has on the diagonal of M, beside what `respond` adds.
    TIGHTROPE_INLINE double diagonal(const Chunk& chunk, Index row, Index v) const {
        if constexpr (requires { set_.kappa; }) {
            return set_.kappa[row + v];
        } else {
            const std::int8_t* label = work_.label.data();
            return label[chunk.first + v] == WHOLE || label[row + v] != FIXED ? 1.0 : 0.0;
        }
    }

    const Space& space_;
    const Lanes& lanes_;
    const Set& set_;
    const bool* free_;
    const Workspace& work_;
    const double* A_;
    const Index m_;
    std::vector<double> scale_;                ///< (m,) −1 / size
    std::vector<Run> runs_;                    ///< in order
    std::vector<double> x_;                    ///< (m, n_slots) −A / size, or its mean
    std::vector<double> out_, in_;             ///< (m, n_states)
    std::vector<double> overall_;              ///< (m, L) Σ θ x
    std::vector<double> parts_;                ///< (L, m, m) of S
    std::vector<std::vector<double>> tables_;  ///< for each worker
};

namespace sensitivity {
inline constexpr double LARGEST = 1e12;  ///< A dβ beyond is rounding: β stays, and θ is said to move more than it will.
}  // namespace sensitivity

/// Set dβ to 0 outside of the inner states, and everywhere if it is rounding.
inline void keep_if_sound(const Lanes& lanes, double* dbeta) {
    const Index first = lanes.first_state(1), last = lanes.first_state(lanes.n_layers());
    bool sound = true;
    for (Index s = first; s < last; ++s) sound &= abs(dbeta[s]) < sensitivity::LARGEST;
    for (Index s = 0; s < lanes.n_states(); ++s)
        if (!sound || s < first || s >= last) dbeta[s] = 0.0;
}

}  // namespace tightrope
