/// @file rung.hpp
/// @brief What programs know of rungs: the code of each, and its row in the rung table.
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
  std::function<Declined(const Problem&)> supports;            ///< As Implementation::supports.
  std::function<std::size_t(const Problem&)> workspace_bytes;  ///< 0 where there is none.
  std::function<void(const Problem&, const Arguments&)> run;   ///< As Implementation::run.
  std::function<void(const Problem&, const Arguments&)>
      finish;                                      ///< Does nothing where there is none.
  std::function<OutputTile(const Problem&)> tile;  ///< rows = columns = 0 where there are no tiles
  std::function<std::string(const Problem&)> choice;  ///< Empty where there is none.

  AnyImplementation() = default;  ///< Of nothing: none of its functions can be called.
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

/// How a rung stands to the one that it comes from.
enum class RungKind {
  start,  ///< The first rung of a ladder.
  step,   ///< The next rung of a spine: one idea on top of `previous`.
  branch  ///< Off the spines: another technique, which branches off at `previous`.
};

/// As in tables and JSON: "step".
constexpr const char* name_of(RungKind kind) {
  return kind == RungKind::start ? "start" : kind == RungKind::step ? "step" : "branch";
}

/// Who should read a rung.
enum class Level {
  spine,        ///< Everybody, in the order of the spine.
  alternative,  ///< Who looks for that technique.
  advanced      ///< Who knows the spine, and wants what the newest GPUs gain.
};

/// As in tables and JSON: "spine".
constexpr const char* name_of(Level level) {
  return level == Level::spine ? "spine" : level == Level::alternative ? "alternative" : "advanced";
}

/// Which points F(4 x 4, 3 x 3) has beside 0, 1, -1 and infinity.
enum class WinogradPoints {
  two,       ///< 2 and -2
  imaginary  ///< i and -i
};

/// A tile of Winograd's F(m x m, 3 x 3), or for a gradient by the weights of F(3 x 3, m x m); or of
/// F(3, 3) along rows, whose filters are wider: then it is for pieces of three taps.
struct WinogradTile {
  int m = 0;                                    ///< 2 or 4; 3: pieces; 0: none
  WinogradPoints points = WinogradPoints::two;  ///< of m = 4

  /// m alone says enough where it is 2.
  constexpr WinogradTile(int m_ = 0, WinogradPoints points_ = WinogradPoints::two)
      : m(m_), points(points_) {}
  friend constexpr auto operator<=>(WinogradTile, WinogradTile) = default;
};

/// F(3, 3) for rows of filters in pieces of three taps.
inline constexpr WinogradTile kWinogradPieces = 3;

/// How a rung uses TF32.
enum class Tf32 {
  none,      ///< Not at all.
  operands,  ///< It rounds operands to it where the problem allows that.
  parts      ///< It splits each operand into parts of it (3xTF32), whatever the problem allows.
};

/// A row of the rung table.
struct Rung {
  std::string name;           ///< Source path from the root without the suffix.
  std::string source;         ///< Source path from the root.
  std::string idea;           ///< The one idea, in a line.
  std::string previous;       ///< The rung that it comes from; empty at the bottom.
  bool deterministic = true;  ///< The same input gives the same bits, run after run.
  /// A spine is a numbered sequence of rungs chosen for teaching, from a definition to a modern
  /// kernel: each rung adds one idea to `previous`, the rung before it. 1, 2, ...; 0 off the
  /// spines.
  int spine = 0;
  std::string part = {};       ///< Which spine, where a ladder has several: "direct"; else empty.
  Level level = Level::spine;  ///< Who should read it.
  /// "cpu", or the least architecture of a GPU that runs it: "sm_75", "sm_80", "sm_90a".
  std::string needs = {};
  /// Whose sums it adds up, if these are Winograd's: their rounding has another bound, and NaN and
  /// infinity reach the whole tile. None: the definition's products.
  WinogradTile winograd = {};
  /// Its sums are those of a transform of whole images, all of which NaN and infinity reach.
  bool whole_images = false;
  /// Its sums are those of transforms in float, of two tiles at a time: rounding has another bound,
  /// what is a whole number is one after rounding to the nearest, and NaN and infinity reach all of
  /// images 2 i and 2 i + 1.
  bool float_spectra = false;
  /// What it makes of float32 operands. In TF32, numbers next to float32's largest become infinite,
  /// and small ones lose bits.
  Tf32 tf32 = Tf32::none;
  /// It computes a transform as a convolution with a chirp, whose numbers on the way are larger.
  bool chirp = false;
  /// The code by Where; empty where this build has none.
  std::array<std::optional<AnyImplementation>, 3> code = {};

  /// Its code for that place; empty where there is none.
  const std::optional<AnyImplementation>& code_at(Where where) const {
    return code[static_cast<std::size_t>(where)];
  }
  /// Why no GPU of that compute capability (10 * major + minor) runs it, if so; 0: it is not asked.
  Declined why_not_on(int compute_capability) const {
    if (!is_cuda() || compute_capability == 0 || runs_on(needs, compute_capability)) return {};
    return need_in_words(needs, compute_capability);
  }
  /// How it stands to `previous`.
  RungKind kind() const {
    return previous.empty() ? RungKind::start : spine > 0 ? RungKind::step : RungKind::branch;
  }
  /// Whether an output's rounding error depends on more than the output's own terms.
  bool transforms() const { return winograd.m != 0 || whole_images || float_spectra; }
  /// Whether it is a .cu file.
  bool is_cuda() const { return source.ends_with(".cu"); }
};

/// The folder of a ladder's rungs, "cuda_optimized/conv2d" of cuda_optimized/conv2d/direct/tiled.
inline std::string folder_of(const Rung& rung) {
  return rung.name.substr(0, rung.name.find('/', rung.name.find('/') + 1));
}

/// The folder below it that a rung of a large ladder lies in: "direct"; else empty.
inline std::string family_of(const Rung& rung) {
  const std::size_t begin = folder_of(rung).size() + 1, end = rung.name.rfind('/');
  return end < begin ? std::string() : rung.name.substr(begin, end - begin);
}

/// A ladder: one operation, and all its rungs: its spines, the alternatives, the advanced rungs.
struct Ladder {
  std::string name;                        ///< As on the command line: "conv2d".
  std::string summary;                     ///< What is computed, in a line.
  Signature (*signature)(const Problem&);  ///< The arrays of a problem.
  std::vector<Rung> rungs;                 ///< In the order of reading.
};

}  // namespace convladder
