/// @file files.hpp
/// @brief Reads whole files, and writes files that appear either complete or not at all.
#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "command/interrupt.hpp"

namespace convladder::command {

/// The system's estimate of the bytes that can be allocated without swapping.
std::size_t available_memory();

/// Throws BadInput "memory = ..." unless that many bytes and a reserve are available.
/// @param what the object that needs the memory, for the message
void require_available(double bytes, const std::string& what);

/// The size of a regular file. @throws BadInput "`parameter` = `path`: ..." if it is not a regular
/// file or cannot be read
std::size_t size_of_file(const std::string& parameter, const std::filesystem::path& path);

/// All bytes of a regular file. @throws BadInput that names `parameter` and the file.
std::vector<std::byte> read_file(const std::string& parameter, const std::filesystem::path& path);

/// Writes the bytes. @throws BadInput that names `parameter` and the file.
void write_bytes(const std::string& parameter, const std::filesystem::path& path,
                 std::span<const std::byte> bytes);

/// Whether the value of an option names standard output: "-".
bool is_standard_output(const std::filesystem::path& path);

/// Reserves standard output for an OutputFile named "-"; all other output goes to standard error
/// from then on.
void keep_standard_output_for_files();

/// A single output file, or standard output if the name is "-". The constructor checks that the
/// file can be written, before any long work.
class OutputFile {
 public:
  /// @param future_folder a folder that will exist by the time of write() but may not exist yet
  /// @throws BadInput that names `parameter` and why the file cannot be written
  OutputFile(std::string parameter, const std::filesystem::path& path,
             const std::filesystem::path& future_folder = {});

  /// Replaces the content of the file atomically; devices and pipes are written directly.
  void write(const std::string& content) const;

 private:
  std::string parameter_;
  std::filesystem::path path_;
};

/// A folder that receives many files. The constructor checks that it can be written to.
class OutputFolder {
 public:
  OutputFolder(std::string parameter, std::filesystem::path path);
  OutputFolder(const OutputFolder&) = delete;
  OutputFolder& operator=(const OutputFolder&) = delete;
  /// Removes files that were staged but not committed, and the folders that were created for them.
  ~OutputFolder();

  /// Throws BadInput unless a folder can be created at this relative path.
  void check(const std::filesystem::path& subfolder) const;

  /// The path to which the file is written before commit() moves it to this relative path. Its
  /// folders are created.
  std::filesystem::path stage(const std::filesystem::path& file);
  /// commit() removes the file at this relative path, if it exists: the result of an earlier run.
  void stage_removal(const std::filesystem::path& file);
  /// Moves all staged files to their final paths.
  void commit();

  const std::filesystem::path& path() const { return path_; }
  const std::string& parameter() const { return parameter_; }

 private:
  [[noreturn]] void fail(const std::filesystem::path& path, const std::string& why) const;
  void make_folders(const std::filesystem::path& folder);

  std::string parameter_;
  std::filesystem::path path_;
  std::unique_ptr<Unfinished> staging_;
  std::vector<std::unique_ptr<Unfinished>> created_;  ///< Folders that were created.
  std::vector<std::filesystem::path> staged_, removals_;
};

}  // namespace convladder::command
