#include "ladders/rung_libraries.hpp"

#include <dlfcn.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <mutex>
#include <thread>

#include "core/text.hpp"

namespace convladder {
namespace fs = std::filesystem;
namespace {

WaitObserver& wait_observer() {
  static WaitObserver observer;
  return observer;
}

/// The name of a library, "rungs_cuda_optimized_conv2d".
std::string library_name(std::string folder) {
  std::ranges::replace(folder, '/', '_');
  return "rungs_" + folder;
}

/// The folder of the library that contains this code; the other libraries are in the same folder.
fs::path library_folder() {
  Dl_info info{};
  dladdr(reinterpret_cast<const void*>(&constant_in_library), &info);
  return fs::path(info.dli_fname).parent_path();
}

/// The folder in which a running build reports its progress: one empty file per finished library,
/// the file `progress`, and finally `done` or `failed`. Empty if no build is running.
fs::path build_state() {
  const char* folder = std::getenv("CONVLADDER_BUILD");
  return folder == nullptr ? "" : folder;
}

void wait_until_built(const std::string& folder) {
  const fs::path state = build_state();
  const auto there = [&] {
    return state.empty() || fs::exists(state / library_name(folder)) || fs::exists(state / "done");
  };
  if (there()) return;
  if (wait_observer()) wait_observer()(folder);
  while (!there()) {
    if (fs::exists(state / "failed")) {
      throw MissingLibrary(text("the build failed before it produced the rungs of ", folder));
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  if (wait_observer()) wait_observer()({});
}

/// @param what the part of the program that the library contains
void* open_library(const std::string& name, const std::string& what, fs::path file = {}) {
  if (file.empty()) file = library_folder() / ("libconvladder_" + name + ".so");
  void* const library = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    throw MissingLibrary(text(what, " cannot be opened: ", dlerror(),
                              " (the target that builds them is ", name, ")"));
  }
  return library;
}

/// The open libraries, by folder.
struct OpenLibraries {
  std::mutex mutex;
  std::map<std::string, void*> by_folder;
};

OpenLibraries& open_libraries() {
  static OpenLibraries opened;
  return opened;
}

void* open_rungs(const std::string& folder) {
  OpenLibraries& opened = open_libraries();
  const std::lock_guard lock(opened.mutex);
  void*& library = opened.by_folder[folder];
  if (library != nullptr) return library;
  wait_until_built(folder);
  return library = open_library(library_name(folder), "the rungs of " + folder);
}

/// @param symbol the linker's name of `name`, a function or a constant
/// @throws MissingLibrary if the library does not define it
void* symbol_of(void* library, const std::string& library_name, const std::string& symbol,
                const std::string& name) {
  void* const found = dlsym(library, symbol.c_str());
  if (found == nullptr) {
    throw MissingLibrary(text("the library ", library_name, " has no ", name));
  }
  return found;
}

/// The linker's name of a constant in nested namespaces: "_ZN1a1bE" for a::b
/// (the Itanium C++ ABI, 5.1.3, which g++ and clang follow on Linux).
std::string mangled(const std::string& name) {
  std::string result = "_ZN";
  for (std::size_t begin = 0; begin < name.size();) {
    const std::size_t end = std::min(name.find("::", begin), name.size());
    result += std::to_string(end - begin) + name.substr(begin, end - begin);
    begin = end + 2;
  }
  return result + "E";
}

}  // namespace

const void* constant_in_library(const std::string& folder, const std::string& name) {
  return symbol_of(open_rungs(folder), library_name(folder), mangled(name), name);
}

void take_rungs_from(const std::string& folder, const std::string& file) {
  OpenLibraries& opened = open_libraries();
  const std::lock_guard lock(opened.mutex);
  opened.by_folder[folder] = open_library(library_name(folder), "the rungs of " + folder, file);
}

void* function_in_program(const std::string& library, const std::string& what, const char* symbol) {
  return symbol_of(open_library(library, what), library, symbol, symbol);
}

std::optional<double> build_progress() {
  const fs::path state = build_state();
  if (state.empty() || fs::exists(state / "done")) return {};
  std::ifstream file(state / "progress");
  double count = 0, total = 0;
  if (!(file >> count >> total) || total <= 0) return {};
  return count / total;
}

void observe_waits(WaitObserver observer) { wait_observer() = std::move(observer); }

AnyImplementation code_in_library(const char* folder, const char* name,
                                  AnyImplementation (*read)(const void* constant)) {
  struct Code {
    std::once_flag once;
    AnyImplementation found;
  };
  const auto code = [=, kept = std::make_shared<Code>()]() -> const AnyImplementation& {
    std::call_once(kept->once, [&] { kept->found = read(constant_in_library(folder, name)); });
    return kept->found;
  };
  AnyImplementation forwarded;
  forwarded.supports = [code](const Problem& p) { return code().supports(p); };
  forwarded.workspace_bytes = [code](const Problem& p) { return code().workspace_bytes(p); };
  forwarded.run = [code](const Problem& p, const Arguments& arrays) { code().run(p, arrays); };
  forwarded.finish = [code](const Problem& p, const Arguments& arrays) {
    code().finish(p, arrays);
  };
  forwarded.tile = [code](const Problem& p) { return code().tile(p); };
  forwarded.choice = [code](const Problem& p) { return code().choice(p); };
  return forwarded;
}

}  // namespace convladder
