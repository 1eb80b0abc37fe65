#include "command/emulated_device.hpp"

#include <algorithm>
#include <cuda_on_cpu/device_models.hpp>
#include <map>
#include <set>
#include <utility>

#include "core/error.hpp"
#include "core/needs.hpp"
#include "ladders/ladders.hpp"

namespace convladder::command {
namespace {

using cuda_on_cpu::control::DeviceModel;

std::string chosen_architecture;  // NOLINT(cppcoreguidelines-avoid-non-const-global-variables):
                                  // like the device

}  // namespace

std::string device_list() {
  std::vector<std::string> cards;
  for (const DeviceModel& model : cuda_on_cpu::control::device_models())
    cards.push_back(text(model.architecture, " (", model.card, ", ", model.others, ")"));
  return joined(cards, ", ");
}

void choose_device(const std::string& architecture) {
  const DeviceModel* const model = cuda_on_cpu::control::find_device_model(architecture);
  if (model == nullptr) {
    std::vector<std::string> names;
    for (const DeviceModel& known : cuda_on_cpu::control::device_models())
      names.emplace_back(known.architecture);
    throw BadInput(text("device = ", architecture, ": must be one of ", device_list(),
                        "\nnearest: ", nearest(architecture, names)));
  }
  cuda_on_cpu::control::set_device_model(*model);
  chosen_architecture = architecture;
}

const std::string& chosen_device() { return chosen_architecture; }

std::string device_line(const std::vector<Report>& reports) {
  if (chosen_architecture.empty()) return "";
  const DeviceModel& model = cuda_on_cpu::control::device_model();
  std::set<const Rung*> all, ran, lack_memory;
  std::map<std::pair<int, std::string>, std::set<const Rung*>> lack;  // by the required
                                                                      // architecture
  for (const Report& report : reports) {
    for (const Row& row : report.rows) {
      if (row.where != Where::emulated) continue;
      all.insert(row.rung);
      if (row.rung->why_not_on(model.compute_capability)) {
        const std::string& reason = row.outcome.reason;  // "needs sm_90a: wgmma; this ..."
        lack[{capability_of(row.rung->needs), reason.substr(0, reason.find(';'))}].insert(row.rung);
      } else if (row.outcome.reason.find(kOfSharedMemory) != std::string::npos) {
        lack_memory.insert(row.rung);
      } else if (row.outcome.ran) {
        ran.insert(row.rung);
      }
    }
  }
  if (all.empty()) return "";
  std::erase_if(lack_memory, [&](const Rung* rung) { return ran.contains(rung); });
  std::size_t cannot = lack_memory.size();
  std::vector<std::string> groups;
  for (const auto& [need, rungs] : lack) {
    const std::string& reason = need.second;
    const std::size_t colon = std::min(reason.find(": "), reason.size());
    groups.push_back(text(rungs.size(), rungs.size() == 1 ? " needs " : " need ",
                          (*rungs.begin())->needs,
                          colon == reason.size() ? "" : " (" + reason.substr(colon + 2) + ")"));
    cannot += rungs.size();
  }
  if (!lack_memory.empty()) {
    groups.push_back(text(lack_memory.size(), lack_memory.size() == 1 ? " needs" : " need",
                          " more shared memory per block for this problem"));
  }
  const std::string card = text(model.architecture, " (", model.card, ")");
  const std::string rungs = text(all.size(), all.size() == 1 ? " CUDA rung" : " CUDA rungs");
  if (cannot == 0) return text(card, " can run all ", rungs);
  return text(card, " cannot run ", cannot, " of ", rungs, ": ", joined(groups, ", "));
}

}  // namespace convladder::command
