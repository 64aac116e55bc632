// Confidence sets in the layout of a solver: the arrays by slot and by pair that each set reads.
//
// Each is made of arrays by tuple and by pair of the space, and `set` is the view that answers the pair's question.
#pragma once

#include <vector>

#include "box.hpp"
#include "kl.hpp"
#include "kl_movement.hpp"
#include "l1.hpp"

namespace tightrope {

/// By tuple in, by slot out, 0 in the padding; of free pairs of one state, any one's.
inline std::vector<double> to_slots(const Lanes& lanes, const double* by_tuple) {
    std::vector<double> slots(lanes.n_slots(), 0.0);
    for (std::size_t j = 0; j < lanes.slot.size(); ++j) slots[lanes.slot[j]] = by_tuple[j];
    return slots;
}

/// The probabilities of every pair, those below `least` as 0, divided by their total where `scaled(pair, total)`.
template <class Scaled>
std::vector<double> distributions(const Space& space, const Lanes& lanes, const double* by_tuple, double least,
                                  const Scaled& scaled) {
    std::vector<double> slots(lanes.n_slots(), 0.0), kept;
    for (Index i = 0; i < space.n_pairs; ++i) {
        const Index begin = space.pair_ptr[i], n = space.pair_ptr[i + 1] - begin;
        kept.assign(by_tuple + begin, by_tuple + begin + n);
        for (double& P : kept) P = P < least ? 0.0 : P;
        const double total = sum(kept.data(), n), divisor = scaled(i, total) ? total : 1.0;
        for (Index j = 0; j < n; ++j) slots[lanes.slot[begin + j]] = kept[j] / divisor;
    }
    return slots;
}

/// ‖p − center‖₁ <= radius; a radius of 2 or more leaves a pair free.
class L1Data {
public:
    L1Data(const Space& space, const Lanes& lanes, const double* center, const double* radius)
        : center_(distributions(space, lanes, center, -INF, [&](Index i, double total) {
              return abs(total - 1.0) > NORMALISED && radius[i] < 2.0;
          })) {
        for (const std::uint32_t i : lanes.pair) {
            const double eps = radius[i];
            radius_.push_back(eps < 2.0 ? (eps < SMALLEST_RADIUS ? 0.0 : eps) : INF);
        }
    }

    L1Set set() const { return {center_.data(), radius_.data()}; }

private:
    static constexpr double SMALLEST_RADIUS = 1e-14;  ///< A smaller ball is a point: rounding would lose its thresholds.
    static constexpr double NORMALISED = 1e-13;       ///< A sum this close to 1 is rounding, and left alone.

    std::vector<double> center_, radius_;
};

/// lower <= p <= upper.
class BoxData {
public:
    BoxData(const Space&, const Lanes& lanes, const double* lower, const double* upper)
        : lower_(to_slots(lanes, lower)), upper_(to_slots(lanes, upper)), radius_(lanes.n_pairs(), INF) {}

    BoxSet set() const { return {lower_.data(), upper_.data(), lower_.data(), radius_.data()}; }

private:
    std::vector<double> lower_, upper_, radius_;
};

/// lower <= p <= upper and ‖p − center‖₁ <= radius.
class CutBoxData {
public:
    CutBoxData(const Space& space, const Lanes& lanes, const double* lower, const double* upper, const double* center,
               const double* radius)
        : lower_(to_slots(lanes, lower)), upper_(to_slots(lanes, upper)), ball_(space, lanes, center, radius) {}

    BoxSet set() const { return {lower_.data(), upper_.data(), ball_.set().center, ball_.set().radius}; }

private:
    std::vector<double> lower_, upper_;
    L1Data ball_;
};

/// KL(center‖p) <= radius; `free` pairs have no ball.
class KLData {
public:
    KLData(const Space& space, const Lanes& lanes, const bool* free, const double* center, const double* radius)
        : mean_(lanes.n_pairs(), 0.0), sigma_(lanes.n_pairs(), 0.0), kappa_(lanes.n_slots(), 1.0) {
        center_ = distributions(space, lanes, center, SMALLEST_CENTER, [&](Index i, double) { return !free[i]; });
        inverse_.reserve(center_.size());
        for (const double P : center_) inverse_.push_back(P > 0.0 ? 1.0 / P : 0.0);
        for (const std::uint32_t i : lanes.pair)
            radius_.push_back(free[i] ? INF : (radius[i] < SMALLEST_RADIUS ? 0.0 : radius[i]));
    }

    KLSet set() {
        return {center_.data(), inverse_.data(), radius_.data(), kappa_.data(), mean_.data(), sigma_.data()};
    }

private:
    static constexpr double SMALLEST_RADIUS = 1e-18;   ///< As for L1 balls; it is about the square of a distance.
    static constexpr double SMALLEST_CENTER = 1e-290;  ///< The smallest probability with a logarithm.

    std::vector<double> center_, inverse_, radius_, mean_, sigma_, kappa_;
};

}  // namespace tightrope
