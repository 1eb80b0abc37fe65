#include <algorithm>
#include <cmath>
#include <list>
#include <memory>
#include <new>

#include "benchmarks/gpu/baselines.hpp"
#include "benchmarks/gpu/contest.hpp"
#include "benchmarks/gpu/contest_memory.hpp"
#include "benchmarks/gpu/device_objects.hpp"
#include "benchmarks/gpu/round.hpp"
#include "core/cuda/launch.hpp"
#include "core/error.hpp"

namespace convladder::benchmarks {
namespace {

constexpr int kMostCopies = 64;
// Arrays of this many times the L2 leave nothing behind when they have gone through it.
constexpr double kFlushes = 3;
constexpr double kFlushesAtLeast = 2;
// Baselines may err this many times as much as rungs: Winograd's and FFT's rounding errors are
// hundreds of times those of plain sums. It is still far less than another result would differ.
constexpr double kLooserFp32 = 300, kLooserTf32 = 4;

double l2_bytes() {
  int bytes = 0;
  gpu::check(cudaDeviceGetAttribute(&bytes, cudaDevAttrL2CacheSize, 0));
  return bytes;
}

/// All of other people's that take part.
std::vector<Baseline> baselines_of(const Contest& contest, ContestMemory& memory,
                                   const Scratch& scratch) {
  std::vector<Baseline> all;
  for (const std::vector<Baseline>& some :
       {cudnn_baselines(contest, scratch),
        cudnn_graph_baselines(contest, scratch, memory.arguments(0, nullptr)),
        cublas_baselines(contest), cutlass_baselines(contest), cufft_baselines(contest)}) {
    all.insert(all.end(), some.begin(), some.end());
  }
  return all;
}

std::vector<Participant> participants_of(const Contest& contest, ContestMemory& memory,
                                         const std::vector<Baseline>& baselines,
                                         std::list<Buffer>& copy_buffers) {
  std::vector<Participant> all;
  for (const Entrant& entrant : contest.rungs) {
    Participant& p = all.emplace_back();
    p.name = entrant.name;
    const auto of_winograd = contest.winograd_samples.find(entrant.winograd);
    p.right =
        of_winograd == contest.winograd_samples.end() ? &contest.samples : &of_winograd->second;
    if (entrant.float_spectra) p.right = &contest.fourier_samples;
    try {
      const std::size_t bytes = entrant.code->workspace_bytes(contest.problem);
      p.workspace = std::make_unique<Buffer>(bytes);
      p.workspace_bytes = static_cast<std::int64_t>(bytes);
    } catch (const std::bad_alloc&) {
      p.timing.wrong = "needs a larger workspace than fits beside the arrays";
      p.timing.declined = true;
      continue;
    }
    p.created =
        std::make_shared<std::vector<CreatedOutputs>>(static_cast<std::size_t>(memory.copies()));
    p.run = [&contest, &memory, code = entrant.code, workspace = p.workspace->data(),
             created = p.created](int copy) {
      code->run(contest.problem,
                memory.arguments(copy, workspace, &(*created)[static_cast<std::size_t>(copy)]));
    };
    p.finish = [&contest, &memory, code = entrant.code, workspace = p.workspace->data()](int copy) {
      code->finish(contest.problem, memory.arguments(copy, workspace));
    };
  }
  for (const Baseline& baseline : baselines) {
    Participant& p = all.emplace_back();
    p.name = baseline.name;
    p.kind = baseline.limit ? Participant::Kind::limit : Participant::Kind::baseline;
    p.right = &contest.samples;
    p.run = [&memory, run = baseline.run](int copy) { run(memory.arguments(copy, nullptr)); };
  }
  // A copy that moves as many bytes as have to be moved.
  const auto half = static_cast<std::int64_t>(contest.bytes / 32) * 16;
  if (half > 0) {
    std::vector<std::pair<void*, void*>> pairs;
    for (int copy = 0; copy < memory.copies(); ++copy) {
      void* from = copy_buffers.emplace_back(static_cast<std::size_t>(half)).data();
      void* to = copy_buffers.emplace_back(static_cast<std::size_t>(half)).data();
      pairs.emplace_back(from, to);
    }
    Participant& p = all.emplace_back();
    p.name = "copy";
    p.kind = Participant::Kind::limit;
    p.checked = false;
    p.run = [pairs, half](int copy) {
      const auto& [from, to] = pairs[static_cast<std::size_t>(copy)];
      launch_copy(to, from, half);
    };
  }
  return all;
}

}  // namespace

Standings measure(const Contest& contest, const std::function<void(const std::string&)>& note) {
  const double l2 = l2_bytes();
  const int copies = static_cast<int>(std::clamp(std::ceil(kFlushes * l2 / contest.bytes) + 1, 2.0,
                                                 static_cast<double>(kMostCopies)));
  const bool can_be_cold = copies * contest.bytes >= kFlushesAtLeast * l2;
  Standings standings;
  try {
    static const Buffer scratch(kScratchBytes);
    const Buffer flush(static_cast<std::size_t>(kFlushes * l2));
    ContestMemory memory(contest, can_be_cold ? copies : 1);
    const std::vector<Baseline> baselines =
        baselines_of(contest, memory, {scratch.data(), scratch.bytes()});
    std::vector<std::string> very_slow;
    for (const L2 state : {L2::warm, L2::cold}) {
      if (state == L2::cold && !can_be_cold) continue;
      std::list<Buffer> copy_buffers;
      std::vector<Participant> participants =
          participants_of(contest, memory, baselines, copy_buffers);
      for (Participant& p : participants) {
        if (std::find(very_slow.begin(), very_slow.end(), p.name) == very_slow.end()) continue;
        p.timing.wrong = "takes so long that it is not timed with a cold L2";
        p.timing.declined = true;
      }
      Round(memory, state, flush, contest.tf32 ? kLooserTf32 : kLooserFp32, participants).run(note);
      Standing& standing = standings[static_cast<std::size_t>(state)].emplace();
      for (Participant& p : participants) {
        if (p.very_slow()) very_slow.push_back(p.name);
        if (p.kind == Participant::Kind::rung) {
          standing.rungs.push_back(p.timing);
        } else if (!p.out()) {
          (p.kind == Participant::Kind::baseline ? standing.baselines : standing.limits)[p.name] =
              p.timing.median_us;
        }
      }
    }
  } catch (const std::bad_alloc&) {
    throw BadInput(text("memory: not enough of it (gpu) for ", describe(contest.problem)));
  }
  return standings;
}

}  // namespace convladder::benchmarks
