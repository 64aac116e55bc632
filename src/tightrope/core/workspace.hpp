// All that a solve writes to: every array with its name, its length and its meaning.
#pragma once

#include <memory>
#include <vector>

#include "lanes.hpp"
#include "pool.hpp"
#include "sets.hpp"
#include "tridiagonal.hpp"

namespace tightrope {

class SparseHessian;

struct Workspace {
    using Vector = std::vector<double>;

    // Carried from one solve to the next.
    Vector beta;                  ///< (n_states,) potentials, 0 on the first and the last layer
    Panels panels;                ///< H, then its factor; empty where steps come from conjugate gradients
    double factor_damping = NaN;  ///< how much damping the factor holds; NaN while there is none
    Vector thresholds[2];         ///< (n_pairs,) what the pair's question left for its next call

    std::shared_ptr<SparseHessian> sparse;  ///< H for conjugate gradients; null where it is not assembled

    // By state: (n_states,).
    Vector trial;    ///< potentials tried by the line search
    Vector step;     ///< the right-hand side outflow − inflow, then Newton's step
    Vector scale;    ///< e^{β − the largest β of the layer}
    Vector inflow, outflow;
    Vector C, D, r, direction, t, y;  ///< of `conjugate.hpp`

    // By pair: (n_pairs,).
    Vector W;
    Vector share;  ///< e^{−β} / Z, so that θ = share · W p*

    // By slot: (n_slots,), p and label with eight more of no meaning, for who reads eight at a time.
    Vector u;                        ///< reference · e^{−cost} (free pairs: summed), 0 in the padding; or its logarithm
    Vector p;                        ///< w, then W p*, in the end of a plain solve θ / u
    std::vector<std::int8_t> label;  ///< how p* moves (`sets.hpp`)

    std::vector<std::uint8_t> clipped;  ///< (n_chunks,) whether some pair of the chunk is not WHOLE
    Vector top;                         ///< (L + 1,) largest potential of each layer
    Vector log_Z;                       ///< (L,)
    Vector terms;                       ///< (L,) of a sum over layers

    Pool pool;                     ///< chosen by the number of tuples, also where free pairs make fewer slots of them
    std::vector<Scratch> scratch;  ///< one for each thread

    /// Make room for a layout; the thresholds are 0.
    void fit(const Lanes& lanes) {
        const std::size_t states = lanes.n_states(), pairs = lanes.n_pairs(), slots = lanes.n_slots();
        for (Vector* v : {&trial, &step, &scale, &inflow, &outflow, &C, &D, &r, &direction, &t, &y}) v->assign(states, 0.0);
        for (Vector* v : {&W, &share, &thresholds[0], &thresholds[1]}) resize(*v, pairs);
        resize(u, slots);
        resize(p, slots + 8);
        label.assign(slots + 8, 0);
        clipped.assign(lanes.n_chunks(), 0);
        top.assign(lanes.n_layers() + 1, 0.0);
        log_Z.assign(lanes.n_layers(), 0.0);
        terms.assign(lanes.n_layers(), 0.0);
        pool = Pool(lanes.n_tuples());
        scratch.assign(pool.workers(), Scratch(lanes.longest()));
    }

    Answers answers() {
        return {p.data(), W.data(), label.data(), {thresholds[0].data(), thresholds[1].data()}};
    }

    Flow flow(const Lanes& lanes) const {
        return {lanes.successor.data(), p.data(), label.data(), W.data(), share.data()};
    }

private:
    /// All 0, and no memory beyond: layouts shrink and grow by a factor of the number of actions.
    static void resize(Vector& vector, std::size_t size) {
        if (vector.size() != size) vector = Vector();
        vector.assign(size, 0.0);
    }
};

}  // namespace tightrope
