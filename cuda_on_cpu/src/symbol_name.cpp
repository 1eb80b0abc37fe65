#include "symbol_name.hpp"

#include <cxxabi.h>
#include <elf.h>
#include <link.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <string_view>
#include <vector>

namespace cuda_on_cpu {
namespace {

/// The file that is mapped at an address, and the offset of its addresses in memory.
struct Module {
  std::uintptr_t address;
  std::string path;
  std::uintptr_t shift = 0;
};

int find_module(dl_phdr_info* info, std::size_t, void* argument) {
  Module& module = *static_cast<Module*>(argument);
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const ElfW(Phdr)& segment = info->dlpi_phdr[i];
    if (segment.p_type != PT_LOAD) continue;
    const std::uintptr_t begin = info->dlpi_addr + segment.p_vaddr;
    if (module.address < begin || module.address >= begin + segment.p_memsz) continue;
    module.path = info->dlpi_name[0] == '\0' ? "/proc/self/exe" : info->dlpi_name;
    module.shift = info->dlpi_addr;
    return 1;
  }
  return 0;
}

template <class T>
std::vector<T> read_array(std::ifstream& file, std::uint64_t offset, std::uint64_t bytes) {
  std::vector<T> items(bytes / sizeof(T));
  file.seekg(static_cast<std::streamoff>(offset));
  file.read(reinterpret_cast<char*>(items.data()), static_cast<std::streamsize>(bytes));
  if (!file) items.clear();
  return items;
}

/// Calls visit(symbol, name) for each symbol of `module`. Kernels need not be exported, so dladdr()
/// is not sufficient.
template <class Visit>
void for_each_symbol(const Module& module, Visit visit) {
  std::ifstream file(module.path, std::ios::binary);
  const auto header = read_array<ElfW(Ehdr)>(file, 0, sizeof(ElfW(Ehdr)));
  if (header.empty()) return;
  const auto sections =
      read_array<ElfW(Shdr)>(file, header[0].e_shoff, header[0].e_shnum * sizeof(ElfW(Shdr)));
  for (const ElfW(Shdr)& section : sections) {
    if (section.sh_type != SHT_SYMTAB || section.sh_link >= sections.size()) continue;
    const ElfW(Shdr)& names_section = sections[section.sh_link];
    const auto names = read_array<char>(file, names_section.sh_offset, names_section.sh_size);
    for (const ElfW(Sym)& symbol :
         read_array<ElfW(Sym)>(file, section.sh_offset, section.sh_size)) {
      if (symbol.st_name < names.size()) visit(symbol, std::string_view(&names[symbol.st_name]));
    }
  }
}

Module module_of(const void* address) {
  Module module{reinterpret_cast<std::uintptr_t>(address), {}};
  dl_iterate_phdr(&find_module, &module);
  return module;
}

/// Empty if `module` does not contain it.
std::string mangled_name(const Module& module) {
  std::string found;
  for_each_symbol(module, [&](const ElfW(Sym)& symbol, std::string_view name) {
    const bool is_function = (symbol.st_info & 0xf) == STT_FUNC;
    if (is_function && symbol.st_value + module.shift == module.address) found = name;
  });
  return found;
}

/// "void n::kernel<4>(float*)" -> "n::kernel<4>".
std::string without_signature(std::string name) {
  // Scanned from the back: the last '(' at depth 0 starts the parameters.
  int depth = 0;
  for (std::size_t i = name.size(); i-- > 0;) {
    if (name[i] == ')') ++depth;
    if (name[i] == '(' && --depth == 0) {
      name.resize(i);
      break;
    }
  }
  if (name.starts_with("void ")) name.erase(0, 5);  // a template's return type
  return name;
}

}  // namespace

std::string function_name(const void* address) {
  const std::string mangled = mangled_name(module_of(address));
  if (mangled.empty()) {
    char text[40];
    std::snprintf(text, sizeof text, "kernel at %p", address);
    return text;
  }
  int status = 0;
  const std::unique_ptr<char, void (*)(void*)> demangled(
      abi::__cxa_demangle(mangled.c_str(), nullptr, nullptr, &status), &std::free);
  return demangled ? without_signature(demangled.get()) : mangled;
}

std::size_t static_shared_bytes(const void* address) {
  const Module module = module_of(address);
  const std::string function = mangled_name(module);
  if (!function.starts_with("_Z")) return 0;
  // The C++ ABI's name of a static variable in a function: _ZZ <function> E <variable>.
  const std::string prefix = "_ZZ" + function.substr(2) + "E";
  std::size_t bytes = 0;
  for_each_symbol(module, [&](const ElfW(Sym)& symbol, std::string_view name) {
    const bool is_thread_local = (symbol.st_info & 0xf) == STT_TLS;
    if (is_thread_local && name.starts_with(prefix) &&
        name.find("cuda_on_cpu_probe") == name.npos) {
      bytes += symbol.st_size;
    }
  });
  return bytes;
}

}  // namespace cuda_on_cpu
