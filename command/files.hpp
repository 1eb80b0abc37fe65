/// @file files.hpp
/// @brief Reading whole files, and writing files that appear complete or not at all.
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

/// The bytes that can still be allocated without swapping, as the system estimates.
std::size_t available_memory();

/// Throws BadInput "memory = ..." unless that many bytes are available, with some to spare.
/// @param what what needs them, for the message
void require_available(double bytes, const std::string& what);

/// A regular file's size. @throws BadInput "`parameter` = `path`: ..." if it is none or cannot be
/// read.
std::size_t size_of_file(const std::string& parameter, const std::filesystem::path& path);

/// All bytes of a regular file. @throws BadInput that names `parameter` and the file.
std::vector<std::byte> read_file(const std::string& parameter, const std::filesystem::path& path);

/// Writes the bytes. @throws BadInput that names `parameter` and the file.
void write_bytes(const std::string& parameter, const std::filesystem::path& path,
                 std::span<const std::byte> bytes);

/// Whether an option's value names standard output: "-".
bool is_standard_output(const std::filesystem::path& path);

/// From now on an OutputFile "-" alone has standard output: what else is printed goes to standard
/// error.
void keep_standard_output_for_files();

/// A single output file, or standard output, as "-". Constructing it checks that it can be written,
/// before any long work.
class OutputFile {
 public:
  /// @param future_folder a folder that will be there by the time of write(), though perhaps not
  /// yet
  /// @throws BadInput that names `parameter` and why the file cannot be written
  OutputFile(std::string parameter, const std::filesystem::path& path,
             const std::filesystem::path& future_folder = {});

  /// Replaces the file's content at once; devices and pipes are written directly.
  void write(const std::string& content) const;

 private:
  std::string parameter_;
  std::filesystem::path path_;
};

/// A folder that receives many files. Constructing it checks that it can be written to.
class OutputFolder {
 public:
  OutputFolder(std::string parameter, std::filesystem::path path);
  OutputFolder(const OutputFolder&) = delete;
  OutputFolder& operator=(const OutputFolder&) = delete;
  /// Removes what was staged but not committed, and the folders made for it.
  ~OutputFolder();

  /// Throws BadInput unless a folder could stand at this relative path.
  void check(const std::filesystem::path& subfolder) const;

  /// Where to write the file that commit() will move to this relative path. Its folders are made.
  std::filesystem::path stage(const std::filesystem::path& file);
  /// commit() removes this relative path, if it is there: a result that an earlier run left behind.
  void stage_removal(const std::filesystem::path& file);
  /// Moves all staged files to their places.
  void commit();

  const std::filesystem::path& path() const { return path_; }
  const std::string& parameter() const { return parameter_; }

 private:
  [[noreturn]] void fail(const std::filesystem::path& path, const std::string& why) const;
  void make_folders(const std::filesystem::path& folder);

  std::string parameter_;
  std::filesystem::path path_;
  std::unique_ptr<Unfinished> staging_;
  std::vector<std::unique_ptr<Unfinished>> created_;  ///< Folders that did not exist before.
  std::vector<std::filesystem::path> staged_, removals_;
};

}  // namespace convladder::command
