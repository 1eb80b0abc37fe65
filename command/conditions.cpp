#include "command/conditions.hpp"

#include <algorithm>
#include <cuda_on_cpu/control.hpp>
#include <stdexcept>
#include <string_view>

#include "command/parameters.hpp"
#include "core/device.hpp"
#include "core/error.hpp"

namespace convladder::command {
namespace {

using cuda_on_cpu::control::ThreadOrder;

constexpr std::int64_t kAlignment = 256;  // offset of every array, in bytes, unless one is given

std::size_t read_offset(std::string_view number) {
  const std::int64_t bytes = parse_whole("offset", number);
  require(bytes >= 0 && bytes < kAlignment && bytes % 4 == 0, "offset", bytes,
          "must be a multiple of 4 bytes below 256");
  return static_cast<std::size_t>(bytes);
}

/// "8", or "x:4,y:12".
void read_offsets(const std::string& value, const Signature& signature, RunOptions& options) {
  if (value.find(':') == std::string::npos) {
    options.misalignment = read_offset(value);
    return;
  }
  std::vector<std::string> names;
  for (const auto* specs : {&signature.inputs, &signature.outputs})
    for (const ArraySpec& spec : *specs) names.push_back(spec.name);
  for (std::string_view rest = value;;) {
    const std::string_view part = rest.substr(0, rest.find(','));
    const std::size_t colon = part.find(':');
    require(colon != std::string_view::npos, "offset", value,
            "must be BYTES, or ARRAY:BYTES with commas between them");
    const std::string name = parse_word("offset", std::string(part.substr(0, colon)), names);
    options.offsets[name] = read_offset(part.substr(colon + 1));
    if (part.size() == rest.size()) return;
    rest.remove_prefix(part.size() + 1);
  }
}

ThreadOrder read_thread_order(const std::string& word) {
  parse_word("thread-order", word, {"forward", "reverse", "shuffled"});
  return word == "forward"   ? ThreadOrder::forward
         : word == "reverse" ? ThreadOrder::reverse
                             : ThreadOrder::shuffled;
}

/// "repeated:3", "outside:1".
RunOptions::Spoilt read_bad_sites(const std::string& value, std::uint64_t seed) {
  const std::size_t colon = value.find(':');
  require(colon != std::string::npos, "bad-sites", value,
          "must be repeated:COUNT or outside:COUNT");
  const std::string kind = parse_word("bad-sites", value.substr(0, colon), {"repeated", "outside"});
  const std::int64_t count = parse_whole("bad-sites", value.substr(colon + 1));
  require(count >= 1, "bad-sites", count, "must be at least 1");
  return {kind == "repeated" ? BadSite::repeated : BadSite::outside, count, seed};
}

}  // namespace

void set_condition(Conditions& conditions, const std::string& name, const std::string& value) {
  if (name == "offset") {
    conditions.offset = value;
  } else if (name == "thread-order") {
    conditions.thread_order = value;
  } else if (name == "most-blocks") {
    conditions.most_blocks = value;
  } else if (name == "bad-sites") {
    conditions.bad_sites = value;
  } else {
    throw std::logic_error("there is no condition named " + name);
  }
}

InForce::InForce(const Conditions& conditions, const Signature& signature, std::uint64_t seed)
    : blocks_before_(max_strided_blocks) {
  if (conditions.offset) read_offsets(*conditions.offset, signature, run_options_);
  if (conditions.bad_sites) {
    require(std::ranges::find(signature.outputs, "out_coords", &ArraySpec::name) !=
                signature.outputs.end(),
            "bad-sites", *conditions.bad_sites, "applies to rulebook only");
    run_options_.spoilt = read_bad_sites(*conditions.bad_sites, seed);
  }
  const ThreadOrder order =
      conditions.thread_order ? read_thread_order(*conditions.thread_order) : ThreadOrder::forward;
  std::int64_t most_blocks = blocks_before_;
  if (conditions.most_blocks) {
    most_blocks = parse_whole("most-blocks", *conditions.most_blocks);
    require(most_blocks >= 1, "most-blocks", most_blocks, "must be at least 1");
  }
  cuda_on_cpu::control::set_thread_order(order, seed);
  max_strided_blocks = most_blocks;
}

InForce::~InForce() {
  cuda_on_cpu::control::set_thread_order(ThreadOrder::forward);
  max_strided_blocks = blocks_before_;
}

}  // namespace convladder::command
