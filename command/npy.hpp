/// @file npy.hpp
/// @brief Reads NumPy's .npy files with full validation, and writes plain ones.
///
/// The format (https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html): the bytes
/// "\x93NUMPY", a version, the length of a header, the header (a Python dictionary with `descr`,
/// `fortran_order` and `shape`), and the elements.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "core/array.hpp"

namespace convladder::command {

/// An array from a file.
struct NpyFile {
  Array array;                       ///< Row-major, whatever the order in the file.
  std::string converted;             ///< "float64 converted to float32", or empty.
  std::vector<double> float64 = {};  ///< With Float64::kept, the elements of a file of float64.
};

/// The treatment of float64 elements.
enum class Float64 {
  rounded,  ///< They are converted to float32.
  kept      ///< They are in NpyFile::float64; the array has their shape and holds zeros.
};

/// Reads versions 1 to 3, little-endian float32 and int32; converts float64 and float16 to float32,
/// and int64 to int32 if every value fits.
/// @param parameter the option that names the file, for messages
/// @throws BadInput that names the file for anything else, for a file that is shorter or longer
/// than its header specifies, or larger than the memory
NpyFile read_npy(const std::string& parameter, const std::filesystem::path& path,
                 Float64 float64 = Float64::rounded);

/// The same from memory. @param file its name, for messages
NpyFile parse_npy(const std::string& parameter, const std::string& file,
                  std::span<const std::byte> bytes, Float64 float64 = Float64::rounded);

/// The array as a version 1.0 file in C order.
std::vector<std::byte> npy_bytes(const Array& array);

}  // namespace convladder::command
