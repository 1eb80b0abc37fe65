/// @file contest_memory.hpp
/// @brief The arrays of a contest on the GPU, and the check of what entrants left in them.
#pragma once

#include <cstddef>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "benchmarks/gpu/contest.hpp"
#include "benchmarks/gpu/device_objects.hpp"
#include "core/arguments.hpp"

namespace convladder::benchmarks {

/// What a rung created in its last run on a copy of the arrays.
struct Created {
  Shape shape;
  void* data = nullptr;
};
using CreatedOutputs = std::map<std::string, Created>;

/// Several copies of a contest's arrays, and scratch memory.
class ContestMemory {
 public:
  ContestMemory(const Contest& contest, int copies);

  int copies() const { return static_cast<int>(copies_.size()); }
  /// Are there outputs that rungs create, and that a first run allocates?
  bool has_created() const;

  /// The arrays of a copy. Outputs whose size a rung finds out itself are allocated on a first run
  /// there and used again in later ones, of any rung: `created` is told which. None is freed, as a
  /// recorded run may still name it.
  Arguments arguments(int copy, void* workspace, CreatedOutputs* created = nullptr);

  /// Fills all outputs with what is never right: 0xff bytes, which are NaN, and -1 in the argmax of
  /// a strided pooling, where every output has a candidate; and in created ones 0x7f, as -1 is a
  /// number of rulebooks; of floats they are far from any mean.
  void poison() const;

  /// Empty, or what is wrong with the outputs of the first `copies` copies.
  /// @param right the contest's samples, or those for Winograd's rungs
  std::string wrong(int copies, const std::vector<Samples>& right, double tolerance_factor) const;

  /// Empty, or what is wrong with what a rung created in the first `created.size()` copies. Those
  /// in the canonical order are compared on the GPU, others on the host: of them the first copy and
  /// the last.
  std::string wrong(const std::vector<CreatedOutputs>& created) const;

 private:
  struct Copy {
    std::list<Buffer> buffers;
    std::vector<Arguments::Slot> inputs, outputs;
    std::map<std::pair<std::string, std::size_t>, std::unique_ptr<Buffer>> made;
  };

  /// In a created output, as Contest::wholes has it.
  unsigned long long different_words(const void* found, std::size_t whole) const;

  /// The created outputs of a copy, on the host.
  std::map<std::string, Array, std::less<>> downloaded(const CreatedOutputs& created) const;

  /// What a kernel that `launch` starts has counted.
  static unsigned long long counted(const std::function<void(unsigned long long*)>& launch);

  /// The i-th output that rungs do not create.
  const ArraySpec& output(std::size_t i) const;

  /// Empty, or what is wrong with it.
  std::string wrong_output(int copy, std::size_t i, const std::vector<Samples>& right,
                           double tolerance_factor) const;

  const Contest* contest_;
  std::vector<Copy> copies_;
  std::list<Buffer> right_;  // as Contest::wholes
};

}  // namespace convladder::benchmarks
