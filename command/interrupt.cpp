#include "command/interrupt.hpp"

#include <signal.h>
#include <unistd.h>

#include <csignal>
#include <map>
#include <thread>
#include <utility>

#include "command/program.hpp"

namespace convladder::command {
namespace {

struct Registry {
  std::recursive_mutex mutex;
  std::map<std::filesystem::path, Unfinished::Removal> unfinished;
  std::function<void()> last_words;
};

Registry& registry() {
  static auto* const one = new Registry;  // never destroyed: the waiting thread outlives main()
  return *one;
}

void remove_quietly(const std::filesystem::path& path, Unfinished::Removal removal) {
  std::error_code ignored;
  if (removal == Unfinished::Removal::with_content) {
    std::filesystem::remove_all(path, ignored);
  } else {
    std::filesystem::remove(path, ignored);
  }
}

void say(const char* words) {
  static_cast<void>(!write(STDERR_FILENO, words, std::char_traits<char>::length(words)));
}

[[noreturn]] void wait_for_interrupt(const sigset_t& signals) {
  int signal = 0;
  while (sigwait(&signals, &signal) != 0) {
  }
  registry().mutex.lock();  // for good: the process is about to end
  auto& unfinished = registry().unfinished;
  // In reverse order: the content of a folder is removed before the folder.
  for (auto entry = unfinished.rbegin(); entry != unfinished.rend(); ++entry) {
    remove_quietly(entry->first, entry->second);
  }
  // A progress bar may stand in this line.
  say(isatty(STDERR_FILENO) ? "\r\033[Kconvladder: interrupted\n" : "convladder: interrupted\n");
  if (registry().last_words) registry().last_words();
  _exit(kInterrupted);
}

}  // namespace

void handle_interrupts() {
  sigset_t signals;
  sigemptyset(&signals);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    struct sigaction present {};
    sigaction(signal, nullptr, &present);
    // nohup requests that SIGHUP is ignored. (An ignored SIGINT only means that a script started
    // the program with &.)
    if (signal == SIGHUP && present.sa_handler == SIG_IGN) continue;
    sigaddset(&signals, signal);
  }
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  // A closed pipe and the file size limit: the write fails, which is reported like any error.
  for (const int failed_write : {SIGPIPE, SIGXFSZ}) std::signal(failed_write, SIG_IGN);
  registry();
  std::thread([signals] { wait_for_interrupt(signals); }).detach();
}

Unfinished::Unfinished(std::filesystem::path path, Removal removal) : path_(std::move(path)) {
  const auto lock = hold_interrupts();
  registry().unfinished.emplace(path_, removal);
}

Unfinished::~Unfinished() {
  const auto lock = hold_interrupts();
  if (const auto entry = registry().unfinished.extract(path_)) {
    remove_quietly(path_, entry.mapped());
  }
}

void Unfinished::keep() {
  const auto lock = hold_interrupts();
  registry().unfinished.erase(path_);
}

LastWords::LastWords(std::function<void()> say) {
  const auto lock = hold_interrupts();
  registry().last_words = std::move(say);
}

LastWords::~LastWords() {
  const auto lock = hold_interrupts();
  registry().last_words = nullptr;
}

std::unique_lock<std::recursive_mutex> hold_interrupts() {
  return std::unique_lock(registry().mutex);
}

}  // namespace convladder::command
