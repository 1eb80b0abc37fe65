/// @file
/// @brief The microscope: every load and store of unmodified kernels, counted and checked.
///
/// Kernels are compiled once more, with the compiler's instrumentation
/// (cuda_on_cpu_add_kernels(... INSPECT)), and linked with the library cuda_on_cpu_microscope.
/// While a Microscope is alive, it sees what they do. Its numbers are those of the kernel as it is
/// written: what a compiler hoists or spills, and what caches hold, it does not know.
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

/// Where an access goes. A thread's own variables are not looked at: on a GPU they are registers,
/// or local memory where the compiler runs out of them.
enum class Space : std::uint8_t { global, shared, constant };
using inspect::Operation;

/// As in reports: "global", "shared", "constant".
const char* name_of(Space space);
/// "load", "store", "atomic", "async".
const char* name_of(Operation operation);

/// Sums over requests. A request is what the lanes of a warp that execute an instruction together
/// ask of memory.
struct Counts {
  std::uint64_t requests = 0;
  std::uint64_t lanes = 0;          ///< active ones
  std::uint64_t bytes = 0;          ///< asked for, by all lanes
  std::uint64_t sectors = 0;        ///< distinct sectors of 32 bytes (global memory)
  std::uint64_t sectors_ideal = 0;  ///< as many as the distinct bytes would fill
  /// Turns that the banks need (shared memory): 32 banks of 4 bytes, each of which gives one word a
  /// turn. Of 8 bytes a lane, 16 active lanes are served at a time; of 16 bytes, 8.
  std::uint64_t wavefronts = 0;
  std::uint64_t excess = 0;      ///< wavefronts beyond those without bank conflicts
  std::uint64_t contention = 0;  ///< of atomics: the most lanes of a request at one address, summed
  /// Of shared memory, what is left if neighbours are joined as a compiler does
  /// (join_neighbours()), and its wavefronts. They stand beside the first of the accesses that were
  /// joined.
  std::uint64_t joined_requests = 0;
  std::uint64_t joined_wavefronts = 0;
  std::uint64_t joined_excess = 0;

  Counts& operator+=(const Counts& other);
};

/// One request: where its lanes go.
struct Sample {
  std::uint64_t block;
  unsigned warp;
  std::uint32_t lanes;                 ///< a mask
  std::array<std::uint64_t, 32> byte;  ///< of each lane: into the array, if it is known
  std::uint64_t array_begins;          ///< its address's remainder by 128
};

/// One line of a kernel's source and what it does with one array.
struct Line {
  std::string file;  ///< as the compiler was given it
  unsigned line;
  std::string function;
  Space space;
  Operation operation;
  unsigned width;     ///< bytes a lane
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
  std::uint64_t blocks_counted;  ///< those that the counts are of
  std::uint64_t barriers;        ///< that a block's threads have passed, times the block's warps
  std::uint64_t grid_barriers;   ///< that its blocks have passed, each of them counted
  std::uint64_t factor_bytes;    ///< that tensor cores read of shared memory by themselves (wgmma)
  std::vector<Line> lines;       ///< by file, line, space, operation, array

  /// What counts are multiplied by to stand for all blocks.
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
  std::size_t line;                    ///< in its kernel's `lines`
  std::uint32_t lanes;                 ///< a mask
  std::array<std::uint64_t, 32> byte;  ///< of each lane: into the array, if it is known
};

/// Asynchronous copies that a block has waited for.
struct TracedLanding {
  unsigned interval;  ///< barriers that the block had passed when it had waited
  std::string array;  ///< of shared memory
  std::uint64_t byte;
  std::size_t bytes;
};

/// All that one block did.
struct TracedBlock {
  std::size_t kernel;                   ///< in the report
  std::uint64_t launch;                 ///< among all launches, from 1 on
  std::uint64_t block;                  ///< linear index
  unsigned intervals;                   ///< between its barriers: one more than it has passed
  std::vector<TracedRequest> requests;  ///< by interval, then by warp, then as the warp made them
  std::vector<TracedLanding> landings;
};

/// One of the two accesses of a race.
struct Place {
  std::string file;
  unsigned line;
  std::uint64_t block;  ///< linear index
  unsigned thread;      ///< linear index in its block
};

/// Two threads at one place, one of them writing, and nothing that orders them.
struct Race {
  enum class Kind : std::uint8_t { raw, war, waw };  ///< read after write, and so on
  Kind kind;
  bool is_error;  ///< else a note: the same value is written, or an atomic may order them
  Space space;
  std::string array;
  std::uint64_t element;  ///< index, in elements of the array or of the access
  Place first, second;
  std::string why;  ///< of a note, or of an asynchronous copy; else empty
};

/// "RAW", "WAR" or "WAW".
const char* name_of(Race::Kind kind);

/// A read of memory that nobody wrote.
struct Unwritten {
  Place place;
  Space space;
  std::string array;
  std::uint64_t element;
};

/// What was seen.
struct Report {
  std::vector<Kernel> kernels;      ///< in the order of their first launch
  std::vector<TracedBlock> traces;  ///< if asked for: of each block that was counted
  std::vector<Race> races;          ///< the first of each pair of lines and array
  std::vector<Unwritten> unwritten;
  /// Lanes that loaded, by global array: by all blocks, as far as those that were counted tell.
  std::map<std::string, double> loads;
  std::map<std::string, std::uint64_t> footprint;  ///< distinct bytes touched, by global array
  std::uint64_t blocks_run = 0, blocks_counted = 0;
  std::uint64_t events = 0;  ///< loads, stores and atomics of single threads
  bool overflowed = false;   ///< more events than `most_events`: counting ended there
};

/// What to watch.
struct Options {
  /// The shared library that holds the instrumented kernels, as it was opened, for its lines and
  /// names. Empty: the program itself.
  std::string library = {};
  /// What is done in functions that this file calls counts as done in the line that calls them.
  /// Empty: each access is its own line's.
  std::string source = {};
  /// As if they were parts of the library: lines of files whose paths contain one of these are
  /// their callers'.
  std::vector<std::string> helpers = {};
  std::uint64_t blocks_a_launch = 0;  ///< counted ones, spread evenly; 0: all
  std::uint64_t most_events = 20'000'000;
  bool trace = false;  ///< keep each request of the blocks that are counted
  /// How far it is: told when a launch begins, of so many blocks, and when one of them has ended.
  std::function<void(const Kernel&, std::uint64_t)> launch_began = {};
  std::function<void()> block_ended = {};
};

class State;

/// Watches from its construction to its end. One at a time.
class Microscope {
 public:
  explicit Microscope(const Options& options);
  ~Microscope();
  Microscope(const Microscope&) = delete;
  Microscope& operator=(const Microscope&) = delete;

  /// What the report calls these bytes of device memory, an array of such elements.
  void name_array(const void* memory, std::size_t bytes, std::size_t element_bytes,
                  const std::string& name);
  /// What was seen so far. Asks the tools addr2line and readelf of binutils for lines and names.
  Report report();

 private:
  std::unique_ptr<State> state_;
};

}  // namespace cuda_on_cpu::microscope
