#include "ladders/rows.hpp"
#include "ladders/tables.hpp"

CPU_RUNG(RulebookProblem, cpu_reference, rulebook, hash_map)

convladder::Ladder convladder::rulebook_ladder() {
  return {
      "rulebook",
      "which input site of a sparse convolution meets which output site, at which tap",
      [](const Problem& problem) { return rulebook_signature(std::get<RulebookProblem>(problem)); },
      {
          CPU_ROW(cpu_reference, rulebook, hash_map, "",
                  "a hash map from sites to rows, asked once for each tap of each site"),
      }};
}
