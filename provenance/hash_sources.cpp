/// @file hash_sources.cpp
/// @brief Run by the build: writes the hashes of all rungs' sources for the suite to compile in, so
/// that a program knows what it was built from, wherever it is carried.
///
///     hash_sources ROOT OUTPUT SOURCE...
#include <cstdio>
#include <exception>
#include <fstream>

#include "provenance/source_hash.hpp"

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  try {
    std::ofstream out(argv[2]);
    for (int i = 3; i < argc; ++i) {
      out << "{\"" << argv[i] << "\", \"" << convladder::source_hash(argv[1], argv[i]) << "\"},\n";
    }
    return out.flush() ? 0 : 1;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "hash_sources: %s\n", error.what());
    return 1;
  }
}
