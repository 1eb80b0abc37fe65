#include "command/ladders/sparse.hpp"

namespace convladder::command {
namespace {

std::string rulebook_in_code(const RulebookProblem& p) { return in_code(p); }

}  // namespace

std::string in_code(const RulebookProblem& p) {
  return text("RulebookProblem{.mode = SparseMode::", name_of(p.mode), ", .ndim = ", p.ndim,
              ", .batch = ", p.batch, ", .sites = ", p.sites, ", .shape = ", in_code(p.shape),
              ", .kernel = ", in_code(p.kernel), ", .stride = ", in_code(p.stride),
              ", .pad = ", in_code(p.pad), ", .dilation = ", in_code(p.dilation),
              ", .out_padding = ", in_code(p.out_padding),
              ", .form = RulebookForm::", name_of(p.form), ", .out_shape = ", in_code(p.out_shape),
              ", .KV = ", p.KV, "}");
}

LadderCommand rulebook_command() {
  return {.read = sparse_reader({.options = kernel_options_and({"form"})}),
          .in_code = code_of<RulebookProblem>(rulebook_in_code),
          .set_over_sites = [](Task& task, OverSites& over) {
            require_room_for(over.book);
            task.given.emplace("coords", std::move(over.coords));
          }};
}

}  // namespace convladder::command
