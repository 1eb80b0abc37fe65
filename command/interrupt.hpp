/// @file interrupt.hpp
/// @brief An interrupted run ends with status 130 and leaves no incomplete file.
#pragma once

#include <filesystem>
#include <functional>
#include <mutex>

namespace convladder::command {

/// From this call on, SIGINT, SIGTERM and SIGHUP remove all Unfinished paths and end the process
/// with status 130. A separate thread waits for the signals, so that the handler's work needs no
/// async-signal safety. Call it before any other thread starts. A write to a closed pipe fails from
/// then on instead of ending the process.
void handle_interrupts();

/// A file or folder that must not outlive an interrupted or failed run. The destructor or an
/// interrupt removes it, unless keep() was called. Construct it before the file or folder.
class Unfinished {
 public:
  enum class Removal {
    with_content,  ///< a folder with its content
    if_empty       ///< a folder that other processes may also write to: removed only if it is empty
  };
  explicit Unfinished(std::filesystem::path path, Removal removal = Removal::with_content);
  ~Unfinished();
  Unfinished(const Unfinished&) = delete;
  Unfinished& operator=(const Unfinished&) = delete;

  const std::filesystem::path& path() const { return path_; }
  /// The path is complete, or was renamed.
  void keep();

 private:
  std::filesystem::path path_;
};

/// The last message of an interrupted run: an interrupt calls the function in a separate thread
/// before the process ends. There is one at a time.
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
