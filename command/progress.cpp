#include "command/progress.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <utility>

#include "command/terminal.hpp"
#include "core/error.hpp"

namespace convladder::command {
namespace {

constexpr std::chrono::milliseconds kTick{200};
constexpr std::chrono::milliseconds kPatience{400};  // shorter runs show no bar
constexpr std::size_t kBarWidth = 24;

std::string repeated(const char* what, std::size_t times) {
  std::string all;
  for (std::size_t i = 0; i < times; ++i) all += what;
  return all;
}

}  // namespace

Progress::Progress(std::size_t steps, double work)
    : steps_(std::max<std::size_t>(steps, 1)), work_(work) {
  if (!can_show_progress()) return;
  ticker_ = std::jthread([this](const std::stop_token& stop) {
    std::unique_lock lock(mutex_);
    while (!stop.stop_requested()) {
      draw();
      changed_.wait_for(lock, stop, kTick, [] { return false; });
    }
  });
}

Progress::~Progress() {
  ticker_.request_stop();
  if (ticker_.joinable()) ticker_.join();
  erase();
}

void Progress::begin(const std::string& what, std::function<std::string()> detail) {
  const std::lock_guard lock(mutex_);
  what_ = what;
  detail_ = std::move(detail);
}

void Progress::step() {
  const std::lock_guard lock(mutex_);
  done_ = std::min(done_ + 1, steps_);
  work_done_ += work_of_a_step_;
}

void Progress::set_work_of_a_step(double work) {
  const std::lock_guard lock(mutex_);
  work_of_a_step_ = work;
}

void Progress::wait(const std::string& what) {
  const std::lock_guard lock(mutex_);
  what_before_ = std::exchange(what_, what);
  waiting_since_ = Clock::now();
}

void Progress::go_on() {
  const std::lock_guard lock(mutex_);
  what_ = what_before_;
  if (waiting_since_) waited_ += Clock::now() - *waiting_since_;
  waiting_since_.reset();
}

std::string Progress::time_left() {
  const std::lock_guard lock(mutex_);
  return time_left_locked();
}

void Progress::set_other_work(std::function<double()> seconds_left) {
  const std::lock_guard lock(mutex_);
  other_work_ = std::move(seconds_left);
}

std::string Progress::time_left_locked() const {
  using Seconds = std::chrono::duration<double>;
  Clock::duration waited = waited_;
  if (waiting_since_) waited += Clock::now() - *waiting_since_;
  double left = other_work_ ? other_work_() : 0;
  if (work_done_ > 0) {
    const double worked = Seconds(Clock::now() - start_ - waited).count();
    left = std::max(left, worked * std::max(work_ - work_done_, 0.0) / work_done_);
  }
  return left < 1 ? "" : text("about ", static_cast<long>(std::ceil(left)), " s left");
}

void Progress::line(const std::string& text) {
  const std::lock_guard lock(mutex_);
  erase();
  std::fputs((text + "\n").c_str(), stdout);
  flush_output();
  if (can_show_progress()) draw();
}

void Progress::draw() {
  if (Clock::now() - start_ < kPatience) return;
  const double share = work_ > 0 ? std::min(work_done_ / work_, 1.0) : 1.0;
  const auto full = static_cast<std::size_t>(kBarWidth * share);
  const bool utf8 = speaks_utf8();
  const std::string bar =
      repeated(utf8 ? "━" : "=", full) + repeated(utf8 ? "─" : "-", kBarWidth - full);
  const std::string left = time_left_locked();
  const std::string detail = detail_ ? detail_() : "";
  std::string words = text(done_, "/", steps_, "  ", left, left.empty() ? "" : "  ", what_,
                           detail.empty() ? "" : ", ", detail);
  const std::size_t room =
      std::min<std::size_t>(output_width(), 120) - std::min(output_width(), kBarWidth + 5);
  if (words.size() > room) words.resize(room);  // a wrapped line could not be erased
  std::fprintf(stderr, "\r\033[K  %s  %s", bar.c_str(), words.c_str());
  std::fflush(stderr);
  drawn_ = true;
}

void Progress::erase() {
  if (!drawn_) return;
  std::fputs("\r\033[K", stderr);
  std::fflush(stderr);
  drawn_ = false;
}

}  // namespace convladder::command
