// The pair's question of each confidence set over one chunk, for tests: pairs with as many successors, a pair a column.
#include "bindings.hpp"
#include "box.hpp"
#include "kl.hpp"
#include "kl_movement.hpp"
#include "l1.hpp"

namespace tightrope {

namespace {

using Labels = Array<std::int8_t, 2>;

/// The arrays of one chunk, checked against each other: p (rows, pairs), W (pairs,), thresholds (2, pairs).
struct OneChunk {
    Chunk chunk;
    Answers answers;
    Scratch scratch;

    OneChunk(TableOut p, FloatsOut W, Labels label, TableOut thresholds)
        : chunk{0, static_cast<Index>(p.shape(1)), 0, static_cast<Index>(p.size()), true},
          answers{p.data(), W.data(), label.data(), {thresholds.data(), thresholds.data() + p.shape(1)}},
          scratch(static_cast<Index>(p.shape(0))) {
        if (chunk.n_lanes < 1 || chunk.n_lanes > LANES || p.shape(0) < 1)
            throw nb::value_error(("p has " + std::to_string(p.shape(0)) + " rows and " + std::to_string(p.shape(1)) +
                                   " columns; expected one row or more, and 1 to " + std::to_string(LANES) + " columns")
                                      .c_str());
        require_size(W, chunk.n_lanes, "W");
        require_size(thresholds, 2, "thresholds");
        require_size(thresholds, chunk.n_lanes, "thresholds", 1);
        require_table(label, "label");
    }

    /// Raise ValueError unless the table has a number for every entry of p.
    template <class A>
    void require_table(const A& array, const char* name) const {
        require_size(array, chunk.rows(), name);
        require_size(array, chunk.n_lanes, name, 1);
    }

    /// Sum up the weights, and answer.
    template <class Set>
    void answer(const Set& set) {
        nb::gil_scoped_release unlocked;
        for (Index v = 0; v < chunk.n_lanes; ++v) answers.W[v] = 0.0;
        for (Index row = 0; row < chunk.last; row += chunk.n_lanes)
            for (Index v = 0; v < chunk.n_lanes; ++v) answers.W[v] += answers.p[row + v];
        set.answer(chunk, answers, scratch);
    }
};

void answer_l1(Table center, Floats radius, TableOut p, FloatsOut W, Labels label, TableOut thresholds) {
    OneChunk one(p, W, label, thresholds);
    one.require_table(center, "center");
    require_size(radius, one.chunk.n_lanes, "radius");
    one.answer(L1Set{center.data(), radius.data()});
}

void answer_box(Table lower, Table upper, Table center, Floats radius, TableOut p, FloatsOut W, Labels label,
                TableOut thresholds) {
    OneChunk one(p, W, label, thresholds);
    one.require_table(lower, "lower");
    one.require_table(upper, "upper");
    one.require_table(center, "center");
    require_size(radius, one.chunk.n_lanes, "radius");
    one.answer(BoxSet{lower.data(), upper.data(), center.data(), radius.data()});
}

void answer_kl(Table center, Floats radius, TableOut p, FloatsOut W, Labels label, TableOut thresholds, TableOut kappa) {
    OneChunk one(p, W, label, thresholds);
    one.require_table(center, "center");
    one.require_table(kappa, "kappa");
    require_size(radius, one.chunk.n_lanes, "radius");
    std::vector<double> inverse(center.size());
    for (std::size_t j = 0; j < inverse.size(); ++j) inverse[j] = center.data()[j] > 0.0 ? 1.0 / center.data()[j] : 0.0;
    one.answer(KLSet{center.data(), inverse.data(), radius.data(), kappa.data(), nullptr, nullptr});
}

/// Row r of the table leads to state r.
void move_kl(TableOut kappa, TableOut p, FloatsOut W, Labels label, TableOut thresholds, Floats share, bool aligned,
             Floats x, TableOut block, FloatsOut D, FloatsOut y) {
    OneChunk one(p, W, label, thresholds);
    one.chunk.aligned = aligned;
    const Index n_lanes = one.chunk.n_lanes, rows = one.chunk.rows();
    one.require_table(kappa, "kappa");
    require_size(share, n_lanes, "share");
    require_size(x, rows, "x");
    require_size(block, rows, "block");
    require_size(block, rows, "block", 1);
    require_size(D, rows, "D");
    require_size(y, rows, "y");

    std::vector<std::uint32_t> successor(p.size());
    for (std::size_t j = 0; j < successor.size(); ++j) successor[j] = static_cast<std::uint32_t>(j / n_lanes);
    std::vector<double> mean(n_lanes), sigma(n_lanes), all(n_lanes);
    const KLSet set{nullptr, nullptr, nullptr, kappa.data(), mean.data(), sigma.data()};
    const Flow flow{successor.data(), p.data(), label.data(), W.data(), share.data()};
    set.spread(one.chunk, flow, 0, rows, block.data(), one.scratch);
    set.hold(one.chunk, flow, D.data());
    set.respond(
        one.chunk, flow, [&](Index row, double* to) { std::fill_n(to, n_lanes, x.data()[row / n_lanes]); },
        [&](Index row, const double* beside) {
            for (Index v = 0; v < n_lanes; ++v) y.data()[row / n_lanes] += beside[v];
        },
        all.data());
}

}  // namespace

void bind_sets(nb::module_& m) {
    m.def("answer_l1", answer_l1, "center"_a, "radius"_a, "p"_a.noconvert(), "W"_a.noconvert(), "label"_a.noconvert(),
          "thresholds"_a.noconvert(),
          "Answer for L1 balls: p holds w on entry and W p* on exit; W, label and thresholds are written.");
    m.def("answer_box", answer_box, "lower"_a, "upper"_a, "center"_a, "radius"_a, "p"_a.noconvert(), "W"_a.noconvert(),
          "label"_a.noconvert(), "thresholds"_a.noconvert(),
          "Answer for boxes, as for L1 balls.");
    m.def("answer_kl", answer_kl, "center"_a, "radius"_a, "p"_a.noconvert(), "W"_a.noconvert(), "label"_a.noconvert(),
          "thresholds"_a.noconvert(), "kappa"_a.noconvert(), "Answer for KL balls, as for L1 balls; kappa is written too.");
    m.def("move_kl", move_kl, "kappa"_a.noconvert(), "p"_a.noconvert(), "W"_a.noconvert(), "label"_a.noconvert(),
          "thresholds"_a.noconvert(), "share"_a, "aligned"_a, "x"_a, "block"_a.noconvert(), "D"_a.noconvert(),
          "y"_a.noconvert(),
          "How the answers for KL balls move: adds to block, D and y (`sets.hpp`).");
}

}  // namespace tightrope
