// What another policy would use of each budget, as rows of linear inequalities.
//
// A pair is believed to lead where it was counted to lead, M(s,a,s') of N(s,a) visits, and D visits more to lead
// where θ has it lead (`Belief`). With x = g_i(s,a,s') + V_i(s'), V_i what the policy π uses of constraint
// i from a state on,
//
//     A_i(s,a,s') = (Σ M x + D x(s')) / (N + D) − ω (√(Var x / N) + span x / N) − V_i(s)
//
// makes <A_i, θ'>, but for the term in ω, what θ' would use more than π, if the D visits were spent as θ' has it: a pair
// that was not visited uses what θ' says. The term in ω takes ω standard errors and ω visits off what was counted, down to
// no less than if all visits had led to the cheapest successor: with ω = ½ one expensive visit alone never excludes a pair.
//
// Paths that were played use more than the counts say by the sum of their surprises,
//
//     e_i = Σ over their steps of x(s') − Σ P x,
//
// which are 0 in the mean if the counts are right: by the simulation lemma, use under the model is û_i + E e_i.
#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

#include "played.hpp"

namespace tightrope {

template <class Count>
class Advantages {
public:
    /// `steps` are the tuples of the paths that were played, in ascending order.
    Advantages(const Belief<Count>& belief, const double* pi, Index n_constraints, double optimism,
               std::vector<std::int64_t> steps)
        : belief_(belief), space_(belief.space), pi_(pi), n_(n_constraints), optimism_(optimism), steps_(std::move(steps)),
          rows_(room_for_workers(space_, longest_row(space_))), V_(n_ * space_.n_states),
          surprises_(n_ * n_steps()) {}

    /// Replace g_i by A_i, backwards over the layers; blocks of a layer run side by side. Writes e (I,).
    void operator()(double* g, double* e) {
        for (Index k = space_.n_layers - 1; k >= 0; --k)
            in_state_blocks(space_, state_blocks(space_, space_.layer_ptr[k], space_.layer_ptr[k + 1]),
                            [&](Index from, Index to, Index, int worker) { states(g, from, to, rows_[worker].data()); });
        for (Index i = 0; i < n_; ++i) {
            const auto of_i = surprises_.begin() + i * n_steps();
            e[i] = std::accumulate(of_i, of_i + n_steps(), 0.0);
        }
    }

private:
    Index n_steps() const { return static_cast<Index>(steps_.size()); }

    void states(double* g, Index from, Index to, double* P) {
        for (Index s = from; s < to; ++s) {
            for (Index k = space_.state_ptr[s]; k < space_.state_ptr[s + 1]; ++k) {
                const Index first = space_.pair_ptr[k], length = space_.pair_ptr[k + 1] - first;
                belief_.row(k, P);
                const auto played = std::lower_bound(steps_.begin(), steps_.end(), first);
                const auto last_played = std::lower_bound(played, steps_.end(), first + length);
                const double D = belief_.visits_more(length), share = D / (static_cast<double>(belief_.N[k]) + D);
                for (Index i = 0; i < n_; ++i) {
                    double* __restrict x = g + i * space_.n_tuples + first;
                    double* const V = V_.data() + i * space_.n_states;
                    for (Index j = 0; j < length; ++j) x[j] += V[space_.successor[first + j]];
                    const double Q = dot(P, x, length);
                    V[s] += pi_[k] * Q;
                    for (auto step = played; step != last_played; ++step)
                        surprises_[i * n_steps() + (step - steps_.begin())] = x[*step - first] - Q;
                    double counted = 0.0;  // Σ M x / (N + D)
                    for (Index j = 0; j < length; ++j) counted += static_cast<double>(belief_.M[first + j]) * x[j];
                    counted *= share / D;
                    if (optimism_ > 0.0) counted = lowered(counted, P, x, Q, length, k, share / D);
                    for (Index j = 0; j < length; ++j) x[j] = counted + share * x[j];
                }
            }
            const Index first = space_.pair_ptr[space_.state_ptr[s]], last = space_.pair_ptr[space_.state_ptr[s + 1]];
            for (Index i = 0; i < n_; ++i) {
                const double V = V_[i * space_.n_states + s];
                for (Index j = first; j < last; ++j) g[i * space_.n_tuples + j] -= V;
            }
        }
    }

    /// Σ M x / (N + D) of pair k less ω (√(Var x / N) + span x / N), for x with the mean Q under the law P of the pair; at
    /// least N min x / (N + D). N is 1 in the denominators before the first visit; each = 1 / (N + D).
    double lowered(double counted, const double* P, const double* x, double Q, Index length, Index k, double each) const {
        double variance = 0.0, least = x[0], most = x[0];
        for (Index j = 0; j < length; ++j) {
            variance += P[j] * (x[j] - Q) * (x[j] - Q);
            least = min(x[j], least);
            most = max(x[j], most);
        }
        const double N = static_cast<double>(belief_.N[k]), visits = max(N, 1.0);
        return max(counted - optimism_ * (sqrt(variance / visits) + (most - least) / visits), N * each * least);
    }

    const Belief<Count>& belief_;
    const Space& space_;
    const double* pi_;
    Index n_;
    double optimism_;
    std::vector<std::int64_t> steps_;
    std::vector<std::vector<double>> rows_;
    std::vector<double> V_;          // (I, n_states)
    std::vector<double> surprises_;  // (I, n_steps)
};

}  // namespace tightrope
