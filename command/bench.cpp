#include "command/bench.hpp"

#include "core/error.hpp"

namespace convladder::command {

int bench(const Options&) {
  // With committed runs, a machine without a GPU will show their tables and succeed. As long as
  // there are none, success would claim a result that does not exist.
  throw BadInput(
      "bench: not available yet: benchmarks come with a later version; compare shows the time of "
      "each run");
}

}  // namespace convladder::command
