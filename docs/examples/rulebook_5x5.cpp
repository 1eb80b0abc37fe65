/// @file rulebook_5x5.cpp
/// @brief Prints the rulebooks of five sites on a 5 x 5 grid, as the page of the ladder shows them.
///
///     cmake --build build/cpu --target rulebook_5x5 && build/cpu/docs/rulebook_5x5
#include <cstdio>
#include <string>
#include <vector>

#include "core/rung.hpp"
#include "oracle/rulebook.hpp"

namespace {

using namespace convladder;

/// A grid with the row of each site, "." where there is none.
void print_grid(const char* title, const PerAxis& shape, const Array& coords) {
  std::vector<std::string> cells(static_cast<std::size_t>(shape[0] * shape[1]), ".");
  const auto numbers = coords.as<std::int32_t>();
  for (std::size_t row = 0; row < numbers.size() / 3; ++row) {
    const int y = numbers[3 * row + 1], x = numbers[3 * row + 2];
    cells[static_cast<std::size_t>(y * shape[1] + x)] = std::to_string(row);
  }
  std::printf("%s\n\n", title);
  for (int y = 0; y < shape[0]; ++y) {
    std::printf("   ");
    for (int x = 0; x < shape[1]; ++x)
      std::printf(" %2s", cells[static_cast<std::size_t>(y * shape[1] + x)].c_str());
    std::printf("\n");
  }
  std::printf("\n");
}

/// A hash table of sites, small enough to print: a key's first slot is key % kSlots, and where that
/// is taken, the next one that is free.
class HashTable {
 public:
  static constexpr int kSlots = 8;

  /// Puts a site in. @returns the slots that were looked into, in words
  std::string insert(std::int64_t key, int row) { return probe(key, row).words; }
  /// The row of a key, or -1, and the slots that were looked into.
  std::pair<int, std::string> find(std::int64_t key) {
    const Probe found = probe(key, kNobody);
    return {found.row, found.words};
  }
  void print() const {
    std::printf("    slot ");
    for (int slot = 0; slot < kSlots; ++slot) std::printf("%4d", slot);
    std::printf("\n    key  ");
    for (const Entry& entry : entries_)
      std::printf("%4s", entry.row < 0 ? "." : std::to_string(entry.key).c_str());
    std::printf("\n    row  ");
    for (const Entry& entry : entries_)
      std::printf("%4s", entry.row < 0 ? "." : std::to_string(entry.row).c_str());
    std::printf("\n\n");
  }

 private:
  static constexpr int kNobody = -1;
  struct Entry {
    std::int64_t key = 0;
    int row = kNobody;
  };
  struct Probe {
    int row;
    std::string words;
  };

  /// From the key's first slot on, to the key itself or to a free slot, which `row` then takes.
  Probe probe(std::int64_t key, int row) {
    std::string words;
    for (auto slot = static_cast<int>(key % kSlots);; slot = (slot + 1) % kSlots) {
      words += (words.empty() ? "" : ", ") + std::to_string(slot);
      Entry& entry = entries_[static_cast<std::size_t>(slot)];
      if (entry.row == kNobody) {
        if (row != kNobody) entry = {key, row};
        return {row, words};
      }
      if (entry.key == key) return {entry.row, words};
    }
  }

  std::vector<Entry> entries_ = std::vector<Entry>(kSlots);
};

/// The table of all sites, and what one output asks it.
void print_hash_table(const RulebookProblem& book, const Array& coords) {
  const auto key_at = [&](const Site& site) { return key_of(book, book.shape, site); };
  const std::int32_t* sites = coords.as<std::int32_t>().data();
  HashTable table;
  std::printf("The hash table: key = 5 y + x, first slot = key %% %d, then the next.\n\n",
              HashTable::kSlots);
  for (int row = 0; row < book.sites; ++row) {
    const Site site = site_of(book, sites, row);
    std::printf("    row %d at (%d,%d): key %2d, slots looked into: %s\n", row, site.at[0],
                site.at[1], static_cast<int>(key_at(site)),
                table.insert(key_at(site), row).c_str());
  }
  std::printf("\n");
  table.print();

  constexpr int kAsking = 1;
  std::printf("What output %d at (1,1) asks under the submanifold kernel:\n\n", kAsking);
  for (int k = 0; k < book.KV; ++k) {
    const PerAxis tap = tap_of(book, k);
    Site in;
    if (!input_of(book, site_of(book, sites, kAsking), tap, &in)) continue;
    const auto [row, slots] = table.find(key_at(in));
    std::printf("    k = %d: (%d,%d), key %2d, slots %-8s %s\n", k, in.at[0], in.at[1],
                static_cast<int>(key_at(in)), (slots + ":").c_str(),
                row < 0 ? "not there" : ("row " + std::to_string(row)).c_str());
  }
  std::printf("\n");
}

/// "0 -> 1  1 -> 2": the pairs of a tap.
std::string pairs_of(const Rulebook& book, int k) {
  const auto pairs = book.pairs.as<std::int32_t>();
  const auto offsets = book.offsets.as<std::int32_t>();
  std::string words;
  for (auto i = static_cast<std::size_t>(offsets[static_cast<std::size_t>(k)]);
       i < static_cast<std::size_t>(offsets[static_cast<std::size_t>(k) + 1]); ++i) {
    words += (words.empty() ? "" : "  ") + std::to_string(pairs[3 * i + 1]) + "->" +
             std::to_string(pairs[3 * i + 2]);
  }
  return words;
}

/// Two rulebooks of as many taps, tap by tap.
void print_pairs(const Rulebook& left, const Rulebook& right) {
  std::printf("    %-14s %-32s%s\n", "", "submanifold", "strided");
  for (int k = 0; k < left.problem.KV; ++k) {
    const PerAxis tap = tap_of(left.problem, k);
    char line[200];
    std::snprintf(line, sizeof line, "    k = %d, (%d,%d):  %-32s%s", k, tap[0], tap[1],
                  pairs_of(left, k).c_str(), pairs_of(right, k).c_str());
    const std::string words = line;
    std::printf("%s\n", words.substr(0, words.find_last_not_of(' ') + 1).c_str());
  }
  const auto counted = [](const Rulebook& book) {
    return std::to_string(book.pairs.shape()[0]) + " pairs, " + std::to_string(book.M) + " outputs";
  };
  std::printf("\n    %-14s %-32s%s\n", "", counted(left).c_str(), counted(right).c_str());
}

}  // namespace

int main() {
  Array coords(DType::i32, {5, 3});
  const std::vector<std::int32_t> sites = {0, 0, 0, 0, 1, 1, 0, 1, 2, 0, 3, 1, 0, 4, 4};
  std::copy(sites.begin(), sites.end(), coords.as<std::int32_t>().begin());

  RulebookProblem problem{.mode = SparseMode::subm, .ndim = 2, .sites = 5, .shape = every_axis(5)};
  print_grid("Five sites, numbered in the order of the input:", problem.shape, coords);
  print_hash_table(validated(problem), coords);
  const Rulebook submanifold = make_rulebook(validated(problem), coords);

  problem.mode = SparseMode::strided;
  problem.stride = every_axis(2);
  problem.pad = every_axis(1);
  const Rulebook strided = make_rulebook(validated(problem), coords);
  print_grid("Strided (kernel 3 x 3, stride 2, padding 1): the outputs in their order:",
             strided.problem.out_shape, strided.out_coords);
  std::printf("Input row -> output row, tap by tap:\n\n");
  print_pairs(submanifold, strided);
}
