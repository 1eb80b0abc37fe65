/// @file rung.hpp
/// @brief What a rung is: the code that a ladder's file provides, and its row in the rung table.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/array.hpp"
#include "core/problem.hpp"

namespace convladder {

/// The arrays of one run, by name, where the rung computes: host memory for a CPU rung, device
/// memory for a CUDA rung. The caller owns them all; inputs must not be written.
class Arguments {
 public:
  /// An array of the run.
  struct Slot {
    std::string name;  ///< As in the ladder's Signature.
    DType dtype;       ///< Of its elements.
    void* data;        ///< Where the rung computes.
  };
  /// Allocates the output `name` with its final shape, and returns its memory.
  using Creator = std::function<void*(const std::string& name, DType dtype, const Shape& shape)>;

  /// @param creator called for dynamic outputs; it need not outlive the run
  Arguments(std::vector<Slot> inputs, std::vector<Slot> outputs, void* workspace, Creator creator)
      : inputs_(std::move(inputs)), outputs_(std::move(outputs)), workspace_(workspace),
        creator_(std::move(creator)) {}

  /// An input's elements. @throws std::logic_error if there is none of that name and type.
  template <class T>
  const T* in(std::string_view name) const {
    return static_cast<const T*>(find(inputs_, name, dtype_of<T>(), "input"));
  }
  /// An input that not every problem has: null where it has not.
  template <class T>
  const T* in_or_null(std::string_view name) const {
    for (const Slot& slot : inputs_) {
      if (slot.name == name) return in<T>(name);
    }
    return nullptr;
  }
  /// An output's elements. @throws std::logic_error if there is none of that name and type.
  template <class T>
  T* out(std::string_view name) const {
    return static_cast<T*>(find(outputs_, name, dtype_of<T>(), "output"));
  }
  /// Creates an output whose size the rung had to find out first (ArraySpec::dynamic); once a run.
  template <class T>
  T* create(const std::string& name, const Shape& shape) const {
    return static_cast<T*>(creator_(name, dtype_of<T>(), shape));
  }
  /// The memory that workspace_bytes() asked for, aligned to 256 bytes; its content is undefined.
  template <class T>
  T* workspace() const {
    return static_cast<T*>(workspace_);
  }

 private:
  static void* find(const std::vector<Slot>& slots, std::string_view name, DType dtype,
                    const char* kind);

  std::vector<Slot> inputs_, outputs_;
  void* workspace_;
  Creator creator_;
};

/// Rows and columns of the last two output axes that one block computes, for messages.
struct OutputTile {
  int rows = 0, columns = 0;  ///< 0: there is no such tile.
};

/// "one", "two" or "several": for texts that shall not grow with a number. "no" for 0.
constexpr const char* how_many(std::int64_t count) {
  return count == 0 ? "no" : count == 1 ? "one" : count == 2 ? "two" : "several";
}
/// "one part", "two parts", "several parts": of what is called so where it is one.
inline std::string how_many(std::int64_t count, const char* what) {
  return std::string(how_many(count)) + " " + what + (count == 1 ? "" : "s");
}

/// Why a rung declines a problem; nothing when it takes it.
using Declined = std::optional<std::string>;

/// What a rung's file provides, all functions of its ladder's problem.
template <class P>
struct Implementation {
  /// Nothing, or why this rung cannot take the problem. Null: takes every valid problem.
  Declined (*supports)(const P&) = nullptr;
  /// Scratch memory in bytes. Null: none.
  std::size_t (*workspace_bytes)(const P&) = nullptr;
  /// Computes all outputs. CUDA rungs may return before the device has finished.
  void (*run)(const P&, const Arguments&) = nullptr;
  /// Reads back what `run` left for the host, once the device has finished: a `run` without a wait
  /// can be recorded in a CUDA graph. @throws BadInput for what the kernels flagged. Null: nothing.
  void (*finish)(const P&, const Arguments&) = nullptr;
  /// The tile of outputs that a block computes. Null: the rung has no tiles.
  OutputTile (*tile)(const P&) = nullptr;
  /// What the rung chooses for a problem that it takes: the variant, in a few words. It depends on
  /// the problem alone, not on where arrays begin. Few different texts a rung: no numbers that grow
  /// with the problem. Null: it does the same for all.
  std::string (*choice)(const P&) = nullptr;
};

/// An Implementation without its problem's type, so that programs can treat all ladders alike.
struct AnyImplementation {
  std::function<Declined(const Problem&)> supports;            ///< As Implementation::supports.
  std::function<std::size_t(const Problem&)> workspace_bytes;  ///< 0 where there is none.
  std::function<void(const Problem&, const Arguments&)> run;   ///< As Implementation::run.
  std::function<void(const Problem&, const Arguments&)>
      finish;                                      ///< Does nothing where there is none.
  std::function<OutputTile(const Problem&)> tile;  ///< rows = columns = 0 where there are no tiles
  std::function<std::string(const Problem&)> choice;  ///< Empty where there is none.

  /// Its functions take problems of type P only.
  template <class P>
  explicit AnyImplementation(Implementation<P> code)
      : supports([=](const Problem& p) {
          return code.supports ? code.supports(std::get<P>(p)) : Declined{};
        }),
        workspace_bytes([=](const Problem& p) {
          return code.workspace_bytes ? code.workspace_bytes(std::get<P>(p)) : std::size_t{0};
        }),
        run([=](const Problem& p, const Arguments& arrays) { code.run(std::get<P>(p), arrays); }),
        finish([=](const Problem& p, const Arguments& arrays) {
          if (code.finish) code.finish(std::get<P>(p), arrays);
        }),
        tile(
            [=](const Problem& p) { return code.tile ? code.tile(std::get<P>(p)) : OutputTile{}; }),
        choice([=](const Problem& p) {
          return code.choice ? code.choice(std::get<P>(p)) : std::string{};
        }) {}
};

/// Where a rung runs: on the host, as a .cu file on the host (cuda_on_cpu), or on a GPU.
enum class Where { cpu, emulated, gpu };

/// All places, in the order of tables.
inline constexpr std::array<Where, 3> kEverywhere = {Where::cpu, Where::emulated, Where::gpu};

/// As on the command line: "emulated".
constexpr const char* name_of(Where where) {
  return where == Where::cpu ? "cpu" : where == Where::emulated ? "emulated" : "gpu";
}

/// How a rung stands to the one that it comes from.
enum class RungKind {
  start,  ///< The bottom of a ladder.
  step,   ///< One idea on top of it.
  branch  ///< Another way, which leaves the ladder's steps there.
};

/// As in tables and JSON: "step".
constexpr const char* name_of(RungKind kind) {
  return kind == RungKind::start ? "start" : kind == RungKind::step ? "step" : "branch";
}

/// A row of the rung table.
struct Rung {
  std::string name;           ///< Source path from the root without the suffix.
  std::string source;         ///< Source path from the root.
  std::string idea;           ///< The one idea, in a line.
  std::string previous;       ///< The rung that it comes from; empty at the bottom.
  bool deterministic = true;  ///< The same input gives the same bits, run after run.
  std::string beside = {};    ///< Of a branch: the rung to compare it with; else empty.
  /// The code by Where; empty where this build has none.
  std::array<std::optional<AnyImplementation>, 3> code = {};

  /// Its code for that place; empty where there is none.
  const std::optional<AnyImplementation>& code_at(Where where) const {
    return code[static_cast<std::size_t>(where)];
  }
  /// How it stands to `previous`.
  RungKind kind() const {
    return previous.empty() ? RungKind::start : beside.empty() ? RungKind::step : RungKind::branch;
  }
  /// Whether it is a .cu file.
  bool is_cuda() const { return source.ends_with(".cu"); }
};

/// A ladder: one operation, and all its rungs in the order of climbing.
struct Ladder {
  std::string name;                        ///< As on the command line: "conv2d".
  std::string summary;                     ///< What is computed, in a line.
  Signature (*signature)(const Problem&);  ///< The arrays of a problem.
  std::vector<Rung> rungs;                 ///< From the bottom up.
};

}  // namespace convladder
