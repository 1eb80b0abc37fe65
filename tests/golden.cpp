#include "tests/golden.hpp"

#include <algorithm>
#include <array>
#include <fstream>
#include <nlohmann/json.hpp>

namespace convladder::testing {
namespace {

SparseMode mode_of_golden(const std::string& word) {
  return word == "subm"   ? SparseMode::subm
         : word == "conv" ? SparseMode::strided
                          : SparseMode::transposed;
}

PerAxis per_axis(const nlohmann::json& numbers, int otherwise) {
  PerAxis values = every_axis(otherwise);
  for (std::size_t axis = 0; axis < numbers.size(); ++axis)
    values[static_cast<int>(axis)] = numbers[axis].get<int>();
  return values;
}

GoldenCase golden_case(const nlohmann::json& json) {
  GoldenCase golden;
  golden.name = json["name"];
  golden.why = json["why"];
  RulebookProblem book{.mode = mode_of_golden(json["mode"]),
                       .ndim = static_cast<int>(json["shape"].size()),
                       .shape = per_axis(json["shape"], 1),
                       .kernel = per_axis(json["K"], 1),
                       .stride = per_axis(json["stride"], 1),
                       .pad = per_axis(json["pad"], 0),
                       .dilation = per_axis(json["dil"], 1)};
  if (!json["out_padding"].is_null()) book.out_padding = per_axis(json["out_padding"], 0);
  const auto sites = json["coords"].get<std::vector<std::vector<int>>>();
  for (const auto& site : sites) book.batch = std::max(book.batch, site[0] + 1);
  golden.sites = case_of(book, sites);
  for (const auto& site : json["out_coords"]) {
    for (const auto& number : site) golden.out_coords.push_back(number.get<std::int32_t>());
  }
  for (int k = 0; k < golden.sites.book.KV; ++k) {
    const auto pairs = json["pairs_in_out"].find(std::to_string(k));
    if (pairs == json["pairs_in_out"].end()) continue;
    auto in_out = pairs->get<std::vector<std::array<std::int32_t, 2>>>();
    std::ranges::sort(in_out, {}, [](const auto& pair) { return pair[1]; });
    for (const auto& [in, out] : in_out) golden.pairs.insert(golden.pairs.end(), {k, in, out});
  }
  if (json.contains("all_ones_output"))
    golden.all_ones_output = json["all_ones_output"].get<std::vector<int>>();
  return golden;
}

}  // namespace

const std::vector<GoldenCase>& golden_cases() {
  static const std::vector<GoldenCase> cases = [] {
    std::ifstream stream(CONVLADDER_GOLDEN_FILE);
    std::vector<GoldenCase> all;
    for (const nlohmann::json& json : nlohmann::json::parse(stream))
      all.push_back(golden_case(json));
    return all;
  }();
  return cases;
}

}  // namespace convladder::testing
