/// @file interrupt.hpp
/// @brief An interrupted run ends with status 130 and leaves nothing half-written behind.
#pragma once

#include <filesystem>
#include <functional>
#include <mutex>

namespace convladder::command {

/// From now on SIGINT, SIGTERM and SIGHUP remove all Unfinished paths and end the process with
/// status 130. A thread of its own waits for them, so that what it does needs no async-signal
/// safety. Call it before any other thread starts. Writing to where nothing can be written fails
/// from now on, instead of ending the process.
void handle_interrupts();

/// A file or folder that must not outlive an interrupted or failed run. It is removed by the
/// destructor or an interrupt, unless keep() was called. Construct it before the file or folder
/// itself.
class Unfinished {
 public:
  enum class Removal {
    with_content,  ///< a folder with all that it holds
    if_empty       ///< a folder into which others, too, may have written: only if it holds nothing
  };
  explicit Unfinished(std::filesystem::path path, Removal removal = Removal::with_content);
  ~Unfinished();
  Unfinished(const Unfinished&) = delete;
  Unfinished& operator=(const Unfinished&) = delete;

  const std::filesystem::path& path() const { return path_; }
  /// The path is complete, or has another name by now.
  void keep();

 private:
  std::filesystem::path path_;
};

/// What an interrupted run still has to say: an interrupt calls it, in a thread of its own, before
/// the process ends. There is one at a time.
class LastWords {
 public:
  explicit LastWords(std::function<void()> say);
  ~LastWords();
  LastWords(const LastWords&) = delete;
  LastWords& operator=(const LastWords&) = delete;
};

/// While it is held, an interrupt waits: for steps that belong together, such as a few renames.
std::unique_lock<std::recursive_mutex> hold_interrupts();

}  // namespace convladder::command
