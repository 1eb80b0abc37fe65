/// @file rows.hpp
/// @brief Macros with which a ladder's table refers to the code of its rungs.
///
/// A rung's file `<folder>/<ladder>/<name>.cpp` or `.cu` defines the constant `Implementation<A>
/// <folder>::<ladder>::<name>`; in a .cu file, inside BACKEND. The ladder's header declares the
/// constant with CPU_RUNG or CUDA_RUNG, and the row in the table refers to it with CPU_ROW or
/// CUDA_ROW.
#pragma once

#include <algorithm>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "core/rung.hpp"
#include "ladders/rung_libraries.hpp"

/// @def RUNG_CODE
/// The CPU code of a rung, space::folder::ladder::rung in the library of its folder.
/// The library is either opened at the first call or linked with the program.
#ifdef CONVLADDER_OPENS_RUNGS
#define RUNG_CODE(space, folder, ladder, rung)                                                    \
  ::convladder::code_in_library<::convladder::ArraysOf<decltype(::space::folder::ladder::rung)>>( \
      #folder "/" #ladder, #space "::" #folder "::" #ladder "::" #rung)
#else
#define RUNG_CODE(space, folder, ladder, rung) \
  ::convladder::AnyImplementation(::space::folder::ladder::rung)
#endif

/// @def GPU_CODE
/// The GPU code of a rung; empty in a build without nvcc.
#ifdef CONVLADDER_HAVE_NVCC
#define GPU_CODE(constant) std::optional(::convladder::AnyImplementation(constant))
#else
#define GPU_CODE(constant) std::optional<::convladder::AnyImplementation>()
#endif

/// The first members of a CPU rung's row: name, source and code.
#define CPU_ROW(folder, ladder, rung, ...)             \
  ::convladder::cpu_row(#folder "/" #ladder "/" #rung, \
                        RUNG_CODE(convladder, folder, ladder, rung), __VA_ARGS__)

/// The first members of a CUDA rung's row.
#define CUDA_ROW(folder, ladder, rung, ...)                                     \
  ::convladder::cuda_row(#folder "/" #ladder "/" #rung,                         \
                         RUNG_CODE(convladder::emulated, folder, ladder, rung), \
                         GPU_CODE(::convladder::gpu::folder::ladder::rung), __VA_ARGS__)

/// The first members of the row of a CUDA rung in a family's folder:
/// `<folder>/<ladder>/<family>/<rung>.cu` defines the constant `<family>_<rung>`.
#define CUDA_ROW_IN(folder, ladder, family, rung, ...)                                     \
  ::convladder::cuda_row(#folder "/" #ladder "/" #family "/" #rung,                        \
                         RUNG_CODE(convladder::emulated, folder, ladder, family##_##rung), \
                         GPU_CODE(::convladder::gpu::folder::ladder::family##_##rung),     \
                         __VA_ARGS__)

namespace convladder {

/// Used by ArraysOf in unevaluated contexts only.
template <class A>
A arrays_for(const Implementation<A>& code);
/// The array type of an Implementation.
template <class Code>
using ArraysOf = decltype(arrays_for(std::declval<Code>()));

/// A row of a C++ rung; CPU_ROW fills in name and code.
inline Rung cpu_row(const char* name, AnyImplementation code, const char* previous,
                    const char* idea, bool deterministic = true) {
  Rung rung{name, std::string(name) + ".cpp", idea, previous, deterministic};
  rung.needs = "cpu";
  rung.code[static_cast<std::size_t>(Where::cpu)] = std::move(code);
  return rung;
}

/// A row of a CUDA rung; CUDA_ROW fills in name and code.
inline Rung cuda_row(const char* name, AnyImplementation emulated,
                     std::optional<AnyImplementation> gpu, const char* previous, const char* idea,
                     bool deterministic = true) {
  Rung rung{name, std::string(name) + ".cu", idea, previous, deterministic};
  rung.needs = "sm_75";
  rung.code[static_cast<std::size_t>(Where::emulated)] = std::move(emulated);
  rung.code[static_cast<std::size_t>(Where::gpu)] = std::move(gpu);
  return rung;
}

/// A row of a CUDA rung that needs a recent GPU. @param architecture the least one: "sm_80",
/// "sm_90a"
inline Rung needs(const char* architecture, Rung rung) {
  rung.needs = architecture;
  return rung;
}

/// The rungs of a spine, from first to last. @param part name of the spine where a ladder has
/// several
inline std::vector<Rung> spine(const char* part, std::vector<Rung> rungs) {
  for (std::size_t i = 0; i < rungs.size(); ++i) {
    rungs[i].spine = static_cast<int>(i) + 1;
    rungs[i].part = part;
  }
  return rungs;
}

/// Rungs outside the spines, grouped by family; families are in the order of their first rung.
inline std::vector<Rung> off_the_spines(Level level, std::vector<Rung> rungs) {
  std::vector<std::string> families;
  const auto place_of = [&](const Rung& rung) {
    return std::find(families.begin(), families.end(), family_of(rung)) - families.begin();
  };
  for (Rung& rung : rungs) {
    rung.level = level;
    if (place_of(rung) == std::ssize(families)) families.push_back(family_of(rung));
  }
  std::stable_sort(rungs.begin(), rungs.end(),
                   [&](const Rung& a, const Rung& b) { return place_of(a) < place_of(b); });
  return rungs;
}

/// Alternative techniques at the level of the spine.
inline std::vector<Rung> alternatives(std::vector<Rung> rungs) {
  return off_the_spines(Level::alternative, std::move(rungs));
}

/// Refinements for particular GPUs.
inline std::vector<Rung> advanced(std::vector<Rung> rungs) {
  return off_the_spines(Level::advanced, std::move(rungs));
}

/// All rungs of a ladder, from these groups.
inline std::vector<Rung> in_order(std::initializer_list<std::vector<Rung>> groups) {
  std::vector<Rung> all;
  for (const std::vector<Rung>& group : groups) all.insert(all.end(), group.begin(), group.end());
  return all;
}

/// A row whose rung applies a transform to whole images.
inline Rung whole_images(Rung rung) {
  rung.whole_images = true;
  return rung;
}

/// A row whose rung transforms tiles of two images at a time, in FP32.
inline Rung float_spectra(Rung rung) {
  rung.float_spectra = true;
  return rung;
}

/// A row whose rung rounds FP32 operands to TF32 or splits them into TF32 parts.
inline Rung tf32(Tf32 how, Rung rung) {
  rung.tf32 = how;
  return rung;
}

/// A row whose rung computes the transform as a convolution with a chirp.
inline Rung chirp(Rung rung) {
  rung.chirp = true;
  return rung;
}

/// A row whose rung uses Winograd's F(m x m, 3 x 3), F(3 x 3, m x m) or a part of them. @param tile
/// m; for m = 4 also the set of interpolation points
inline Rung winograd(WinogradTile tile, Rung rung) {
  rung.winograd = tile;
  return rung;
}

}  // namespace convladder
