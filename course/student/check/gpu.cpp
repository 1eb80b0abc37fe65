#include <fstream>
#include <map>

#include "check/counters.hpp"
#include "core/error.hpp"

namespace convladder::check {

Gpu gpu_of_model() {
  std::map<std::string, double> numbers;
  std::ifstream in(CONVLADDER_SOURCE_DIR "/check/gpu.txt");
  std::string name;
  for (double value = 0; in >> name >> value;) numbers[name] = value;
  require(numbers.size() == 4, "file", "check/gpu.txt", "must have four numbers");
  return {numbers.at("bytes_per_second"), numbers.at("multiprocessors"), numbers.at("clock"),
          numbers.at("launch_seconds")};
}

}  // namespace convladder::check
