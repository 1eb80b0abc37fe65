/// @file
/// @brief The asynchronous instructions of compute capability 9.0.
#include <bit>
#include <cstring>
#include <cuda_on_cpu/ptx.hpp>
#include <string>
#include <utility>

#include "block_runner.hpp"
#include "model_device.hpp"
#include "report_text.hpp"
#include "watching.hpp"

namespace cuda_on_cpu::ptx {
namespace {

using detail::Site;

// The result of mapa(): the rank, from 1 on, above a block's own 18 bits.
constexpr unsigned kRankAt = 24;

/// The requirements of an instruction.
enum class Architecture : std::uint8_t { any, sm_80, sm_90, sm_90a };

const char* name_of(Architecture needed) {
  return needed == Architecture::sm_80   ? "sm_80"
         : needed == Architecture::sm_90 ? "sm_90"
                                         : "sm_90a";
}

bool is_met(Architecture needed, const control::DeviceModel& device) {
  switch (needed) {
    case Architecture::any: return true;
    case Architecture::sm_80: return device.has_cp_async();
    case Architecture::sm_90: return device.has_tma();
    case Architecture::sm_90a: return device.has_wgmma();
  }
  return true;
}

/// The running thread and the function that it calls, for reports.
class Caller {
 public:
  /// @param needed the least architecture that supports the instruction
  Caller(const char* function, const Site& site, Architecture needed = Architecture::sm_90)
      : runner_(BlockRunner::of_running_kernel(function)), function_(function), site_(site) {
    const control::DeviceModel& device = *runner_.launch().settings.model;
    if (!is_met(needed, device)) {
      runner_.fail_thread(cudaErrorIllegalInstruction,
                          "calls " + std::string(function_) + " at " + describe_site(site_) +
                              ", but " + text_of_need(function_, name_of(needed), device) + ".");
    }
  }

  BlockRunner& runner() const { return runner_; }

  /// `why` continues "calls f at file.cu:12 ".
  [[noreturn]] void refuse(const std::string& why,
                           cudaError_t error = cudaErrorLaunchFailure) const {
    runner_.fail_thread(
        error, "calls " + std::string(function_) + " at " + describe_site(site_) + " " + why + ".");
  }

  Mbarrier& mbarrier(std::uint64_t* object) const { return mbarrier(runner_, object); }
  /// Of a block of the cluster.
  Mbarrier& mbarrier(BlockRunner& block, std::uint64_t* object) const {
    Mbarrier* const barrier = block.find_mbarrier(object);
    if (barrier == nullptr) refuse("for a barrier that has not been initialized");
    if (!barrier->is_intact()) {
      refuse("for a barrier whose 8 bytes were overwritten since they were last used");
    }
    return *barrier;
  }

  /// Another block of the cluster, whose shared memory the instruction accesses.
  BlockRunner& block(unsigned rank) const {
    Cluster* const cluster = runner_.cluster();
    const unsigned blocks = cluster != nullptr ? cluster->size() : 1;
    if (rank >= blocks) {
      refuse("for block " + std::to_string(rank) + " of a cluster that has " +
             std::to_string(blocks));
    }
    if (cluster == nullptr) return runner_;
    if (cluster->has_ended(rank)) {
      refuse("for block " + std::to_string(rank) +
             " of the cluster, which has ended together with its shared memory");
    }
    return cluster->block(rank);
  }

  /// The address in another block that corresponds to `pointer` in the caller's block.
  void* in_block(const void* pointer, const BlockRunner& block) const {
    if (&block == &runner_) return const_cast<void*>(pointer);
    void* const there = runner_.in_block(pointer, block);
    if (there == nullptr) refuse("for a pointer that is not to shared memory");
    return there;
  }

  /// The block that an address of mapa(), or of the caller's own shared memory, belongs to.
  BlockRunner& block_at(unsigned address) const {
    const unsigned rank = address >> kRankAt;
    return rank == 0 ? runner_ : block(rank - 1);
  }
  /// The memory at such an address, with this size.
  void* at(unsigned address, std::size_t bytes) const {
    const void* const own = runner_.at_shared_address(address & ((1u << kRankAt) - 1));
    if (own == nullptr || !runner_.in_shared(own, bytes)) {
      refuse("for an address that is not in shared memory", cudaErrorIllegalAddress);
    }
    return in_block(own, block_at(address));
  }

  /// Completes the phases that can be completed, and wakes the threads that wait for them.
  void go_on(Mbarrier& barrier) const { go_on(runner_, barrier); }
  void go_on(BlockRunner& block, Mbarrier& barrier) const {
    while (barrier.try_complete(!barrier.waiting().empty())) wake(block, barrier);
    if (barrier.is_overrun()) {
      refuse(std::string("although ") + (barrier.has_stores() ? "stores" : "loads") +
             " bring more bytes than were expected: " + barrier.describe());
    }
  }

  /// Wakes the threads that wait for a completed phase.
  void wake(BlockRunner& block, Mbarrier& barrier) const {
    detail::tell_watcher([&](inspect::Watcher& watcher) {
      for (const unsigned thread : barrier.waiting())
        watcher.acquired(barrier.object(), block.cluster_rank(), thread);
    });
    block.wake(barrier.waiting());
  }

 private:
  BlockRunner& runner_;
  const char* function_;
  const Site& site_;
};

TensorMapFields fields_of(const Caller& caller, const CUtensorMap* map, unsigned rank,
                          bool im2col) {
  if (reinterpret_cast<std::uintptr_t>(map) % 64 != 0) {
    caller.refuse("with a tensor map not aligned to 64 bytes", cudaErrorMisalignedAddress);
  }
  TensorMapFields fields;
  std::memcpy(&fields, map, sizeof fields);
  if (fields.mark != kTensorMapMark) caller.refuse("with a tensor map that was not encoded");
  if (rank != 0 && (fields.rank != rank || (fields.im2col != 0) != im2col)) {
    caller.refuse("with a tensor map of another rank or mode");
  }
  return fields;
}

/// Ends the kernel if the calling thread may not issue the load.
void check(const Caller& caller, const TensorLoad& load) {
  if (const char* const defect = load.defect()) {
    caller.refuse(defect, cudaErrorIllegalInstruction);
  }
  if (!caller.runner().in_shared(load.to, load.extent())) {
    caller.refuse("with " + std::to_string(load.extent()) +
                      " bytes to fill, which do not lie in the block's shared memory",
                  cudaErrorIllegalAddress);
  }
}

void issue(const Caller& caller, const TensorLoad& load, std::uint64_t* object) {
  Mbarrier& barrier = caller.mbarrier(object);
  check(caller, load);
  detail::tell_watcher([&](inspect::Watcher& watcher) {
    watcher.copy_issued(load.to, load.extent(), load.bulk, load.extent(), load.site);
    watcher.released(object);  // the copy arrives there, after all earlier operations of its issuer
  });
  load.clear();
  barrier.issue(load);
  caller.go_on(barrier);
}

}  // namespace

unsigned shared_address(const void* shared, Site site) {
  const Caller caller("shared_address", site, Architecture::any);
  const unsigned address = caller.runner().shared_address(shared);
  if (address == ~0u) {
    caller.refuse(
        "for a pointer that is not to shared memory, or to static shared memory beyond 27 KiB");
  }
  return address;
}

void mbarrier_init(std::uint64_t* barrier, int arrivals, Site site) {
  const Caller caller("mbarrier_init", site, Architecture::sm_80);
  BlockRunner& runner = caller.runner();
  if (reinterpret_cast<std::uintptr_t>(barrier) % 8 != 0) {
    caller.refuse("for a barrier not aligned to 8 bytes", cudaErrorMisalignedAddress);
  }
  if (!runner.in_shared(barrier, 8)) caller.refuse("for a barrier outside shared memory");
  if (arrivals < 1 || arrivals >= 1 << 20) caller.refuse("with a count that is not 1 to 2^20 - 1");
  if (const Mbarrier* const old = runner.find_mbarrier(barrier)) {
    caller.refuse("for a barrier that was initialized before, at " + describe_site(old->site()) +
                  "; mbarrier_inval ends it");
  }
  runner.mbarriers().emplace_back(barrier, static_cast<unsigned>(arrivals), site);
}

void mbarrier_inval(std::uint64_t* object, Site site) {
  const Caller caller("mbarrier_inval", site, Architecture::sm_80);
  Mbarrier& barrier = caller.mbarrier(object);
  if (!barrier.waiting().empty() || barrier.has_loads() || barrier.has_copies() ||
      barrier.has_stores()) {
    caller.refuse("for a barrier that is in use: " + barrier.describe());
  }
  std::vector<Mbarrier>& all = caller.runner().mbarriers();
  all.erase(all.begin() + (&barrier - all.data()));
}

void mbarrier_arrive(std::uint64_t* object, Site site) {
  const Caller caller("mbarrier_arrive", site, Architecture::sm_80);
  Mbarrier& barrier = caller.mbarrier(object);
  if (!barrier.may_arrive()) {
    caller.refuse("once more than its phase expects: " + barrier.describe());
  }
  detail::tell_watcher([&](inspect::Watcher& watcher) { watcher.released(object); });
  barrier.arrive();
  caller.go_on(barrier);
}

void cp_async_mbarrier_arrive_noinc(std::uint64_t* object, Site site) {
  const Caller caller("cp_async_mbarrier_arrive_noinc", site, Architecture::sm_80);
  Mbarrier& barrier = caller.mbarrier(object);
  if (!barrier.may_arrive()) {
    caller.refuse("once more than its phase expects: " + barrier.describe());
  }
  detail::tell_watcher([&](inspect::Watcher& watcher) { watcher.released(object); });
  barrier.arrive_with(caller.runner().async_copies());
  caller.runner().keep_copies();
  caller.go_on(barrier);
}

void mbarrier_expect_tx(std::uint64_t* object, int bytes, Site site) {
  const Caller caller("mbarrier_expect_tx", site);
  Mbarrier& barrier = caller.mbarrier(object);
  if (!barrier.may_expect(bytes)) caller.refuse("with bytes beyond 2^20 - 1, or below 0");
  barrier.expect(bytes);
}

void mbarrier_arrive_expect_tx(std::uint64_t* object, int bytes, Site site) {
  mbarrier_expect_tx(object, bytes, site);
  mbarrier_arrive(object, site);
}

void mbarrier_wait(std::uint64_t* object, unsigned parity, Site site) {
  const Caller caller("mbarrier_wait", site);
  Mbarrier& barrier = caller.mbarrier(object);
  if (parity > 1) caller.refuse("with a parity that is not 0 or 1");
  const unsigned thread = caller.runner().thread();
  const auto acquired = [&, rank = caller.runner().cluster_rank()](inspect::Watcher& watcher) {
    watcher.acquired(object, rank, thread);
  };
  if (barrier.has_passed(parity)) return detail::tell_watcher(acquired);
  barrier.waiting().push_back(thread);
  if (barrier.try_complete(true)) {
    detail::tell_watcher(acquired);
    barrier.waiting().pop_back();  // no need to sleep
    caller.wake(caller.runner(), barrier);
    caller.go_on(barrier);
  } else {
    caller.go_on(barrier);
    caller.runner().sleep(BlockRunner::Sleep::mbarrier, site);
  }
}

void named_barrier_sync(int id, int threads, Site site) {
  const Caller caller("named_barrier_sync", site, Architecture::any);
  if (id < 1 || id > 15) caller.refuse("with a number that is not 1 to 15");
  if (threads <= 0 || threads % static_cast<int>(kLanes) != 0) {
    caller.refuse("for a number of threads that is not a multiple of 32");
  }
  BlockRunner& runner = caller.runner();
  BlockRunner::NamedBarrier& barrier = runner.named_barrier(static_cast<unsigned>(id));
  if (barrier.waiting.empty()) barrier.threads = static_cast<unsigned>(threads);
  if (barrier.threads != static_cast<unsigned>(threads)) {
    caller.refuse("for a number of threads that differs from that of the waiting threads");
  }
  barrier.waiting.push_back(runner.thread());
  detail::tell_watcher([&](inspect::Watcher& watcher) {
    watcher.released(&barrier);
    if (barrier.waiting.size() != barrier.threads) return;
    for (const unsigned thread : barrier.waiting)
      watcher.acquired(&barrier, runner.cluster_rank(), thread);
  });
  // The last one sleeps, too: all continue in the order of the settings.
  if (barrier.waiting.size() == barrier.threads) runner.wake(barrier.waiting);
  runner.sleep(BlockRunner::Sleep::named_barrier, site);
}

unsigned cluster_ctarank() {
  return BlockRunner::of_running_kernel("cluster_ctarank").cluster_rank();
}

unsigned cluster_nctarank() {
  return BlockRunner::of_running_kernel("cluster_nctarank").launch().cluster_blocks;
}

void barrier_cluster_arrive(Site site) {
  Caller("barrier_cluster_arrive", site).runner().cluster_arrive(true, site);
}

void barrier_cluster_arrive_relaxed(Site site) {
  Caller("barrier_cluster_arrive_relaxed", site).runner().cluster_arrive(false, site);
}

void barrier_cluster_wait(Site site) {
  Caller("barrier_cluster_wait", site).runner().cluster_wait(site);
}

unsigned mapa(const void* shared, unsigned rank, Site site) {
  const Caller caller("mapa", site);
  const unsigned blocks = caller.runner().launch().cluster_blocks;
  if (rank >= blocks) {
    caller.refuse("for block " + std::to_string(rank) + " of a cluster that has " +
                  std::to_string(blocks));
  }
  return shared_address(shared, site) | (rank + 1) << kRankAt;
}

void mbarrier_arrive_relaxed(unsigned address, Site site) {
  mbarrier_arrive_cluster(address, site);
}

void mbarrier_arrive_cluster(unsigned address, Site site) {
  const Caller caller("mbarrier_arrive_cluster", site);
  auto* const object = static_cast<std::uint64_t*>(caller.at(address, sizeof(std::uint64_t)));
  BlockRunner& block = caller.block_at(address);
  Mbarrier& barrier = caller.mbarrier(block, object);
  if (!barrier.may_arrive()) {
    caller.refuse("once more than its phase expects: " + barrier.describe());
  }
  detail::tell_watcher([&](inspect::Watcher& watcher) { watcher.released(object); });
  barrier.arrive();
  caller.go_on(block, barrier);
}

void st_async(unsigned address, const float4& value, unsigned barrier_address, Site site) {
  const Caller caller("st_async", site);
  if (address % sizeof value != 0) {
    caller.refuse("with an address not aligned to 16 bytes", cudaErrorMisalignedAddress);
  }
  AsyncStore store{static_cast<unsigned char*>(caller.at(address, sizeof value)),
                   std::bit_cast<std::array<unsigned char, sizeof value>>(value), site,
                   caller.runner().block_index(), caller.runner().thread()};
  BlockRunner& block = caller.block_at(address);
  auto* const object =
      static_cast<std::uint64_t*>(caller.at(barrier_address, sizeof(std::uint64_t)));
  if (&caller.block_at(barrier_address) != &block) {
    caller.refuse("with a barrier in a different block from the destination");
  }
  Mbarrier& barrier = caller.mbarrier(block, object);
  detail::tell_watcher([&](inspect::Watcher& watcher) {
    watcher.copy_issued(store.to, sizeof value, nullptr, sizeof value, site);
    watcher.released(object);
  });
  std::memset(store.to, 0xff, sizeof value);  // NaNs until the store completes
  barrier.issue(store);
  caller.go_on(block, barrier);
}

void prefetch_tensor_map(const CUtensorMap* map, Site site) {
  fields_of(Caller("prefetch_tensor_map", site), map, 0, false);
}

void cp_async_bulk(void* shared_to, const void* global_from, int bytes, std::uint64_t* barrier,
                   Site site) {
  const Caller caller("cp_async_bulk", site);
  if (bytes <= 0) caller.refuse("with a size of 0 bytes");
  TensorLoad load;
  load.bulk = static_cast<const unsigned char*>(global_from);
  load.bulk_bytes = static_cast<std::size_t>(bytes);
  load.to = static_cast<unsigned char*>(shared_to);
  load.site = site;
  load.thread = caller.runner().thread();
  issue(caller, load, barrier);
}

void detail_of_ptx::tma_load(void* shared_to, const CUtensorMap* map, std::uint64_t* barrier,
                             const int* at, unsigned rank, const Site& site) {
  const Caller caller("tma_load", site);
  TensorLoad load;
  load.map = fields_of(caller, map, rank, false);
  for (unsigned i = 0; i < rank; ++i) load.at[i] = at[i];
  load.to = static_cast<unsigned char*>(shared_to);
  load.site = site;
  load.thread = caller.runner().thread();
  issue(caller, load, barrier);
}

void detail_of_ptx::tma_load_multicast(void* shared_to, const CUtensorMap* map,
                                       std::uint64_t* object, const int* at, unsigned rank,
                                       unsigned blocks, const Site& site) {
  const Caller caller("tma_load_multicast", site);
  BlockRunner& own = caller.runner();
  TensorLoad load;
  load.map = fields_of(caller, map, rank, false);
  for (unsigned i = 0; i < rank; ++i) load.at[i] = at[i];
  load.to = static_cast<unsigned char*>(shared_to);
  load.site = site;
  load.thread = own.thread();
  if (blocks == 0) caller.refuse("with a mask that contains no block of the cluster");
  check(caller, load);
  // One instruction: first all checks, then all effects.
  for (unsigned left = blocks; left != 0; left &= left - 1)
    caller.block(static_cast<unsigned>(std::countr_zero(left)));
  bool is_first = true;
  for (unsigned left = blocks; left != 0; left &= left - 1) {
    BlockRunner& block = caller.block(static_cast<unsigned>(std::countr_zero(left)));
    auto* const to = static_cast<std::uint64_t*>(caller.in_block(object, block));
    Mbarrier& barrier = caller.mbarrier(block, to);
    load.to = static_cast<unsigned char*>(caller.in_block(shared_to, block));
    detail::tell_watcher([&](inspect::Watcher& watcher) {
      if (std::exchange(is_first, false)) {
        watcher.copy_issued(load.to, load.extent(), nullptr, load.extent(), site);
      } else {
        watcher.copy_shared(load.to, load.extent(), site);
      }
      watcher.released(to);
    });
    load.clear();
    barrier.issue(load);
    caller.go_on(block, barrier);
  }
}

void detail_of_ptx::tma_store(const CUtensorMap* map, const void* shared_from, const int* at,
                              unsigned rank, const Site& site) {
  const Caller caller("tma_store", site);
  TensorLoad box;
  box.map = fields_of(caller, map, rank, false);
  for (unsigned i = 0; i < rank; ++i) box.at[i] = at[i];
  box.to = static_cast<unsigned char*>(const_cast<void*>(shared_from));
  box.site = site;
  box.thread = caller.runner().thread();
  if (reinterpret_cast<std::uintptr_t>(shared_from) % 128 != 0) {
    caller.refuse("with a source not aligned to 128 bytes", cudaErrorIllegalInstruction);
  }
  if (!caller.runner().in_shared(shared_from, box.extent())) {
    caller.refuse("with a box that does not lie in the block's shared memory",
                  cudaErrorIllegalAddress);
  }
  detail::tell_watcher([&](inspect::Watcher& watcher) {
    watcher.read_by_unit(shared_from, box.extent(), site, true);
  });
  caller.runner().bulk_stores().issue(box);
}

void cp_async_bulk_commit_group(Site site) {
  Caller("cp_async_bulk_commit_group", site).runner().bulk_stores().commit();
}

void detail_of_ptx::cp_async_bulk_wait_group_read(unsigned groups, const Site& site) {
  Caller("cp_async_bulk_wait_group_read", site).runner().bulk_stores().wait_prior(groups);
}

void detail_of_ptx::tma_load_im2col(void* shared_to, const CUtensorMap* map, std::uint64_t* barrier,
                                    const int* at, const unsigned short* offset, unsigned rank,
                                    const Site& site) {
  const Caller caller("tma_load_im2col", site);
  TensorLoad load;
  load.map = fields_of(caller, map, rank, true);
  for (unsigned i = 0; i < rank; ++i) load.at[i] = at[i];
  for (unsigned i = 0; i + 2 < rank; ++i) load.offset[i] = offset[i];
  load.to = static_cast<unsigned char*>(shared_to);
  load.site = site;
  load.thread = caller.runner().thread();
  issue(caller, load, barrier);
}

namespace {

Warpgroup& warpgroup_of(const Caller& caller) {
  Warpgroup* const warpgroup = caller.runner().warpgroup();
  if (warpgroup == nullptr) {
    caller.refuse("in a warpgroup in which some threads do not exist");
  }
  return *warpgroup;
}

/// Ends the kernel if `defect` describes an error of the calling thread.
void check(const Caller& caller, const std::string& defect) {
  if (!defect.empty()) caller.runner().fail_thread(cudaErrorLaunchFailure, defect + ".");
}

}  // namespace

std::uint64_t wgmma_descriptor(const void* shared, int leading_bytes, int stride_bytes,
                               int swizzle_bytes, Site site) {
  const Caller caller("wgmma_descriptor", site, Architecture::sm_90a);
  const unsigned address = shared_address(shared, site);
  std::uint64_t mode = 0;
  switch (swizzle_bytes) {
    case 0: break;
    case 32: mode = 3; break;
    case 64: mode = 2; break;
    case 128: mode = 1; break;
    default: caller.refuse("with a swizzle that is not 0, 32, 64 or 128 bytes");
  }
  const auto field = [&](int bytes) {
    if (bytes < 0 || bytes % 16 != 0 || bytes >> 4 > 0x3fff) {
      caller.refuse("with an address or offset that is not a multiple of 16 bytes below 2^18");
    }
    return static_cast<std::uint64_t>(bytes >> 4);
  };
  return field(static_cast<int>(address)) | field(leading_bytes) << 16 | field(stride_bytes) << 32 |
         mode << 62;
}

void detail_of_ptx::setmaxnreg(const Site& site) {
  Caller("setmaxnreg", site, Architecture::sm_90a);
}

void wgmma_fence(Site site) {
  const Caller caller("wgmma_fence", site, Architecture::sm_90a);
  warpgroup_of(caller).fence(caller.runner().thread() % kWarpgroup);
}

void detail_of_ptx::wgmma(FactorType type, float* d, unsigned n, std::uint64_t a, std::uint64_t b,
                          bool column_major_a, bool row_major_b, bool accumulate,
                          const Site& site) {
  const Caller caller("wgmma", site, Architecture::sm_90a);
  check(caller,
        warpgroup_of(caller).issue(caller.runner().thread() % kWarpgroup, d,
                                   {type, n, a, b, row_major_b, accumulate, site, column_major_a}));
}

void detail_of_ptx::wgmma(FactorType type, float* d, unsigned n, const std::uint32_t* a,
                          std::uint64_t b, bool accumulate, const Site& site) {
  const Caller caller("wgmma", site, Architecture::sm_90a);
  check(caller, warpgroup_of(caller).issue(caller.runner().thread() % kWarpgroup, d,
                                           {type, n, 0, b, false, accumulate, site, false, a}));
}

void wgmma_commit_group(Site site) {
  const Caller caller("wgmma_commit_group", site, Architecture::sm_90a);
  check(caller, warpgroup_of(caller).commit(caller.runner().thread() % kWarpgroup));
}

void detail_of_ptx::wgmma_wait_group(unsigned groups, const Site& site) {
  const Caller caller("wgmma_wait_group", site, Architecture::sm_90a);
  BlockRunner& runner = caller.runner();
  Warpgroup& warpgroup = warpgroup_of(caller);
  bool complete = false;
  check(caller, warpgroup.arrive(runner.thread() % kWarpgroup, groups, site, &complete));
  runner.warpgroup_sleepers().push_back(runner.thread());
  if (complete) {
    check(caller, warpgroup.finish());
    detail::tell_watcher([&](inspect::Watcher& watcher) {
      const unsigned first = runner.thread() / kWarpgroup * (kWarpgroup / kLanes);
      for (unsigned warp = 0; warp < kWarpgroup / kLanes; ++warp)
        watcher.lanes_met(first + warp, detail::kFullWarp);
    });
    runner.wake(runner.warpgroup_sleepers());
  }
  runner.sleep(BlockRunner::Sleep::warpgroup, site);
}

}  // namespace cuda_on_cpu::ptx
