/// @file
/// @brief The state of the microscope while it observes; the hooks report each access to it.
#pragma once

#include <atomic>
#include <cstdint>
#include <cuda_on_cpu/microscope.hpp>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <source_location>
#include <tuple>
#include <utility>
#include <vector>

#include "call_tree.hpp"
#include "lanes.hpp"
#include "order.hpp"
#include "requests.hpp"
#include "shadow.hpp"
#include "source_lines.hpp"

struct dl_phdr_info;

namespace cuda_on_cpu::microscope {

/// A store that is not ordered after another store to the location: compares the values.
struct OpenStore {
  std::uintptr_t address;
  std::size_t bytes;
  unsigned char before[16];
  std::size_t race;  ///< in the list
};

/// The blocks of a cluster, or a single block.
struct ClusterView {
  ClusterView(unsigned threads, unsigned blocks) : order(threads, blocks) {}

  ClusterOrder order;
  /// Dynamic shared memory of the blocks that have started: begin, end.
  std::vector<std::pair<std::uintptr_t, std::uintptr_t>> shared;
  std::uint32_t birth = 0;  ///< number of the first block
};

/// A running block.
struct Block {
  struct Thread {
    Node call = 0;          ///< the current function
    int suspended = 0;      ///< in a function of the library, whose own accesses are ignored
    std::uintptr_t pc = 0;  ///< address of the basic block entered last
    std::vector<std::uintptr_t> callers;  ///< the corresponding basic blocks of the calling
                                          ///< functions
    std::uintptr_t left = 0;              ///< where the function that was just left reports it
    std::vector<Event> events;
  };
  Block(unsigned thread_count, std::uint64_t linear_index)
      : index(linear_index), threads(thread_count) {}

  ClusterOrder& order() { return cluster->order; }
  unsigned in_order(unsigned thread) const { return cluster->order.number(rank, thread); }

  std::uint64_t index;
  std::shared_ptr<ClusterView> cluster;
  unsigned rank = 0;         ///< in its cluster
  std::uint32_t number = 0;  ///< number among all blocks; a new one after a grid barrier
  std::uint32_t birth = 0;   ///< the first number of its cluster
  bool counted = true;
  std::uintptr_t shared_begin = 0, shared_end = 0;  ///< dynamic
  std::uintptr_t static_base = 0;                   ///< of the library's thread-local storage
  std::size_t kernel = 0;
  std::uint64_t meetings = 0;
  std::vector<Thread> threads;
  std::vector<OpenStore> open_stores;
  std::size_t trace = 0;  ///< index in the list, if blocks are traced
};

class State final : public inspect::Watcher {
 public:
  explicit State(const Options& options);
  ~State() override;

  void name_array(const void* memory, std::size_t bytes, std::size_t element_bytes,
                  const std::string& name);
  Report report();

  // --- Called by the hooks, from kernel code

  static State* active() { return active_.load(std::memory_order_relaxed); }
  /// The block of the calling OS thread, if its accesses are counted; otherwise null.
  static Block* running();
  static unsigned thread();
  void access(Block& block, Operation operation, std::uintptr_t address, std::size_t bytes,
              std::uintptr_t pc);
  void wrote(Block& block, std::uintptr_t address, std::size_t bytes);
  void called(Block& block, std::uintptr_t pc);
  void returned(Block& block, std::uintptr_t pc);
  static void entered(Block& block, std::uintptr_t pc);
  void atomic_begins(Block& block, std::uintptr_t address, std::size_t bytes, std::uintptr_t pc);
  static void atomic_ended(Block& block);

  // --- Watcher

  void launch_begins(const inspect::LaunchShape& launch) override;
  void block_begins(std::uint64_t index, unsigned threads,
                    const inspect::MemoryPlace& shared) override;
  void block_joins(const void* cluster, unsigned rank, unsigned blocks) override;
  void block_ended() override;
  void barrier_passed() override;
  void lanes_met(unsigned warp, unsigned lanes) override;
  void released(const void* object) override;
  void acquired(const void* object, unsigned rank, unsigned thread) override;
  void grid_barrier_passed() override;
  void touched(Operation operation, const void* address, std::size_t bytes,
               const std::source_location& where) override;
  void copy_issued(const void* to, std::size_t bytes, const void* from, std::size_t read,
                   const std::source_location& where) override;
  void copy_shared(const void* to, std::size_t bytes, const std::source_location& where) override;
  void read_by_unit(const void* from, std::size_t bytes, const std::source_location& where,
                    bool goes_on) override;
  void factors_given(std::size_t bytes) override;
  void unit_read_ended(const void* from, std::size_t bytes) override;
  void copy_landed(const void* to, std::size_t bytes) override;
  void allocated(const void* memory, std::size_t bytes) override;
  void freed(const void* memory) override;
  void host_wrote(const void* memory, std::size_t bytes) override;

 private:
  struct Array {
    std::string name;
    std::uintptr_t begin = 0;
    std::size_t bytes = 0;
    std::size_t element_bytes = 4;
    Space space = Space::global;
    std::uint64_t footprint = 0;  ///< the time at which it was freed
    bool has_names = false;       ///< an allocation that is described by named arrays
  };
  struct BlockInfo {
    std::uint64_t phase;  ///< launch and grid barrier: blocks of different phases are ordered
    std::uint64_t index;
    std::uint64_t cluster;  ///< number among all clusters
    unsigned rank;          ///< in it
    bool atomics = false;   ///< it has used part of it
  };
  struct LineKey {
    std::size_t kernel;
    Node place;
    Space space;
    Operation operation;
    unsigned width;
    std::size_t array;
    auto operator<=>(const LineKey&) const = default;
  };
  struct Access {
    Operation operation;
    Space space;
    std::uintptr_t address;
    std::size_t bytes;
    Node place;
    std::uintptr_t other_end = 0;  ///< as Event::other_end
    bool pending = false;          ///< a store that is not complete
    bool goes_on = false;          ///< a load that a tensor core has not completed
  };
  static constexpr std::size_t kNoArray = ~std::size_t{0};

  /// Empty for memory that is not observed: local variables of a thread, or memory of the program.
  std::optional<Space> space_of(Block& block, std::uintptr_t address) const;
  /// Calls `visit` for the library; false if it is not open.
  bool find_library(const std::function<void(const dl_phdr_info&)>& visit) const;
  std::size_t array_of(const Block& block, Space space, std::uintptr_t address);
  /// The array in `live_` or `named_` that contains this address; kNoArray if there is none.
  std::size_t array_in(const std::map<std::uintptr_t, std::size_t>& ranges,
                       std::uintptr_t address) const;
  /// An array's name, and the element at this address; neither for kNoArray.
  std::pair<std::string, std::uint64_t> element_at(std::size_t array, std::uintptr_t address) const;
  Node place_of(Block& block, unsigned thread, const std::source_location& where);
  void note(Block& block, unsigned thread, const Access& access);
  void begin_pages(const Block& block, std::uintptr_t begin, std::size_t bytes);
  void check_order(Block& block, unsigned thread, const Access& access);
  void race(Block& block, unsigned thread, const Access& access, std::uintptr_t address,
            const Stamp& other, Race::Kind kind, const char* why, bool is_error);
  void check_written(Block& block, unsigned thread, const Access& access);
  void settle(Block& block);
  void flush(Block& block);
  void count(const Block& block, unsigned warp, const WarpAccess& access);
  void count(const Block& block, unsigned warp, const Event& event, const Request& request);
  void count_joined(const Block& block, const SharedStep& first, const Request& request);
  SharedStep step_of(const Block& block, const WarpAccess& access);
  void trace_begins(Block& block);
  void trace_landing(Block& block, std::uintptr_t begin, std::size_t bytes);
  std::uint64_t touched_bytes(const Array& array);

  /// The innermost line of a location that is outside of this library.
  struct Resolved {
    std::string file;
    unsigned line = 0;
    std::string function;
  };
  std::vector<Resolved> resolve(const std::set<Node>& places) const;

  static std::atomic<State*> active_;

  /// The name of the library for binutils.
  std::string file() const {
    if (!options_.library.empty()) return options_.library;
    std::error_code none;  // if the program must not open files, lines come from another source
    return std::filesystem::read_symlink("/proc/self/exe", none).string();
  }

  Options options_;
  std::recursive_mutex mutex_;
  Variables variables_;
  std::uintptr_t library_begin_ = 0, library_end_ = 0;
  /// The address range of the library's variables, including `__constant__` variables. Read-only
  /// data are constants of the program, which a compiler encodes in instructions.
  std::vector<std::pair<std::uintptr_t, std::uintptr_t>> variables_memory_;
  CallTree calls_;
  std::map<std::pair<std::string, std::pair<unsigned, unsigned>>, std::size_t> where_numbers_;
  std::vector<std::source_location> wheres_;

  std::vector<Array> arrays_;
  std::map<std::uintptr_t, std::size_t> live_;   ///< allocations, by address
  std::map<std::uintptr_t, std::size_t> named_;  ///< arrays within them
  std::map<std::string, std::size_t> by_name_;   ///< of shared and constant memory
  std::uint64_t unnamed_ = 0;

  Shadow shadow_;
  std::vector<BlockInfo> blocks_;
  std::uint64_t clusters_ = 0;
  /// Clusters that not all blocks have joined yet.
  std::map<const void*, std::shared_ptr<ClusterView>> begun_clusters_;
  std::uint64_t phase_ = 0;
  std::uint64_t launch_blocks_ = 0;
  std::vector<Kernel> kernels_;
  std::size_t kernel_ = 0;
  struct Seen {
    Counts counts;
    std::vector<Sample> samples;
  };
  static constexpr std::size_t kSamples = 8;
  std::map<LineKey, Seen> counts_;

  struct FoundRace {
    Race race;
    Node first, second;
  };
  std::vector<FoundRace> races_;
  std::set<std::tuple<Race::Kind, Node, Node, std::size_t>> race_places_;
  struct FoundUnwritten {
    Unwritten read;
    Node place;
  };
  std::vector<FoundUnwritten> unwritten_;
  std::set<std::pair<Node, std::size_t>> unwritten_places_;
  struct Trace {
    TracedBlock block;  ///< without the lines of its requests
    std::vector<LineKey> lines;
  };
  std::vector<Trace> traces_;
  std::uint64_t events_ = 0;
  bool overflowed_ = false;
};

}  // namespace cuda_on_cpu::microscope
