/// @file
/// @brief The microscope: counts and checks every load and store of unmodified kernels.
///
/// The kernels are compiled a second time with the compiler's instrumentation
/// (cuda_on_cpu_add_kernels(... INSPECT)) and linked with the library cuda_on_cpu_microscope. A
/// Microscope object observes them during its lifetime. Its counts are those of the kernel's
/// source: it does not model hoisting and spilling by a compiler, or hits in caches.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cuda_on_cpu/inspect.hpp>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace cuda_on_cpu::microscope {

/// The memory space of an access. A thread's local variables are not observed: on a GPU they are
/// registers, or local memory when registers are spilled.
enum class Space : std::uint8_t { global, shared, constant };
using inspect::Operation;

/// The names in reports: "global", "shared", "constant".
const char* name_of(Space space);
/// "load", "store", "atomic", "async".
const char* name_of(Operation operation);

/// Sums over requests. A request is one memory instruction that the lanes of a warp execute
/// together.
struct Counts {
  std::uint64_t requests = 0;
  std::uint64_t lanes = 0;          ///< active lanes
  std::uint64_t bytes = 0;          ///< requested bytes of all lanes
  std::uint64_t sectors = 0;        ///< distinct 32-byte sectors (global memory)
  std::uint64_t sectors_ideal = 0;  ///< the fewest sectors that the distinct bytes would occupy
  /// Wavefronts of shared memory: there are 32 banks of 4 bytes, each of which serves one word per
  /// wavefront. With 8 bytes per lane, 16 active lanes are served per wavefront; with 16 bytes, 8.
  std::uint64_t wavefronts = 0;
  std::uint64_t excess = 0;      ///< wavefronts beyond those without bank conflicts
  std::uint64_t contention = 0;  ///< atomics: the largest number of lanes at one address in a
                                 ///< request, summed
  /// Shared memory: requests and wavefronts that remain if adjacent accesses are merged as by a
  /// compiler (join_neighbours()). They are counted at the line of the first of the merged
  /// accesses.
  std::uint64_t joined_requests = 0;
  std::uint64_t joined_wavefronts = 0;
  std::uint64_t joined_excess = 0;

  Counts& operator+=(const Counts& other);
};

/// One request: the addresses of its lanes.
struct Sample {
  std::uint64_t block;
  unsigned warp;
  std::uint32_t lanes;                 ///< a mask
  std::array<std::uint64_t, 32> byte;  ///< of each lane: offset in the array, if it is known
  std::uint64_t array_begins;          ///< the address modulo 128
};

/// One line of a kernel's source and its accesses to one array.
struct Line {
  std::string file;  ///< path as given to the compiler
  unsigned line;
  std::string function;
  Space space;
  Operation operation;
  unsigned width;     ///< bytes per lane
  std::string array;  ///< empty: unknown
  Counts counts;
  std::vector<Sample> samples;  ///< the first requests
};

/// The launches of one kernel with one shape.
struct Kernel {
  std::string name;
  std::uint64_t launches;
  unsigned grid[3];
  unsigned block[3];
  std::size_t shared_bytes;  ///< dynamic
  std::uint64_t blocks_run;
  std::uint64_t blocks_counted;  ///< the blocks that were counted
  std::uint64_t barriers;        ///< barriers of a block's threads times the block's warps
  std::uint64_t grid_barriers;   ///< barriers of clusters, counted once per block
  std::uint64_t factor_bytes;    ///< bytes of shared memory that tensor cores read directly (wgmma)
  std::vector<Line> lines;       ///< sorted by file, line, space, operation, array

  /// The factor by which the counts are multiplied to represent all blocks.
  double blocks_per_counted() const {
    return blocks_counted == 0
               ? 0
               : static_cast<double>(blocks_run) / static_cast<double>(blocks_counted);
  }
};

/// A request of a block that is traced.
struct TracedRequest {
  unsigned interval;  ///< barriers that the block had passed
  unsigned warp;
  std::size_t line;                    ///< index in its kernel's `lines`
  std::uint32_t lanes;                 ///< a mask
  std::array<std::uint64_t, 32> byte;  ///< of each lane: offset in the array, if it is known
};

/// Asynchronous copies that a block has waited for.
struct TracedLanding {
  unsigned interval;  ///< barriers that the block had passed when the wait ended
  std::string array;  ///< of shared memory
  std::uint64_t byte;
  std::size_t bytes;
};

/// All requests of one block.
struct TracedBlock {
  std::size_t kernel;                   ///< index in the report
  std::uint64_t launch;                 ///< number among all launches, from 1 on
  std::uint64_t block;                  ///< linear index
  unsigned intervals;                   ///< barrier intervals: one more than the barriers passed
  std::vector<TracedRequest> requests;  ///< by interval, then by warp, then in the warp's order
  std::vector<TracedLanding> landings;
};

/// One of the two accesses of a race.
struct Place {
  std::string file;
  unsigned line;
  std::uint64_t block;  ///< linear index
  unsigned thread;      ///< linear index in its block
};

/// Two accesses by different threads to one location, at least one of them a write, without an
/// order between them.
struct Race {
  enum class Kind : std::uint8_t { raw, war, waw };  ///< read after write, and so on
  Kind kind;
  bool is_error;  ///< otherwise a note: the same value is written, or an atomic may order them
  Space space;
  std::string array;
  std::uint64_t element;  ///< index, in elements of the array or of the access
  Place first, second;
  std::string why;  ///< reason of a note, or an asynchronous copy; otherwise empty
};

/// "RAW", "WAR" or "WAW".
const char* name_of(Race::Kind kind);

/// A read of memory that was never written.
struct Unwritten {
  Place place;
  Space space;
  std::string array;
  std::uint64_t element;
};

/// The result of an observation.
struct Report {
  std::vector<Kernel> kernels;      ///< in the order of their first launch
  std::vector<TracedBlock> traces;  ///< if requested: one per counted block
  std::vector<Race> races;          ///< the first race of each pair of lines and array
  std::vector<Unwritten> unwritten;
  /// Loading lanes by global array, extrapolated from the counted blocks to all blocks.
  std::map<std::string, double> loads;
  std::map<std::string, std::uint64_t> footprint;  ///< distinct bytes accessed, by global array
  std::uint64_t blocks_run = 0, blocks_counted = 0;
  std::uint64_t events = 0;  ///< loads, stores and atomics of single threads
  bool overflowed = false;   ///< more than `most_events` events: counting stopped there
};

/// The options of an observation.
struct Options {
  /// The shared library that contains the instrumented kernels, as it was opened, for source lines
  /// and names. Empty: the program itself.
  std::string library = {};
  /// Accesses in functions that are called from this file are attributed to the calling line.
  /// Empty: each access is attributed to its own line.
  std::string source = {};
  /// Further library code: accesses in files whose paths contain one of these strings are
  /// attributed to their callers.
  std::vector<std::string> helpers = {};
  std::uint64_t blocks_a_launch = 0;  ///< number of counted blocks, evenly spread; 0: all
  std::uint64_t most_events = 20'000'000;
  bool trace = false;  ///< record each request of the counted blocks
  /// Reports progress: called when a launch of this many blocks starts, and when one of its blocks
  /// ends.
  std::function<void(const Kernel&, std::uint64_t)> launch_began = {};
  std::function<void()> block_ended = {};
};

class State;

/// Observes kernels from construction to destruction. One object at a time.
class Microscope {
 public:
  explicit Microscope(const Options& options);
  ~Microscope();
  Microscope(const Microscope&) = delete;
  Microscope& operator=(const Microscope&) = delete;

  /// Names a range of device memory in the report, an array with elements of this size.
  void name_array(const void* memory, std::size_t bytes, std::size_t element_bytes,
                  const std::string& name);
  /// The observations so far. Runs the tools addr2line and readelf of binutils to obtain lines and
  /// names.
  Report report();

 private:
  std::unique_ptr<State> state_;
};

}  // namespace cuda_on_cpu::microscope
