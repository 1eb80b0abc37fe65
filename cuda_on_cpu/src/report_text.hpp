/// @file
/// @brief Phrases of reports.
#pragma once

#include <cuda_on_cpu/builtins.hpp>
#include <string>

namespace cuda_on_cpu {

/// "(1,2,3)"
inline std::string describe_index(const uint3& index) {
  return "(" + std::to_string(index.x) + "," + std::to_string(index.y) + "," +
         std::to_string(index.z) + ")";
}

/// "path/file.cu:12"
inline std::string describe_site(const detail::Site& site) {
  return std::string(site.file_name()) + ":" + std::to_string(site.line());
}

}  // namespace cuda_on_cpu
