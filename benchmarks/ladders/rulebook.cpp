#include <string>

#include "benchmarks/ladders/problems_of_ladders.hpp"
#include "benchmarks/sites.hpp"
#include "core/text.hpp"

namespace convladder::benchmarks {

BenchmarkProblems rulebook_problems() {
  BenchmarkProblems all;
  const auto add = [&](const std::string& sites, const Window& window, RulebookForm form,
                       const std::string& teaches) {
    all.push_back({"rulebook", text(sites, "-", window.id, "-", name_of(form)), teaches,
                   book_over(sites, window, form), sites});
  };
  for (const char* sites : {"sweep", "large"}) {
    using enum RulebookForm;
    add(sites, kSubm3, table, "submanifold: for an output-stationary convolution");
    add(sites, kSubm3, sorted, "submanifold: with the sort by mask");
    add(sites, kSubm3, pairs, "submanifold: for a scatter, or a product a tap");
    add(sites, kK3s2, table, "half the resolution: the outputs have to be found");
    add(sites, kK3s2, pairs, "half the resolution, as pairs");
    add(sites, kK2s2, table, "windows that do not overlap: one output an input");
    add(sites, kK3s1, table, "sites that grow at their borders: many times as many outputs");
    add(sites, kK3s1, pairs, "sites that grow at their borders, as pairs");
  }
  add("sweep", kSubm3, RulebookForm::split, "submanifold: an order for each half of the taps");
  add("sweep", kBack, RulebookForm::table, "inverse: back to the sites before k3s2");
  for (const char* sites : {"scanned", "reversed", "shuffled"}) {
    for (const RulebookForm form : {RulebookForm::table, RulebookForm::pairs})
      add(sites, kSubm3, form, site_sources().at(sites).words);
    add(sites, kK3s2, RulebookForm::table, text(site_sources().at(sites).words, ", halved"));
  }
  for (const auto& [name, source] : site_sources()) {
    const bool one_size_of_many =
        name.starts_with("shell-") || name.starts_with("random-") || name.starts_with("cube-");
    if (one_size_of_many) add(name, kSubm3, RulebookForm::table, source.words);
  }
  return all;
}

}  // namespace convladder::benchmarks
