// A long computation asks now and then whether it should stop.
#pragma once

#include <chrono>

namespace tightrope {

/// Calls `stop`, which may throw, at most every 50 ms; `check` itself takes a few nanoseconds.
class Interrupt {
public:
    explicit Interrupt(void (*stop)()) : stop_(stop) {}

    void check() {
        if (stop_ == nullptr || Clock::now() < next_) return;
        next_ = Clock::now() + std::chrono::milliseconds(50);
        stop_();
    }

private:
    using Clock = std::chrono::steady_clock;

    void (*stop_)();
    Clock::time_point next_ = Clock::now() + std::chrono::milliseconds(50);
};

}  // namespace tightrope
