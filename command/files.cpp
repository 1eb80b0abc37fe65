#include "command/files.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <string_view>
#include <system_error>

#include "core/device.hpp"
#include "core/error.hpp"

namespace convladder::command {
namespace fs = std::filesystem;
namespace {

/// Receives the output of an OutputFile named "-".
int standard_output = STDOUT_FILENO;

void write_to_standard_output(const std::string& parameter, std::string_view content) {
  while (!content.empty()) {
    const ssize_t count = ::write(standard_output, content.data(), content.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0 && errno == EPIPE) return;  // the reader has closed the pipe
    if (count < 0)
      throw BadInput(text(parameter, " = -: cannot be written: ", std::strerror(errno)));
    content.remove_prefix(static_cast<std::size_t>(count));
  }
}

/// A name in a folder that no other process uses.
std::string temporary_name() {
  static int count = 0;
  return text(".convladder-", getpid(), "-", count++, ".partial");
}

[[noreturn]] void refuse(const std::string& parameter, const fs::path& path,
                         const std::string& why) {
  throw BadInput(text(parameter, " = ", path.string(), ": ", why));
}

/// Throws unless new entries can be created in the folder. Only an attempt tells, because of root
/// and read-only mounts.
void try_to_create_in(const std::string& parameter, const fs::path& path, const fs::path& folder) {
  const Unfinished trial(folder / temporary_name());
  std::error_code error;
  fs::create_directory(trial.path(), error);
  if (error)
    refuse(parameter, path,
           text("no file can be created in ", folder.string(), ": ", error.message()));
}

/// The innermost existing folder of a path's parents, or the path itself if it exists.
fs::path existing_part(const std::string& parameter, const fs::path& path) {
  for (fs::path part = fs::absolute(path);; part = part.parent_path()) {
    std::error_code error;
    const fs::file_status status = fs::status(part, error);
    if (status.type() == fs::file_type::directory) return part;
    if (status.type() != fs::file_type::not_found) {
      refuse(parameter, path,
             status.type() == fs::file_type::none ? error.message()
                                                  : text(part.string(), " is not a folder"));
    }
    if (part == part.parent_path()) refuse(parameter, path, "no such folder");
  }
}

/// Whether `path` lies in `folder` or is the folder itself.
bool lies_in(const fs::path& path, const fs::path& folder) {
  const fs::path inner = fs::weakly_canonical(fs::absolute(path));
  const fs::path outer = fs::weakly_canonical(fs::absolute(folder / "").parent_path());
  return std::mismatch(outer.begin(), outer.end(), inner.begin(), inner.end()).first == outer.end();
}

}  // namespace

bool is_standard_output(const fs::path& path) { return path == "-"; }

void keep_standard_output_for_files() {
  std::fflush(stdout);
  standard_output = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
  dup2(STDERR_FILENO, STDOUT_FILENO);
}

std::size_t available_memory() { return device_at(Where::cpu)->free_bytes(); }

void require_available(double bytes, const std::string& what) {
  const double available = static_cast<double>(available_memory());
  require(bytes < 0.9 * available, "memory", gigabytes(bytes),
          text(what, " needs more than the available memory; ", gigabytes(available), " are free"));
}

std::size_t size_of_file(const std::string& parameter, const fs::path& path) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (status.type() == fs::file_type::not_found) refuse(parameter, path, "no such file");
  if (status.type() == fs::file_type::none) refuse(parameter, path, error.message());
  if (status.type() != fs::file_type::regular) refuse(parameter, path, "is not a regular file");
  const std::uintmax_t size = fs::file_size(path, error);
  if (error) refuse(parameter, path, error.message());
  return static_cast<std::size_t>(size);
}

std::vector<std::byte> read_file(const std::string& parameter, const fs::path& path) {
  const std::size_t size = size_of_file(parameter, path);
  require_available(static_cast<double>(size), text(parameter, " = ", path.string()));
  std::ifstream stream(path, std::ios::binary);
  if (!stream) refuse(parameter, path, std::strerror(errno));
  std::vector<std::byte> bytes(size);
  stream.read(reinterpret_cast<char*>(bytes.data()), static_cast<std::streamsize>(size));
  if (static_cast<std::size_t>(stream.gcount()) != size)
    refuse(parameter, path, "cannot be read to its end");
  return bytes;
}

void write_bytes(const std::string& parameter, const fs::path& path,
                 std::span<const std::byte> bytes) {
  std::ofstream stream(path, std::ios::binary | std::ios::trunc);
  stream.write(reinterpret_cast<const char*>(bytes.data()),
               static_cast<std::streamsize>(bytes.size()));
  stream.close();
  if (!stream) refuse(parameter, path, text("cannot be written: ", std::strerror(errno)));
}

OutputFile::OutputFile(std::string parameter, const fs::path& path, const fs::path& future_folder)
    : parameter_(std::move(parameter)), path_(path) {
  if (is_standard_output(path_)) return;
  std::error_code error;
  const fs::file_status status = fs::status(path_, error);
  if (path_.empty() || status.type() == fs::file_type::directory || !path_.has_filename()) {
    refuse(parameter_, path_, "is not the name of a file");
  }
  if (status.type() == fs::file_type::none) refuse(parameter_, path_, error.message());
  if (status.type() != fs::file_type::not_found && status.type() != fs::file_type::regular) return;
  path_ = fs::weakly_canonical(fs::absolute(path_));  // the target of a link is replaced, not the
                                                      // link
  if (!future_folder.empty() && lies_in(path_, future_folder)) return;
  fs::path folder = path_.parent_path();
  if (!fs::is_directory(folder, error))
    refuse(parameter_, path, text(folder.string(), ": no such folder"));
  try_to_create_in(parameter_, path, folder);
}

void OutputFile::write(const std::string& content) const {
  if (is_standard_output(path_)) return write_to_standard_output(parameter_, content);
  const std::span bytes(reinterpret_cast<const std::byte*>(content.data()), content.size());
  std::error_code error;
  const fs::file_status status = fs::status(path_, error);
  if (status.type() != fs::file_type::not_found && status.type() != fs::file_type::regular) {
    return write_bytes(parameter_, path_, bytes);
  }
  fs::create_directories(path_.parent_path(), error);
  Unfinished temporary(path_.parent_path() / temporary_name());
  write_bytes(parameter_, temporary.path(), bytes);
  fs::rename(temporary.path(), path_, error);
  if (error) refuse(parameter_, path_, error.message());
  temporary.keep();
}

OutputFolder::OutputFolder(std::string parameter, fs::path path)
    : parameter_(std::move(parameter)), path_(std::move(path)) {
  if (path_.empty()) fail(path_, "is not the name of a folder");
  try_to_create_in(parameter_, path_, existing_part(parameter_, path_));
}

OutputFolder::~OutputFolder() {
  staging_.reset();
  while (!created_.empty()) created_.pop_back();  // inner folders before outer ones
}

void OutputFolder::check(const fs::path& subfolder) const {
  existing_part(parameter_, path_ / subfolder);
}

fs::path OutputFolder::stage(const fs::path& file) {
  if (!staging_) {
    make_folders(path_);
    staging_ = std::make_unique<Unfinished>(path_ / temporary_name());
  }
  const fs::path place = staging_->path() / file;
  std::error_code error;
  fs::create_directories(place.parent_path(), error);
  if (error) fail(place.parent_path(), error.message());
  staged_.push_back(file);
  return place;
}

void OutputFolder::stage_removal(const fs::path& file) { removals_.push_back(file); }

void OutputFolder::commit() {
  const auto uninterrupted = hold_interrupts();
  std::error_code error;
  for (const fs::path& file : removals_) {
    fs::remove(path_ / file, error);
    // Empty parent folders are removed, too; remove() leaves folders that are not empty.
    for (fs::path folder = file.parent_path(); !folder.empty(); folder = folder.parent_path()) {
      if (!fs::is_directory(path_ / folder, error) || !fs::remove(path_ / folder, error)) break;
    }
  }
  removals_.clear();
  for (const fs::path& file : staged_) {
    const fs::path target = path_ / file;
    make_folders(target.parent_path());
    fs::rename(staging_->path() / file, target, error);
    if (error) fail(target, error.message());
  }
  staged_.clear();
  staging_.reset();
  for (const auto& folder : created_) folder->keep();
  created_.clear();
}

void OutputFolder::fail(const fs::path& path, const std::string& why) const {
  refuse(parameter_, path, why);
}

void OutputFolder::make_folders(const fs::path& folder) {
  std::error_code error;
  if (fs::is_directory(folder, error)) return;
  if (folder.has_parent_path() && folder.parent_path() != folder)
    make_folders(folder.parent_path());
  // The name must be recorded before the folder is created, and dropped if the folder already
  // existed.
  auto created = std::make_unique<Unfinished>(folder, Unfinished::Removal::if_empty);
  if (fs::create_directory(folder, error)) {
    created_.push_back(std::move(created));
  } else {
    created->keep();
    if (error) fail(folder, error.message());
  }
}

}  // namespace convladder::command
