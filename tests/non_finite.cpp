#include "tests/non_finite.hpp"

#include <array>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <functional>
#include <limits>
#include <nlohmann/json.hpp>

#include "core/arithmetic.hpp"
#include "core/device.hpp"
#include "core/text.hpp"
#include "ladders/ladders.hpp"
#include "oracle/canonical.hpp"
#include "oracle/reference.hpp"
#include "tests/ladders/ladder_tests.hpp"
#include "tests/taken.hpp"

namespace convladder::testing {
namespace {

constexpr const char* kHowToRecordReach =
    "if that is meant, record it: build/cpu/tests/suite --record-non-finite tests/non_finite.json";

constexpr std::uint64_t kSeed = 3;  ///< Always the same, as the record is.

/// Which element of an array it is, from the outermost axis on.
std::array<int, 4> indices4(const ArraySpec& spec, std::int64_t element) {
  std::array<int, 4> indices{};
  for (std::size_t axis = 4; axis-- > 0;) {
    indices[axis] = static_cast<int>(element % spec.shape[axis]);
    element /= spec.shape[axis];
  }
  return indices;
}

/// Whether input pixel `i` is in the window of output `o`.
bool is_in_window(int i, int o, int taps, int pad, int stride, int dilation) {
  const int from_begin = i - (o * stride - pad);
  return from_begin >= 0 && from_begin % dilation == 0 && from_begin / dilation < taps;
}

/// What a rung transforms as one.
struct Reach {
  std::int64_t tile;  ///< Outputs along each axis; 0: it adds up the definition's products.
  int images;         ///< That may share a transform.
  bool rows = false;  ///< Tiles are of a row, and their windows wide enough for two pieces.
};

Reach reach_of(const Rung& rung) {
  if (rung.whole_images || rung.float_spectra)
    return {std::numeric_limits<std::int32_t>::max(), rung.float_spectra ? 2 : 1};
  return {rung.winograd.m, 1, rung.winograd == kWinogradPieces};
}

/// Whether a number in an input reaches an element of an output by products with zeros that the
/// definition does not have.
/// @param kind as Excesses has it
bool may_reach(const std::string& kind, Reach reach, const std::string& ladder,
               const Problem& problem, const ArraySpec& in, std::int64_t in_element,
               const ArraySpec& out, std::int64_t out_element) {
  if (const auto* sparse = std::get_if<SparseConvProblem>(&problem)) {
    // Rows without a tap have zeros there: the weight reaches all rows of its channel.
    if (kind != "zeros" || in.name != "weights") return false;
    if (ladder == "sparse_conv") return in_element % sparse->Cout == out_element % sparse->Cout;
    return in_element / sparse->Cout % sparse->Cin == out_element % sparse->Cin;
  }
  const auto* conv = std::get_if<Conv2dProblem>(&problem);
  if (conv == nullptr || in.shape.size() != 4 || out.shape.size() != 4) return false;
  const auto i = indices4(in, in_element), o = indices4(out, out_element);
  const int group_c = conv->C / conv->groups, group_k = conv->K / conv->groups;
  const auto in_windows = [&](int h, int w, int p, int q) {
    return is_in_window(h, p, conv->R, conv->pad.top, conv->stride.h, conv->dilation.h) &&
           is_in_window(w, q, conv->S, conv->pad.left, conv->stride.w, conv->dilation.w);
  };
  const auto in_tile = [&](int at, int output, int pad) {
    const std::int64_t from_begin = at - (output / reach.tile * reach.tile - pad);
    return from_begin >= 0 && from_begin < reach.tile + (reach.rows ? 5 : 2);
  };
  const auto row_in_tile = [&](int h, int p) {
    return reach.rows ? is_in_window(h, p, conv->R, conv->pad.top, 1, 1)
                      : in_tile(h, p, conv->pad.top);
  };
  const bool same_images = i[0] / reach.images == o[0] / reach.images;
  if (ladder == "conv2d") {  // o: n, k, p, q
    if (kind == "tiles" && in.name == "weights") return i[0] == o[1];
    if (kind == "tiles") {
      return in.name == "x" && same_images && i[1] / group_c == o[1] / group_k &&
             row_in_tile(i[2], o[2]) && in_tile(i[3], o[3], conv->pad.left);
    }
    if (kind == "zeros") return in.name == "weights" && i[0] == o[1];
    return kind == "groups" && in.name == "x" && i[0] == o[0] && i[1] / group_c != o[1] / group_k &&
           in_windows(i[2], i[3], o[2], o[3]);
  }
  if (ladder == "conv2d_dgrad") {  // o: n, c, h, w
    const bool weight_of_channel = in.name == "weights" && i[0] / group_k * group_c + i[1] == o[1];
    if (kind == "zeros") return weight_of_channel;
    if (kind == "tiles") {
      return weight_of_channel ||
             (in.name == "dy" && i[0] == o[0] && i[1] / group_k == o[1] / group_c &&
              in_tile(i[2], o[2], 2 - conv->pad.top) && in_tile(i[3], o[3], 2 - conv->pad.left));
    }
    return kind == "groups" && in.name == "dy" && i[0] == o[0] &&
           i[1] / group_k != o[1] / group_c && in_windows(o[2], o[3], i[2], i[3]);
  }
  // conv2d_wgrad. o: k, c of the group, r, s; a tile of Winograd's has a part in all nine taps
  if (kind == "groups") return false;
  return in.name == "dy" ? i[1] == o[0] : i[1] == o[0] / group_k * group_c + o[1];
}

/// A number in an input.
struct Planted {
  float value;
  std::int64_t element;
};

/// Plants them in an array of any type.
Array with(const Array& array, const std::vector<Planted>& numbers) {
  Array changed = rounded_to(array, DType::f32);
  for (const Planted& number : numbers)
    changed.as<float>()[static_cast<std::size_t>(number.element)] = number.value;
  return rounded_to(changed, array.dtype());
}

/// As the definition has it, rounded to the output's type.
std::vector<float> right_values(const Expected& expected) {
  Array right(DType::f32, expected.spec.shape);
  const auto to = right.as<float>();
  for (std::size_t i = 0; i < to.size(); ++i) to[i] = static_cast<float>(expected.values[i]);
  const Array rounded = rounded_to(rounded_to(right, expected.spec.dtype), DType::f32);
  const auto values = rounded.as<float>();
  return {values.begin(), values.end()};
}

/// One run, with numbers planted in one input.
class Run {
 public:
  Run(const std::string& ladder, const Rung& rung, const Problem& form, const ArraySpec& in,
      const std::vector<Planted>& planted, NonFiniteReport& report)
      : ladder_(&ladder), reach_(reach_of(rung)), rounds_(rung.float_spectra), form_(&form),
        in_(&in), planted_(&planted), report_(&report) {}

  void compare(const Expected& expected, const Array& found) const {
    if (expected.spec.dtype == DType::i32) {
      const auto numbers = found.as<std::int32_t>();
      if (!std::ranges::equal(numbers, expected.integers)) fail(expected.spec.name + " is wrong");
      return;
    }
    const std::vector<float> right = right_values(expected);
    const Array widened = rounded_to(found, DType::f32);
    for (std::size_t i = 0; i < right.size(); ++i) {
      const float raw = widened.as<float>()[i], value = rounds_ ? std::nearbyint(raw) : raw;
      if (value == right[i] || (std::isnan(value) && std::isnan(right[i]))) continue;
      const std::string kind =
          kind_of(expected.spec, static_cast<std::int64_t>(i), right[i], value);
      if (kind.empty())
        return fail(
            text(expected.spec.name, " element ", i, ": expected ", right[i], ", found ", value));
      report_->excesses[in_->name].insert(kind);
    }
  }
  void fail(const std::string& what) const {
    report_->failures.push_back(text("NaN and infinity in ", in_->name, ": ", describe(*form_),
                                     ", ", name_of_form(*form_), ": ", what));
  }

 private:
  /// Of what the definition does not have, but a rung may; empty: it may not.
  std::string kind_of(const ArraySpec& out, std::int64_t element, float right, float found) const {
    if (std::isfinite(found)) return "";
    for (const Planted& number : *planted_) {
      if (reach_.tile != 0 && !std::isfinite(number.value) &&
          may_reach("tiles", reach_, *ladder_, *form_, *in_, number.element, out, element))
        return "tiles";
    }
    if (std::isnan(right) || !std::isnan(found)) return "";
    for (const char* kind : {"zeros", "groups"}) {
      for (const Planted& number : *planted_) {
        if (!std::isfinite(number.value) &&
            may_reach(kind, reach_, *ladder_, *form_, *in_, number.element, out, element))
          return kind;
      }
    }
    return std::isinf(right) ? "nan" : "";
  }

  const std::string* ladder_;
  Reach reach_;
  bool rounds_;  // to whole numbers, see Rung::float_spectra
  const Problem* form_;
  const ArraySpec* in_;
  const std::vector<Planted>* planted_;
  NonFiniteReport* report_;
};

}  // namespace

NonFiniteReport check_non_finite(const Ladder& ladder, const Rung& rung, Where where) {
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  constexpr float kInf = std::numeric_limits<float>::infinity();
  NonFiniteReport report;
  const LadderTests& tests = tests_of(ladder.name);
  if (!tests.non_finite) return report;
  const AnyImplementation& code = *rung.code_at(where);
  std::size_t turn = 0;
  for (const TestProblem& test : tests.non_finite()) {
    for (const std::vector<Problem>& forms : forms_of(test.problem)) {
      const auto form = std::ranges::find_if(
          forms, [&](const Problem& candidate) { return !code.supports(candidate); });
      if (form == forms.end()) continue;
      const Signature signature = ladder.signature(*form);
      const Arrays data =
          make_inputs(signature, Data::integer, kSeed, exact_sum(ladder.name, *form), test.given);
      for (const ArraySpec& in : signature.inputs) {
        if (in.dtype == DType::i32) continue;
        // Other elements from run to run: the first, the last, and two between.
        const std::int64_t count = element_count(in.shape);
        const std::array<std::int64_t, 4> elements = {0, count / 2 + 1, count - 1, count / 3};
        const auto element = [&](std::size_t i) { return elements[(turn + i) % 4] % count; };
        const std::vector<Planted> planted = {
            {-0.0f, element(2)}, {kInf, element(1)}, {kNan, element(0)}};
        ++turn;
        Arrays inputs = data;
        inputs.at(in.name) = with(inputs.at(in.name), planted);
        const Run run(ladder.name, rung, *form, in, planted, report);
        set_emulated_thread_order(static_cast<int>(turn % kThreadOrderCount), kSeed);
        try {
          const RungRun result = run_guarded(ladder, *form, inputs, code, where);
          ++report.runs;
          if (!result.damage.empty()) {
            run.fail(result.damage);
            continue;
          }
          const Arrays found = canonical(*form, result.outputs);
          for (const Expected& expected : reference(ladder.name, *form, inputs)) {
            if (const auto array = found.find(expected.spec.name); array != found.end())
              run.compare(expected, array->second);
          }
        } catch (const std::exception& error) {
          run.fail(text("throws ", error.what()));
        }
      }
    }
  }
  return report;
}

ExcessesByRung parsed_excesses(const std::string& json) {
  ExcessesByRung excesses;
  const nlohmann::json parsed = nlohmann::json::parse(json);
  for (const auto& [kind, inputs] : parsed.items()) {
    for (const auto& [input, rungs] : inputs.items())
      for (const auto& rung : rungs) excesses[rung.get<std::string>()][input].insert(kind);
  }
  return excesses;
}

ExcessesByRung recorded_excesses() {
  std::ifstream stream(CONVLADDER_NON_FINITE_FILE);
  if (!stream) throw std::runtime_error("cannot read " CONVLADDER_NON_FINITE_FILE);
  return parsed_excesses(
      std::string(std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()));
}

std::string excesses_text(const ExcessesByRung& excesses) {
  nlohmann::json json = nlohmann::json::object();
  for (const auto& [rung, inputs] : excesses)
    for (const auto& [input, kinds] : inputs)
      for (const std::string& kind : kinds) json[kind][input].push_back(rung);
  return json.dump(2) + "\n";
}

std::vector<std::string> excess_differences(const Excesses& recorded, const Excesses& found,
                                            bool is_recorded_place) {
  const auto has = [](const Excesses& excesses, const std::string& input, const std::string& kind) {
    const auto of_input = excesses.find(input);
    return of_input != excesses.end() && of_input->second.contains(kind);
  };
  const std::map<std::string, std::string> what = {
      {"zeros", "NaN where a zero stands for an input that the definition does not have"},
      {"groups", "NaN in outputs of other groups"},
      {"nan", "NaN where infinity is right"},
      {"tiles",
       "NaN and infinity, of either sign, in all of a tile, or an image, that needs the number"}};
  std::vector<std::string> differences;
  for (const auto& [input, kinds] : found) {
    for (const std::string& kind : kinds) {
      if (!has(recorded, input, kind))
        differences.push_back(text("NaN or infinity in ", input, " now makes ", what.at(kind), "; ",
                                   kHowToRecordReach));
    }
  }
  for (const auto& [input, kinds] : recorded) {
    for (const std::string& kind : kinds) {
      if (is_recorded_place && !has(found, input, kind))
        differences.push_back(text("NaN or infinity in ", input, " no longer makes ", what.at(kind),
                                   ", as is recorded; ", kHowToRecordReach));
    }
  }
  return differences;
}

bool record_non_finite(const std::filesystem::path& file) {
  ExcessesByRung excesses;
  for (const Ladder& ladder : ladders()) {
    for (const Rung& rung : ladder.rungs) {
      const Where where = recorded_place(rung);
      if (rung.code_at(where)) excesses[rung.name] = check_non_finite(ladder, rung, where).excesses;
    }
  }
  std::ofstream out(file);
  out << excesses_text(excesses);
  if (!out.flush()) {
    std::fprintf(stderr, "cannot write %s\n", file.c_str());
    return false;
  }
  return true;
}

}  // namespace convladder::testing
