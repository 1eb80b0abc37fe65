#include "check/assignment.hpp"
#include "check/run.hpp"
#include "core/error.hpp"

namespace convladder::check {
namespace {

/// The output of the checked rung of a ladder, for these inputs.
Array output_of(const std::string& ladder, const Im2colProblem& problem, const std::string& input,
                const Array& values, const std::string& output) {
  for (const Ladder& one : ladders()) {
    if (one.name != ladder) continue;
    const Rung& rung = one.rungs.front();
    const Where where = place_of(rung);
    RungRun run = run_guarded(one, problem, {{input, values}}, *rung.code_at(where), where);
    if (!run.damage.empty()) throw DeviceError(run.damage);
    return std::move(run.outputs.at(output));
  }
  throw BadInput("adjoint: this assignment has no rung of " + ladder);
}

/// Exact: both are integers below 2^24.
double product_of(const Array& a, const Array& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.as<float>().size(); ++i)
    sum += double{a.as<float>()[i]} * double{b.as<float>()[i]};
  return sum;
}

}  // namespace

std::string adjoint() {
  for (const Case& one : read_cases()) {
    if (one.is_counted() || !one.rung.ends_with("im2col/im2col")) continue;
    auto problem = std::get<Im2colProblem>(read_trial("im2col", split(one.words)).problem);
    problem.request = Request::write;
    const std::int64_t longest = problem.kernel_volume() + 1;
    // Other data than those of the cases.
    const Array x = make_inputs(im2col_signature(problem), Data::integer, 2, longest).at("x");
    const Array col = make_inputs(col2im_signature(problem), Data::integer, 3, longest).at("col");
    const double left = product_of(output_of("im2col", problem, "x", x, "col"), col);
    const double right = product_of(x, output_of("col2im", problem, "col", col, "x"));
    if (!(left == right)) {
      return text("for ", describe(problem), ": <im2col(x), c> is ", left,
                  ", and <x, col2im(c)> is ", right);
    }
  }
  return "";
}

}  // namespace convladder::check
