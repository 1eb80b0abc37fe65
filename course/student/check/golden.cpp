#include "check/golden.hpp"

#include <istream>
#include <ostream>

#include "core/error.hpp"

namespace convladder::check {

std::uint64_t sum_of_bytes(const Arrays& inputs) {
  std::uint64_t sum = 0xcbf29ce484222325u;
  for (const auto& [name, array] : inputs) {
    for (std::size_t i = 0; i < array.size_bytes(); ++i) {
      sum ^= std::to_integer<std::uint64_t>(array.data()[i]);
      sum *= 0x100000001b3u;
    }
  }
  return sum;
}

void write_golden(const Golden& golden, std::ostream& out) {
  out << golden.name << " " << golden.ladder << "\n" << golden.problem << "\n";
  out << golden.longest_sum << " " << golden.inputs << " " << golden.output << " "
      << golden.values.size() << "\n";
  for (std::size_t i = 0; i < golden.values.size(); ++i)
    out << golden.values[i] << (i % 20 == 19 ? "\n" : " ");
  out << "\n";
}

std::vector<Golden> read_golden(std::istream& in) {
  std::vector<Golden> all;
  for (Golden one; in >> one.name >> one.ladder >> std::ws; all.push_back(one)) {
    std::size_t size = 0;
    std::getline(in, one.problem);
    in >> one.longest_sum >> one.inputs >> one.output >> size;
    one.values.resize(in.good() ? size : 0);
    for (double& value : one.values) in >> value;
    require(!in.fail(), "expected", one.name, "the expected result is incomplete");
  }
  return all;
}

}  // namespace convladder::check
