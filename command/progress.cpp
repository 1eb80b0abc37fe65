#include "command/progress.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>

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

Progress::Progress(std::size_t steps) : steps_(std::max<std::size_t>(steps, 1)) {
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

void Progress::begin(const std::string& what) {
  const std::lock_guard lock(mutex_);
  what_ = what;
}

void Progress::step() {
  const std::lock_guard lock(mutex_);
  done_ = std::min(done_ + 1, steps_);
}

void Progress::line(const std::string& text) {
  const std::lock_guard lock(mutex_);
  erase();
  std::fputs((text + "\n").c_str(), stdout);
  // Why go on, if nobody listens?
  if (std::fflush(stdout) != 0) throw BadInput("standard output cannot be written");
  if (can_show_progress()) draw();
}

void Progress::draw() {
  const auto elapsed = std::chrono::steady_clock::now() - start_;
  if (elapsed < kPatience) return;
  const std::size_t full = kBarWidth * done_ / steps_;
  const bool utf8 = speaks_utf8();
  const std::string bar =
      repeated(utf8 ? "━" : "=", full) + repeated(utf8 ? "─" : "-", kBarWidth - full);
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(elapsed).count();
  std::string words = text(done_, "/", steps_, "  ", seconds, " s  ", what_);
  const std::size_t room =
      std::min<std::size_t>(output_width(), 120) - std::min(output_width(), kBarWidth + 5);
  if (words.size() > room) words.resize(room);  // a line that wraps could not be erased
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
