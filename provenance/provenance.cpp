#include "provenance/provenance.hpp"

#include <cctype>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <fstream>
#include <memory>

namespace convladder {

const std::map<std::string, std::string>& built_source_hashes() {
  static const std::map<std::string, std::string> hashes = [] {
    const std::map<std::string, std::string> by_source = {
#include "source_hashes.inc"
    };
    std::map<std::string, std::string> by_rung;
    for (const auto& [source, hash] : by_source) {
      by_rung[source.substr(0, source.rfind('.'))] = hash;
    }
    return by_rung;
  }();
  return hashes;
}

std::string driver_version() {
  std::ifstream stream("/proc/driver/nvidia/version");
  for (std::string word; stream >> word;) {
    if (std::isdigit(static_cast<unsigned char>(word[0])) != 0 &&
        word.find('.') != std::string::npos) {
      return word;
    }
  }
  return "unknown";
}

std::string toolkit_version() {
#ifdef CONVLADDER_TOOLKIT
  return CONVLADDER_TOOLKIT;
#else
  return "none";
#endif
}

std::string today() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  gmtime_r(&now, &parts);
  char date[11];
  std::strftime(date, sizeof date, "%Y-%m-%d", &parts);
  return date;
}

std::string commit() {
  if (const char* given = std::getenv("CONVLADDER_COMMIT")) return given;
  const std::unique_ptr<FILE, int (*)(FILE*)> git(popen("git rev-parse HEAD 2>/dev/null", "r"),
                                                  pclose);
  char line[64] = {};
  if (git == nullptr || std::fgets(line, sizeof line, git.get()) == nullptr) return "unknown";
  return std::string(line, std::strcspn(line, "\n"));
}

}  // namespace convladder
