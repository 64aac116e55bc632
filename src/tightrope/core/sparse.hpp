// H of a model with few successors, assembled: what the actions of a state have in common is summed up once, and not in
// every iteration of the conjugate gradient method.
//
// From layer to layer there are the blocks −B, B(s, s') = Σ_a θ(s, a, s'). Inside a layer there are the diagonal D and,
// beside it, E: two states have an entry if some state leads to both. The first state takes no part: it may lead anywhere.
#pragma once

#include <algorithm>
#include <limits>
#include <memory>
#include <vector>

#include "arithmetic.hpp"
#include "workspace.hpp"

namespace tightrope {

/// Which entries B and E have. It depends on the space alone.
class SparsePattern {
public:
    using Indices = std::vector<std::uint32_t>;

    Indices to_ptr, to;          ///< The successors of state s, in order: to[to_ptr[s]] .. to[to_ptr[s + 1]].
    Indices from_ptr, from, at;  ///< The states that lead to state s', in order, and the index of their entry of B.
    Indices beside_ptr, beside;  ///< The later states of the layer that state s' has an entry of E with, in order.
    Indices entry_ptr, entry;    ///< Of state s, for its successors i < j, row by row: the index of their entry of E.

    /// Whether H is worth assembling: E must not have more entries than the model has tuples; and indices have 32 bits.
    static bool fits(const Space& space) {
        Index products = 0;
        bool few = true;
        each_state(space, [&](Index, const Indices& successors) {
            const Index m = static_cast<Index>(successors.size());
            products += m * (m - 1) / 2;
            few = few && m <= std::numeric_limits<std::uint8_t>::max();
        });
        return few && products <= space.n_tuples && space.n_tuples <= std::numeric_limits<std::uint32_t>::max();
    }

    explicit SparsePattern(const Space& space) : to_ptr{0}, from_ptr(space.n_states + 1, 0), entry_ptr{0} {
        each_state(space, [&](Index, const Indices& successors) {
            to.insert(to.end(), successors.begin(), successors.end());
            to_ptr.push_back(static_cast<std::uint32_t>(to.size()));
            for (const std::uint32_t t : successors) ++from_ptr[t + 1];
        });
        for (Index s = 0; s < space.n_states; ++s) from_ptr[s + 1] += from_ptr[s];
        from.resize(to.size());
        at.resize(to.size());
        Indices next(from_ptr.begin(), from_ptr.end() - 1);
        for (Index s = 0; s < space.n_states; ++s)
            for (Index j = to_ptr[s]; j < to_ptr[s + 1]; ++j) {
                const std::uint32_t place = next[to[j]]++;
                from[place] = static_cast<std::uint32_t>(s);
                at[place] = static_cast<std::uint32_t>(j);
            }

        beside_ptr.push_back(0);
        Indices seen(space.n_states, std::numeric_limits<std::uint32_t>::max());
        for (Index t = 0; t < space.n_states; ++t) {
            for (Index i = from_ptr[t]; i < from_ptr[t + 1]; ++i)
                for (Index j = to_ptr[from[i]]; j < to_ptr[from[i] + 1]; ++j)
                    if (to[j] > t && seen[to[j]] != t) {
                        seen[to[j]] = static_cast<std::uint32_t>(t);
                        beside.push_back(to[j]);
                    }
            std::sort(beside.begin() + beside_ptr.back(), beside.end());
            beside_ptr.push_back(static_cast<std::uint32_t>(beside.size()));
        }
        for (Index s = 0; s < space.n_states; ++s) {
            for (Index i = to_ptr[s]; i < to_ptr[s + 1]; ++i) {
                const auto row = beside.begin() + beside_ptr[to[i]], end = beside.begin() + beside_ptr[to[i] + 1];
                for (Index j = i + 1; j < to_ptr[s + 1]; ++j)
                    entry.push_back(static_cast<std::uint32_t>(std::lower_bound(row, end, to[j]) - beside.begin()));
            }
            entry_ptr.push_back(static_cast<std::uint32_t>(entry.size()));
        }
    }

private:
    /// task(s, its successors in order) for every state s; the first has none.
    template <class Task>
    static void each_state(const Space& space, const Task& task) {
        Indices successors;
        task(0, successors);
        for (Index s = 1; s < space.n_states; ++s) {
            successors.assign(space.successor + space.pair_ptr[space.state_ptr[s]],
                              space.successor + space.pair_ptr[space.state_ptr[s + 1]]);
            std::sort(successors.begin(), successors.end());
            successors.erase(std::unique(successors.begin(), successors.end()), successors.end());
            task(s, successors);
        }
    }
};

/// H at one β. D is in the workspace.
class SparseHessian {
public:
    SparseHessian(const Space& space, const Lanes& lanes, std::shared_ptr<const SparsePattern> pattern)
        : pattern_(std::move(pattern)), place_(lanes.n_slots()), B_(pattern_->to.size()), E_(pattern_->beside.size()) {
        for (Index s = 1; s < space.n_states; ++s)
            for (Index j = space.pair_ptr[space.state_ptr[s]]; j < space.pair_ptr[space.state_ptr[s + 1]]; ++j) {
                const auto row = pattern_->to.begin() + pattern_->to_ptr[s];
                const auto end = pattern_->to.begin() + pattern_->to_ptr[s + 1];
                const auto successor = static_cast<std::uint32_t>(space.successor[j]);
                place_[lanes.slot[j]] = static_cast<std::uint8_t>(std::lower_bound(row, end, successor) - row);
            }
    }

    /// B of layer k, from the chunks of the layer one by one; in the end it is multiplied by norm, and added to inflow.
    void start(const Lanes& lanes, Index k) {
        const Index begin = lanes.first_state(k), end = lanes.first_state(k + 1);
        std::fill(B_.begin() + pattern_->to_ptr[begin], B_.begin() + pattern_->to_ptr[end], 0.0);
    }

    void connect(const Lanes& lanes, const Chunk& chunk, const Workspace& work) {
        const double* __restrict p = work.p.data();
        const std::uint8_t* __restrict place = place_.data();
        for (Index v = 0; v < chunk.n_lanes; ++v) {
            const double share = work.share[chunk.pair + v];
            double* __restrict row = B_.data() + pattern_->to_ptr[lanes.origin[chunk.pair + v]];
            for (Index j = chunk.first + v; j < chunk.last; j += chunk.n_lanes) row[place[j]] += share * p[j];
        }
    }

    void finish(const Lanes& lanes, Index k, double norm, double* __restrict inflow) {
        const Index begin = pattern_->to_ptr[lanes.first_state(k)], end = pattern_->to_ptr[lanes.first_state(k + 1)];
        for (Index j = begin; j < end; ++j) B_[j] *= norm;
        for (Index s = lanes.first_state(k + 1); s < lanes.first_state(k + 2); ++s)
            for (Index j = pattern_->from_ptr[s]; j < pattern_->from_ptr[s + 1]; ++j) inflow[s] += B_[pattern_->at[j]];
    }

    /// E of the last evaluation; adds to D, which is inflow + outflow on entry, what else H has on its diagonal.
    void assemble(const Lanes& lanes, Workspace& work) {
        const auto begin = work.clipped.begin() + lanes.first_chunk(1), end = work.clipped.end();
        moving_ = std::find(begin, end, 1) != end;
        if (!moving_) return;
        work.pool.each(lanes.n_layers() - 1, [&](Index k, int) { assemble_layer(lanes, k + 1, work); });
    }

    /// Σ_s' B(s, s') t(s').
    TIGHTROPE_INLINE double pull(Index s, const double* __restrict t) const {
        double sum = 0.0;
        for (Index j = pattern_->to_ptr[s]; j < pattern_->to_ptr[s + 1]; ++j) sum += B_[j] * t[pattern_->to[j]];
        return sum;
    }

    /// Σ_s B(s, s') y(s).
    TIGHTROPE_INLINE double push(Index s, const double* __restrict y) const {
        double sum = 0.0;
        for (Index j = pattern_->from_ptr[s]; j < pattern_->from_ptr[s + 1]; ++j)
            sum += B_[pattern_->at[j]] * y[pattern_->from[j]];
        return sum;
    }

    /// y = E t over the states begin .. end of a layer.
    void multiply(Index begin, Index end, const double* __restrict t, double* __restrict y) const {
        std::fill(y + begin, y + end, 0.0);
        if (!moving_) return;
        for (Index s = begin; s < end; ++s) {
            double sum = y[s];
            for (Index j = pattern_->beside_ptr[s]; j < pattern_->beside_ptr[s + 1]; ++j) {
                const Index other = pattern_->beside[j];
                sum += E_[j] * t[other];
                y[other] += E_[j] * t[s];
            }
            y[s] = sum;
        }
    }

    /// C(s') −= fill · B(s, s') outflow(s) / C(s), layer by layer.
    void eliminate(const Lanes& lanes, double fill, const double* outflow, double* __restrict C) const {
        for (Index s = lanes.first_state(1); s < lanes.first_state(lanes.n_layers()); ++s) {
            const double factor = fill * outflow[s] / C[s];
            for (Index j = pattern_->to_ptr[s]; j < pattern_->to_ptr[s + 1]; ++j) C[pattern_->to[j]] -= factor * B_[j];
        }
    }

private:
    void assemble_layer(const Lanes& lanes, Index k, Workspace& work) {
        const Index after = lanes.first_state(k + 1), end = lanes.first_state(k + 2);
        std::fill(E_.begin() + pattern_->beside_ptr[after], E_.begin() + pattern_->beside_ptr[end], 0.0);
        for (Index c = lanes.first_chunk(k); c < lanes.first_chunk(k + 1); ++c) {
            const Chunk chunk = lanes.chunk(c);
            if (!work.clipped[c]) continue;
            for (Index v = 0; v < chunk.n_lanes; ++v)
                if (work.label[chunk.first + v] != WHOLE) spread(lanes, chunk, v, work);
        }
    }

    /// Add q (p pᵀ + ∂p/∂β) − θ of a pair that is not WHOLE to D and E.
    TIGHTROPE_INLINE void spread(const Lanes& lanes, const Chunk& chunk, Index v, Workspace& work) {
        const Index n = chunk.n_lanes, s = lanes.origin[chunk.pair + v];
        const Index m = pattern_->to_ptr[s + 1] - pattern_->to_ptr[s];
        const double* __restrict p = work.p.data();
        const std::int8_t* __restrict label = work.label.data();
        const double q = work.share[chunk.pair + v], apart = q / work.W[chunk.pair + v];
        double mass[3] = {};
        for (Index j = chunk.first + v; j < chunk.last; j += n) mass[label[j]] += p[j];
        const double together[3] = {0.0, mass[1] > 0.0 ? q / mass[1] : 0.0, mass[2] > 0.0 ? q / mass[2] : 0.0};
        const std::uint32_t* entry = pattern_->entry.data() + pattern_->entry_ptr[s];
        for (Index j = chunk.first + v; j < chunk.last; j += n) {
            const std::int8_t mine = label[j];
            const Index i = place_[j];
            const Index row = i * (2 * m - i - 1) / 2 - i - 1;
            const double x = p[j] * apart, y = p[j] * (apart - together[mine]);
            work.D[lanes.successor[j]] += p[j] * y - (mine == FIXED ? q * p[j] : 0.0);
            for (Index j2 = j + n; j2 < chunk.last; j2 += n)
                if (p[j2] != 0.0) E_[entry[row + place_[j2]]] += p[j2] * (label[j2] == mine ? y : x);
        }
    }

    std::shared_ptr<const SparsePattern> pattern_;
    std::vector<std::uint8_t> place_;  ///< By slot, which of the successors of its state it leads to.
    std::vector<double> B_, E_;
    bool moving_ = false;  ///< whether E is not 0
};

}  // namespace tightrope
