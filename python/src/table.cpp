#include "table.hpp"

#include <algorithm>
#include <vector>

#include "core/error.hpp"
#include "ladders/ladders.hpp"

namespace convladder::python {

Where where_named(const std::string& word) {
  for (const Where where : kEverywhere)
    if (word == name_of(where)) return where;
  throw BadInput(text("where = '", word, "': it must be one of cpu, emulated, gpu"));
}

const Rung& rung_named(const Ladder& ladder, const std::string& name) {
  const auto found = std::ranges::find(ladder.rungs, name, &Rung::name);
  if (found != ladder.rungs.end()) return *found;
  std::vector<std::string> names;
  for (const Rung& rung : ladder.rungs) names.push_back(rung.name);
  throw BadInput(text("rung = '", name, "': there is none of that name in ", ladder.name,
                      "; the nearest is ", nearest(name, names)));
}

const AnyImplementation& code_of(const Rung& rung, Where where) {
  const auto& code = rung.code_at(where);
  require(code.has_value() && device_at(where) != nullptr, "where", name_of(where),
          text("the rung ", rung.name, " does not run there"));
  return *code;
}

}  // namespace convladder::python
