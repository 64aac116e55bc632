// How the answers for KL balls move with their weights.
//
// On the surface of its ball p* = w e^{μ (P̂/p − 1)} / W (`kl.hpp`). With the share κ = 1 / (1 + μ P̂/p) that an entry
// takes of a change of log w, its mean κ̄ = Σ p κ, and v = p (1 − κ/κ̄), the two constraints Σ p = 1 and KL(P̂‖p) = r
// leave
//
//     ∂p/∂log w = diag(p κ) − (p κ)(p κ)ᵀ / κ̄ − v vᵀ / σ,      σ = Σ v² / (p κ):
//
// a diagonal and two orthogonal directions in which p cannot move. (The groups of other sets are the case of κ = 1 in two
// groups and 0 elsewhere.) Everywhere below p is W times the conditional, and 1/κ̄ and 1/σ are 0 where nothing moves.
#pragma once

#include "arithmetic.hpp"
#include "kl.hpp"
#include "sets.hpp"

namespace tightrope {

namespace kl {

/// κ̄ and W σ of every pair of a chunk; 0 for pairs that do not move or are WHOLE.
inline void weigh(const Chunk& c, const Flow& f, const double* __restrict kappa, double* __restrict mean,
                  double* __restrict sigma) {
    const double* __restrict p = f.p;
    double per_mean[LANES], moving[LANES];
    for (Index v = 0; v < c.n_lanes; ++v) moving[v] = f.label[c.first + v] != WHOLE ? 1.0 : 0.0;
    for (Index v = 0; v < c.n_lanes; ++v) mean[v] = 0.0, sigma[v] = 0.0;
    for (Index row = c.first; row < c.last; row += c.n_lanes)
        for (Index v = 0; v < c.n_lanes; ++v) mean[v] += p[row + v] * kappa[row + v];
    for (Index v = 0; v < c.n_lanes; ++v) {
        mean[v] = moving[v] > 0.0 ? mean[v] / f.W[c.pair + v] : 0.0;
        per_mean[v] = mean[v] > 0.0 ? 1.0 / mean[v] : 0.0;
    }
    for (Index row = c.first; row < c.last; row += c.n_lanes)
        for (Index v = 0; v < c.n_lanes; ++v) {
            const double k = kappa[row + v], off = 1.0 - k * per_mean[v];
            sigma[v] += k > 0.0 ? p[row + v] * off * off / k : 0.0;
        }
    for (Index v = 0; v < c.n_lanes; ++v) sigma[v] = moving[v] > 0.0 ? sigma[v] : 0.0;
}

}  // namespace kl

/// q (p pᵀ + ∂p/∂β): a diagonal, and the products of three roots that every pair has, the first with a plus.
inline void KLSet::spread(const Chunk& c, const Flow& f, Index after, Index stride, double* below,
                          Scratch& scratch) const {
    const Index n_lanes = c.n_lanes, width = 3 * n_lanes;
    const double* __restrict p = f.p;
    const double* __restrict k = kappa;
    const double* __restrict share = f.share + c.pair;
    double* __restrict table = scratch.table();  // of the roots, in rows of `width`
    double per_mean[LANES], root[LANES], root_1[LANES], root_2[LANES], line[3 * LANES];
    kl::weigh(c, f, k, mean + c.pair, sigma + c.pair);
    for (Index v = 0; v < n_lanes; ++v) {
        const double q = f.label[c.first + v] != WHOLE ? share[v] : 0.0;
        const double kappa_bar = mean[c.pair + v], sigma_W = sigma[c.pair + v];
        root[v] = sqrt(q / f.W[c.pair + v]);
        root_1[v] = kappa_bar > 0.0 ? root[v] / sqrt(kappa_bar) : 0.0;
        root_2[v] = sigma_W > 0.0 ? sqrt(q / sigma_W) : 0.0;
        per_mean[v] = kappa_bar > 0.0 ? 1.0 / kappa_bar : 0.0;
    }
    for (Index row = c.first, at = 0; row < c.last; row += n_lanes, at += width) {
        for (Index v = 0; v < n_lanes; ++v) table[at + v] = root[v] * p[row + v];
        for (Index v = 0; v < n_lanes; ++v) table[at + n_lanes + v] = root_1[v] * p[row + v] * k[row + v];
        for (Index v = 0; v < n_lanes; ++v)
            table[at + 2 * n_lanes + v] = root_2[v] * p[row + v] * (1.0 - k[row + v] * per_mean[v]);
        for (Index v = 0; v < n_lanes; ++v) line[v] = share[v] * k[row + v];
        if (c.aligned) {
            below[(f.successor[row] - after) * (stride + 1)] += dot(line, p + row, n_lanes);
        } else {
            for (Index v = 0; v < n_lanes; ++v)
                below[(f.successor[row + v] - after) * (stride + 1)] += line[v] * p[row + v];
        }
    }
    for (Index row = c.first, at = 0; row < c.last; row += n_lanes, at += width) {
        if (c.aligned) {
            for (Index v = 0; v < n_lanes; ++v) line[v] = table[at + v];
            for (Index v = n_lanes; v < width; ++v) line[v] = -table[at + v];
            double* into = below + (f.successor[row] - after) * stride;
            for (Index row2 = row, at2 = at; row2 < c.last; row2 += n_lanes, at2 += width)
                into[f.successor[row2] - after] += dot(line, table + at2, width);
        } else {
            for (Index v = 0; v < n_lanes; ++v) {
                const double a = table[at + v], b = table[at + n_lanes + v], e = table[at + 2 * n_lanes + v];
                double* into = below + (f.successor[row + v] - after) * stride;
                for (Index row2 = row, at2 = at + v; row2 < c.last; row2 += n_lanes, at2 += width)
                    into[f.successor[row2 + v] - after] +=
                        a * table[at2] - b * table[at2 + n_lanes] - e * table[at2 + 2 * n_lanes];
            }
        }
    }
}

/// Take θ (1 − κ) from D; κ̄ and σ are kept for `respond`.
inline void KLSet::hold(const Chunk& c, const Flow& f, double* D) const {
    kl::weigh(c, f, kappa, mean + c.pair, sigma + c.pair);
    double held[LANES];
    for (Index row = c.first; row < c.last; row += c.n_lanes) {
        for (Index v = 0; v < c.n_lanes; ++v) held[v] = f.share[c.pair + v] * f.p[row + v] * (1.0 - kappa[row + v]);
        for (Index v = 0; v < c.n_lanes; ++v) D[f.successor[row + v]] -= held[v];
    }
}

/// Add E x = q (p pᵀ − (p κ)(p κ)ᵀ / κ̄ − v vᵀ / σ) x, and Σ p x of every pair to `all`.
template <class Read, class Add>
void KLSet::respond(const Chunk& c, const Flow& f, const Read& read, const Add& add, double* all) const {
    const double* __restrict p = f.p;
    const double* __restrict k = kappa;
    double line[LANES], sum_all[LANES], moment[LANES], plain[LANES], curved[LANES];
    for (Index v = 0; v < c.n_lanes; ++v) sum_all[v] = 0.0, moment[v] = 0.0;
    for (Index row = c.first; row < c.last; row += c.n_lanes) {
        read(row, line);
        for (Index v = 0; v < c.n_lanes; ++v) {
            line[v] *= p[row + v];
            sum_all[v] += line[v];
            moment[v] += line[v] * k[row + v];
        }
    }
    for (Index v = 0; v < c.n_lanes; ++v) {  // E x = q p (plain + κ curved)
        const Index i = c.pair + v;
        const double q = f.label[c.first + v] != WHOLE ? f.share[i] : 0.0;
        const double per_mean = mean[i] > 0.0 ? 1.0 / mean[i] : 0.0;
        const double off = sigma[i] > 0.0 ? (sum_all[v] - moment[v] * per_mean) / sigma[i] : 0.0;
        plain[v] = q * (sum_all[v] / f.W[i] - off);
        curved[v] = q * per_mean * (off - moment[v] / f.W[i]);
        all[v] += sum_all[v];
    }
    for (Index row = c.first; row < c.last; row += c.n_lanes) {
        for (Index v = 0; v < c.n_lanes; ++v) line[v] = p[row + v] * (plain[v] + k[row + v] * curved[v]);
        add(row, line);
    }
}

}  // namespace tightrope
