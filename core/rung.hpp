/// @file rung.hpp
/// @brief A rung as programs see it: its code, and its row in the rung table.
#pragma once

#include <array>
#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/arguments.hpp"
#include "core/array.hpp"
#include "core/implementation.hpp"
#include "core/needs.hpp"
#include "core/problem.hpp"
#include "core/where.hpp"

namespace convladder {

/// An Implementation without its ladder's types, so that programs can treat all ladders alike.
struct AnyImplementation {
  std::function<Declined(const Problem&)> supports;              ///< Like Implementation::supports.
  std::function<std::size_t(const Problem&)> workspace_bytes;    ///< 0 if there is none.
  std::function<void(const Problem&, const Arguments&)> run;     ///< Like Implementation::run.
  std::function<void(const Problem&, const Arguments&)> finish;  ///< Does nothing if there is none.
  std::function<OutputTile(const Problem&)> tile;     ///< rows = columns = 0 if there are no tiles
  std::function<std::string(const Problem&)> choice;  ///< Empty if there is none.

  AnyImplementation() = default;  ///< Empty: none of its functions can be called.
  /// Its functions take problems of type A::Problem only.
  template <class A>
  explicit AnyImplementation(const Implementation<A>& code)
      : supports([=](const Problem& p) {
          return code.supports ? code.supports(typed<A>(p)) : Declined{};
        }),
        workspace_bytes([=](const Problem& p) {
          return code.workspace_bytes ? code.workspace_bytes(typed<A>(p)) : std::size_t{0};
        }),
        run([=](const Problem& p, const Arguments& arguments) {
          const Context& context = arguments.context();
          in_stream(context.stream,
                    [&] { code.run(typed<A>(p), arrays_of<A>(arguments), context); });
        }),
        finish([=](const Problem& p, const Arguments& arguments) {
          const Context& context = arguments.context();
          if (!code.finish) return;
          in_stream(context.stream,
                    [&] { code.finish(typed<A>(p), arrays_of<A>(arguments), context); });
        }),
        tile([=](const Problem& p) { return code.tile ? code.tile(typed<A>(p)) : OutputTile{}; }),
        choice([=](const Problem& p) {
          return code.choice ? code.choice(typed<A>(p)) : std::string{};
        }) {}

 private:
  template <class A>
  static const typename A::Problem& typed(const Problem& problem) {
    return std::get<typename A::Problem>(problem);
  }
};

/// The relation of a rung to its predecessor.
enum class RungKind {
  start,  ///< The first rung of a ladder.
  step,   ///< The next rung of a spine: one idea added to `previous`.
  branch  ///< Not on a spine: another technique that branches off at `previous`.
};

/// The name in tables and JSON: "step".
constexpr const char* name_of(RungKind kind) {
  return kind == RungKind::start ? "start" : kind == RungKind::step ? "step" : "branch";
}

/// The intended reader of a rung.
enum class Level {
  spine,        ///< Every reader, in the order of the spine.
  alternative,  ///< Readers who look for that technique.
  advanced      ///< Readers who know the spine, for refinements on recent GPUs.
};

/// The name in tables and JSON: "spine".
constexpr const char* name_of(Level level) {
  return level == Level::spine ? "spine" : level == Level::alternative ? "alternative" : "advanced";
}

/// The interpolation points of F(4 x 4, 3 x 3) besides 0, 1, -1 and infinity.
enum class WinogradPoints {
  two,       ///< 2 and -2
  imaginary  ///< i and -i
};

/// A tile of Winograd's F(m x m, 3 x 3), or of F(3 x 3, m x m) for a gradient with respect to the
/// weights; or of F(3, 3) along rows, for wider filters that are split into pieces of three taps.
struct WinogradTile {
  int m = 0;                                    ///< 2 or 4; 3: pieces; 0: none
  WinogradPoints points = WinogradPoints::two;  ///< for m = 4

  /// m alone is sufficient for 2.
  constexpr WinogradTile(int m_ = 0, WinogradPoints points_ = WinogradPoints::two)
      : m(m_), points(points_) {}
  friend constexpr auto operator<=>(WinogradTile, WinogradTile) = default;
};

/// F(3, 3) for rows of filters in pieces of three taps.
inline constexpr WinogradTile kWinogradPieces = 3;

/// A rung's use of TF32.
enum class Tf32 {
  none,      ///< None.
  operands,  ///< It rounds operands to TF32 if the problem permits it.
  parts      ///< It splits each operand into TF32 parts (3xTF32), for every problem.
};

/// A row of the rung table.
struct Rung {
  std::string name;           ///< Source path from the root without the suffix.
  std::string source;         ///< Source path from the root.
  std::string idea;           ///< The one-line summary.
  std::string previous;       ///< The rung from which it is derived; empty for the first rung.
  bool deterministic = true;  ///< The same input gives the same bits in every run.
  /// A spine is a numbered sequence of rungs selected for teaching, from a definition to a modern
  /// kernel: each rung adds one idea to `previous`. 1, 2, ...; 0 off the spines.
  int spine = 0;
  std::string part = {};       ///< The name of the spine if a ladder has several: "direct";
                               ///< otherwise empty.
  Level level = Level::spine;  ///< The intended reader.
  /// "cpu", or the least architecture of a GPU that runs it: "sm_75", "sm_80", "sm_90a".
  std::string needs = {};
  /// The Winograd algorithm that it uses, if any: it has another rounding bound, and NaN and
  /// infinity spread over a tile. Empty: the products of the definition.
  WinogradTile winograd = {};
  /// It transforms whole images: NaN and infinity spread over an image.
  bool whole_images = false;
  /// It transforms two tiles at a time in float: it has another rounding bound, integers are exact
  /// after rounding to the nearest integer, and NaN and infinity spread over images 2 i and 2 i +
  /// 1.
  bool float_spectra = false;
  /// Its treatment of float32 operands. In TF32, numbers next to float32's largest become infinite,
  /// and small numbers lose bits.
  Tf32 tf32 = Tf32::none;
  /// It computes a transform as a convolution with a chirp, with larger intermediate values.
  bool chirp = false;
  /// The code by Where; empty if this build has none.
  std::array<std::optional<AnyImplementation>, 3> code = {};

  /// Its code for that place; empty if there is none.
  const std::optional<AnyImplementation>& code_at(Where where) const {
    return code[static_cast<std::size_t>(where)];
  }
  /// The reason why no GPU of that compute capability (10 * major + minor) runs it, if any; 0: not
  /// checked.
  Declined why_not_on(int compute_capability) const {
    if (!is_cuda() || compute_capability == 0 || runs_on(needs, compute_capability)) return {};
    return need_in_words(needs, compute_capability);
  }
  /// The relation to `previous`.
  RungKind kind() const {
    return previous.empty() ? RungKind::start : spine > 0 ? RungKind::step : RungKind::branch;
  }
  /// Whether an output's rounding error depends on more than the output's own terms.
  bool transforms() const { return winograd.m != 0 || whole_images || float_spectra; }
  /// Whether its source is a .cu file.
  bool is_cuda() const { return source.ends_with(".cu"); }
};

/// The folder of a ladder's rungs, "cuda_optimized/conv2d" of cuda_optimized/conv2d/direct/tiled.
inline std::string folder_of(const Rung& rung) {
  return rung.name.substr(0, rung.name.find('/', rung.name.find('/') + 1));
}

/// The family folder within it, for large ladders: "direct"; otherwise empty.
inline std::string family_of(const Rung& rung) {
  const std::size_t begin = folder_of(rung).size() + 1, end = rung.name.rfind('/');
  return end < begin ? std::string() : rung.name.substr(begin, end - begin);
}

/// A ladder: one operation and all its rungs: spines, alternatives and advanced rungs.
struct Ladder {
  std::string name;                        ///< The name on the command line: "conv2d".
  std::string summary;                     ///< A one-line description of the operation.
  Signature (*signature)(const Problem&);  ///< The arrays of a problem.
  std::vector<Rung> rungs;                 ///< In reading order.
};

}  // namespace convladder
