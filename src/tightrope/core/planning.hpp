// Backward dynamic programming on a layered space, under a known model or the best model of a confidence set.
//
//     V(s) = choose over a of q(s,a),      q from the V of the next layer,      V = 0 at the last state.
//
// `backward` is the pass. What q is (KnownModel, BestIn, BestInBox) and how a state chooses (Least, Largest, Mean) are its
// parameters. To minimise over models, `sign` is −1: min Σ p v = −max Σ p (−v), with the same bits.
#pragma once

#include <algorithm>
#include <vector>

#include "arithmetic.hpp"
#include "best_model.hpp"
#include "space.hpp"

namespace tightrope {

/// V of the layers before layer `last`, whose own V is given. `q.enter(k, V)` is called before the pairs of layer k,
/// q(i, V) for each of them.
template <class Q, class Choice>
void backward(const Space& space, Index last, Q&& q, Choice&& choose, double* V) {
    for (Index k = last - 1; k >= 0; --k) {
        q.enter(k, V);
        for (Index s = space.layer_ptr[k]; s < space.layer_ptr[k + 1]; ++s)
            V[s] = choose(s, space.state_ptr[s], space.state_ptr[s + 1], [&](Index i) { return q(i, V); });
    }
}

/// One backward pass from the last state on. Writes V.
template <class Q, class Choice>
void backward(const Space& space, Q&& q, Choice&& choose, double* V) {
    V[space.last_state()] = 0.0;
    backward(space, space.n_layers, q, choose, V);
}

/// min_a q(s,a); best[s] is the first pair that attains it.
struct Least {
    std::int64_t* best;
    template <class Q>
    double operator()(Index s, Index first, Index last, Q&& q) const {
        double least = q(first);
        best[s] = first;
        for (Index i = first + 1; i < last; ++i)
            if (const double value = q(i); value < least) least = value, best[s] = i;
        return least;
    }
};

/// max_a q(s,a); best[s] is the first pair that attains it.
struct Largest {
    std::int64_t* best;
    template <class Q>
    double operator()(Index s, Index first, Index last, Q&& q) const {
        double largest = q(first);
        best[s] = first;
        for (Index i = first + 1; i < last; ++i)
            if (const double value = q(i); value > largest) largest = value, best[s] = i;
        return largest;
    }
};

/// Σ_a π(a|s) q(s,a).
struct Mean {
    const double* pi;
    template <class Q>
    double operator()(Index, Index first, Index last, Q&& q) const {
        double mean = 0.0;
        for (Index i = first; i < last; ++i) mean += pi[i] * q(i);
        return mean;
    }
};

/// The most successors that a pair has.
inline Index widest_pair(const Space& space) {
    Index widest = 1;
    for (Index i = 0; i < space.n_pairs; ++i) widest = std::max(widest, space.pair_ptr[i + 1] - space.pair_ptr[i]);
    return widest;
}

/// q(s,a) = Σ_s' P(s'|s,a) (cost(s,a,s') + V(s')).
class KnownModel {
public:
    KnownModel(const Space& space, const double* P, const double* cost)
        : space_(space), P_(P), cost_(cost), v_(widest_pair(space)) {}

    void enter(Index, const double*) {}

    double operator()(Index i, const double* V) {
        const Index first = space_.pair_ptr[i], n = space_.pair_ptr[i + 1] - first;
        for (Index r = 0; r < n; ++r) v_[r] = cost_[first + r] + V[space_.successor[first + r]];
        return dot(P_ + first, v_.data(), n);
    }

private:
    const Space& space_;
    const double *P_, *cost_;
    std::vector<double> v_;
};

/// ‖p − center‖₁ <= radius; a radius of 2 or more leaves the pair free, and the center is not read.
struct InBall {
    const double *center, *radius;
    Order order = {};

    double operator()(Index i, Index first, const double* v, double*, Index n, double* p) {
        if (!(radius[i] >= 2.0)) return transport(Unbounded{}, center + first, radius[i], v, order, n, p);
        const Index top = std::max_element(v, v + n) - v;
        for (Index r = 0; r < n; ++r) p[r] = r == top ? 1.0 : 0.0;
        return v[top];
    }
};

/// The same cut by lower <= p <= upper, which holds for the center; an infinite radius is none.
struct InCutBall {
    const double *lower, *upper, *center, *radius;
    Order order = {};

    double operator()(Index i, Index first, const double* v, double*, Index n, double* p) {
        return transport(Between{lower + first, upper + first}, center + first, radius[i], v, order, n, p);
    }
};

/// KL(center‖p) <= radius; an infinite radius leaves the pair free.
struct InKLBall {
    const double *center, *radius;

    double operator()(Index i, Index first, const double* v, double* room, Index n, double* p) {
        return tilt(center + first, radius[i], v, room, n, p);
    }
};

/// q(s,a) = sign · max over p in C of Σ_s' p(s') sign (cost(s,a,s') + V(s')). Writes p (n_tuples,).
template <class Set>
class BestIn {
public:
    BestIn(const Space& space, Set set, double sign, const double* cost, double* p)
        : space_(space), set_(std::move(set)), sign_(sign), cost_(cost), p_(p), v_(widest_pair(space)), room_(v_.size()) {}

    void enter(Index, const double*) {}

    double operator()(Index i, const double* V) {
        const Index first = space_.pair_ptr[i], n = space_.pair_ptr[i + 1] - first;
        for (Index r = 0; r < n; ++r) v_[r] = sign_ * (cost_[first + r] + V[space_.successor[first + r]]);
        if (n > 1) return sign_ * set_(i, first, v_.data(), room_.data(), n, p_ + first);
        p_[first] = 1.0;
        return sign_ * v_[0];
    }

private:
    const Space& space_;
    Set set_;
    double sign_;
    const double* cost_;
    double* p_;
    std::vector<double> v_, room_;
};

/// q(s,a) = cost(s,a) + sign · max over lower <= p <= upper of Σ_s' p(s') sign V(s'). Writes p (n_tuples,) unless null.
///
/// A pair whose bounds leave nothing open has p = lower. Pairs that lead to all of a layer share one order.
class BestInBox {
public:
    BestInBox(const Space& space, const double* lower, const double* upper, double sign, const double* cost, double* p)
        : space_(space), lower_(lower), upper_(upper), sign_(sign), cost_(cost), p_(p), v_(widest_pair(space)),
          room_(v_.size()) {}

    void enter(Index k, const double* V) {
        const Index below = space_.layer_ptr[k + 1];
        width_ = space_.layer_ptr[k + 2] - below;
        sign_ > 0.0 ? of_layer_.descending(V + below, width_) : of_layer_.ascending(V + below, width_);
    }

    double operator()(Index i, const double* V) {
        const Index first = space_.pair_ptr[i], n = space_.pair_ptr[i + 1] - first;
        for (Index r = 0; r < n; ++r) v_[r] = sign_ * V[space_.successor[first + r]];
        double* const p = p_ ? p_ + first : room_.data();
        if (known(first, n)) {
            std::copy(lower_ + first, lower_ + first + n, p);
            return cost_[i] + sign_ * dot(lower_ + first, v_.data(), n);
        }
        if (n < width_) of_pair_.descending(v_.data(), n);
        const Order& order = n < width_ ? of_pair_ : of_layer_;
        return cost_[i] + sign_ * fill(lower_ + first, upper_ + first, v_.data(), order, n, p);
    }

private:
    bool known(Index first, Index n) const {
        for (Index j = first; j < first + n; ++j)
            if (!(lower_[j] >= upper_[j])) return false;
        return true;
    }

    const Space& space_;
    const double *lower_, *upper_;
    double sign_;
    const double* cost_;
    double* p_;
    std::vector<double> v_, room_;
    Index width_ = 0;
    Order of_layer_, of_pair_;
};

/// x(s,a), the probability that an episode passes through each pair, of the policy that takes the pair best[s] at s under
/// the model p. Writes d (n_states,), that of each state, and x (n_pairs,).
inline void visits(const Space& space, const std::int64_t* best, const double* p, double* d, double* x) {
    std::fill(d, d + space.n_states, 0.0);
    std::fill(x, x + space.n_pairs, 0.0);
    d[0] = 1.0;
    for (Index s = 0; s < space.last_state(); ++s) {
        const Index i = best[s];
        x[i] = d[s];
        for (Index j = space.pair_ptr[i]; j < space.pair_ptr[i + 1]; ++j) d[space.successor[j]] += d[s] * p[j];
    }
}

}  // namespace tightrope
