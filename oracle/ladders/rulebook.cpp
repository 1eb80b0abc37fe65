/// @file rulebook.cpp
/// @brief Definition of rulebook, see oracle/rulebook.hpp.
#include "oracle/rulebook.hpp"

#include <map>

#include "core/rulebook_problem.hpp"
#include "oracle/ladders/definition.hpp"

namespace convladder::oracle {
namespace rulebook {
namespace {

std::int64_t longest_sum(const RulebookProblem&) { return 1; }

std::vector<Expected> outputs(const RulebookProblem& book, const Arrays& inputs) {
  const Rulebook right = make_rulebook(book, inputs.at("coords"));
  const std::map<std::string, const Array*> arrays = {
      {"out_coords", &right.out_coords},
      {"pairs", &right.pairs},
      {"nbr", &right.nbr},
      {"mask", &right.mask},
      {"order", orders_of(book.form) == 2 ? &right.split_order : &right.order}};
  std::vector<Expected> expected;
  for (const ArraySpec& spec : rulebook_signature(book).outputs)
    expected.push_back(integers_of(spec, *arrays.at(spec.name)));
  return expected;
}

}  // namespace
}  // namespace rulebook

Definition rulebook_definition() {
  return define<RulebookProblem>(
      {.longest_sum = rulebook::longest_sum, .outputs = rulebook::outputs});
}

}  // namespace convladder::oracle
