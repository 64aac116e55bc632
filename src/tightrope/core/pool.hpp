// Tasks side by side on several threads. What a task computes never depends on which thread runs it, or how many there are.
//
// The threads are shared by all solvers of the process, start when they are first needed, and sleep when there is
// nothing to do. A forked process starts its own. TIGHTROPE_THREADS says how many to use; the default is one per core.
#pragma once

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "space.hpp"

namespace tightrope {

/// Tell the processor that this thread is waiting.
inline void relax() {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    asm volatile("yield");
#endif
}

/// The threads of the process. One solver uses them at a time.
class Threads {
public:
    using Work = std::function<void(int worker)>;

    /// The threads of this process: those of a parent process are not here, and are forgotten.
    static Threads& shared() {
        static std::atomic<Threads*> threads{nullptr};  // never destroyed: they sleep
        Threads* known = threads;
        if (known != nullptr && known->process_ == getpid()) return *known;
        auto fresh = std::make_unique<Threads>();
        if (threads.compare_exchange_strong(known, fresh.get())) return *fresh.release();
        return *known;
    }

    /// How many threads a solve may use, the caller's own included.
    static int allowed() {
        const char* given = std::getenv("TIGHTROPE_THREADS");
        const long number = given != nullptr ? std::strtol(given, nullptr, 10) : 0;
        const long cores = static_cast<long>(std::thread::hardware_concurrency());
        return static_cast<int>(std::clamp(number > 0 ? number : cores, 1L, 256L));
    }

    /// Run work(0) here and work(worker) on up to n − 1 other threads, those that come in time; return when all of them
    /// are done. False if another solver has the threads: then nothing was done.
    bool run(int n, const Work& work) {
        const std::unique_lock lock(busy_, std::try_to_lock);
        if (!lock.owns_lock()) return false;
        while (static_cast<int>(threads_.size()) < n - 1) start();
        wanted_ = n;
        work_ = &work;
        ++round_;
        round_.notify_all();
        work(0);
        work_ = nullptr;  // who comes now comes too late
        for (int spins = 0; inside_ > 0; ++spins) spins < SPINS ? relax() : std::this_thread::yield();
        return true;
    }

private:
    static constexpr int SPINS = 2000;  // some ten microseconds: the next sweep over a layer comes sooner

    void start() {
        const int worker = static_cast<int>(threads_.size()) + 1;
        threads_.emplace_back([this, worker, seen = round_.load()] { serve(worker, seen); });
        threads_.back().detach();
    }

    void serve(int worker, unsigned seen) {
        for (;;) {
            for (int spins = 0; round_ == seen && spins < SPINS; ++spins) relax();
            round_.wait(seen);
            seen = round_;
            ++inside_;  // before work_ is read: while it is not null here, `run` waits
            if (const Work* work = work_; work != nullptr && worker < wanted_) (*work)(worker);
            --inside_;
        }
    }

    std::mutex busy_;
    std::vector<std::thread> threads_;
    std::atomic<unsigned> round_{0};
    std::atomic<int> inside_{0}, wanted_{0};
    std::atomic<const Work*> work_{nullptr};
    pid_t process_ = getpid();
};

/// How a solve of some size runs its tasks: one after the other, or on several threads.
class Pool {
public:
    static constexpr Index WORTH_IT = 100'000;  ///< numbers in a pass from which on several threads are used

    Pool() = default;
    explicit Pool(Index size) : workers_(size >= WORTH_IT ? Threads::allowed() : 1) {}

    int workers() const { return workers_; }

    /// task(i, worker) for every i below n, in any order.
    template <class Task>
    void each(Index n, const Task& task) const {
        if (workers_ > 1 && n > 1) {
            std::atomic<Index> next{0};
            const auto work = [&](int worker) {
                for (Index i = next.fetch_add(1); i < n; i = next.fetch_add(1)) task(i, worker);
            };
            if (Threads::shared().run(static_cast<int>(std::min<Index>(workers_, n)), work)) return;
        }
        for (Index i = 0; i < n; ++i) task(i, 0);
    }

    /// task(begin, end) for ranges that cover first .. last, each of `size` or less.
    template <class Task>
    void ranges(Index first, Index last, Index size, const Task& task) const {
        if (workers_ == 1 || last - first <= size) return task(first, last);
        each((last - first + size - 1) / size, [&](Index i, int) {
            task(first + i * size, std::min(first + (i + 1) * size, last));
        });
    }

private:
    int workers_ = 1;
};

}  // namespace tightrope
