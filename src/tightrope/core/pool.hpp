// Tasks side by side on several threads. What a task computes never depends on which thread runs it, or how many there are.
//
// The threads are shared by all solvers of the process, start when they are first needed, and sleep when there is
// nothing to do. A forked process starts its own. TIGHTROPE_THREADS says how many to use; the default is one per core.
#pragma once

#include <pthread.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <functional>
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
        static std::mutex guard;
        static Threads* threads = nullptr;
        const std::lock_guard lock(guard);
        if (threads == nullptr || threads->process_ != getpid()) threads = new Threads;  // never destroyed: they sleep
        return *threads;
    }

    /// How many threads a solve may use, the caller's own included.
    static int allowed() {
        const char* given = std::getenv("TIGHTROPE_THREADS");
        const long number = given != nullptr ? std::strtol(given, nullptr, 10) : 0;
        const long cores = static_cast<long>(std::thread::hardware_concurrency());
        return static_cast<int>(std::clamp(number > 0 ? number : cores, 1L, 256L));
    }

    /// Run work(0) here and work(1) .. work(n − 1) on other threads, and return when all have; false if another solver
    /// has the threads, and nothing was done.
    bool run(int n, const Work& work) {
        const std::unique_lock lock(busy_, std::try_to_lock);
        if (!lock.owns_lock()) return false;
        while (static_cast<int>(threads_.size()) < n - 1) start();
        work_ = &work;
        wanted_ = n;
        pending_.store(static_cast<int>(threads_.size()), std::memory_order_relaxed);
        round_.fetch_add(1, std::memory_order_release);
        round_.notify_all();
        work(0);
        for (int spins = 0; pending_.load(std::memory_order_acquire) > 0; ++spins)
            spins < SPINS ? relax() : std::this_thread::yield();
        return true;
    }

private:
    static constexpr int SPINS = 4000;  // some ten microseconds: the next sweep over a layer comes sooner

    void start() {
        const int worker = static_cast<int>(threads_.size()) + 1;
        const unsigned seen = round_.load(std::memory_order_relaxed);
        threads_.emplace_back([this, worker, seen] { serve(worker, seen); });
        threads_.back().detach();
    }

    void serve(int worker, unsigned seen) {
        for (;;) {
            unsigned now = round_.load(std::memory_order_acquire);
            for (int spins = 0; now == seen && spins < SPINS; ++spins) {
                relax();
                now = round_.load(std::memory_order_acquire);
            }
            if (now == seen) {
                round_.wait(seen, std::memory_order_acquire);
                continue;
            }
            seen = now;
            if (worker < wanted_) (*work_)(worker);
            pending_.fetch_sub(1, std::memory_order_release);
        }
    }

    std::mutex busy_;
    std::vector<std::thread> threads_;
    std::atomic<unsigned> round_{0};
    std::atomic<int> pending_{0};
    const Work* work_ = nullptr;
    int wanted_ = 0;
    pid_t process_ = getpid();
};

/// How a solve of some size runs its tasks: one after the other, or on several threads.
class Pool {
public:
    static constexpr Index WORTH_IT = 100'000;  ///< slots from which on several threads are used

    Pool() = default;
    explicit Pool(Index n_slots) : workers_(n_slots >= WORTH_IT ? Threads::allowed() : 1) {}

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

private:
    int workers_ = 1;
};

}  // namespace tightrope
