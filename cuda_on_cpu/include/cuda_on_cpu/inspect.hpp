/// @file
/// @brief For tools that watch a kernel's loads and stores (the microscope, hooks of
/// -fsanitize=thread): who is running, what memory is this, what happens beside the kernel's own
/// loads and stores? Brings in no CUDA names.
#pragma once

#include <cstddef>
#include <cstdint>
#include <source_location>
#include <string>

namespace cuda_on_cpu::inspect {

/// The CUDA thread that runs on the calling OS thread.
struct ThreadPosition {
  std::uint64_t block;                           ///< linear index of the block in the grid
  unsigned thread;                               ///< linear index of the thread in its block
  unsigned interval;                             ///< barriers that the block has passed
  unsigned warp() const { return thread / 32; }  ///< its warp in the block
  unsigned lane() const { return thread % 32; }  ///< its lane in the warp
};

/// Whether a kernel's code runs on the calling OS thread; if so, `position` says which thread's.
bool in_kernel(ThreadPosition* position);

/// Bytes of stack that threads of kernels have used, at most, in blocks that the calling OS thread
/// ran, in whole pages; 0 if it ran none. On a GPU, arrays on it would be local memory, which is
/// set aside for every thread that can be resident.
std::size_t deepest_stack();

/// The kinds of memory that an address can be.
enum class MemorySpace { host, device, dynamic_shared, static_shared };

/// What an address is. `base` and `bytes` describe the allocation, block buffer or file range
/// around it; both are 0 for host memory, which includes `__constant__` variables and the threads'
/// own locals.
struct MemoryPlace {
  MemorySpace space;  ///< the kind
  const void* base;   ///< where it begins
  std::size_t bytes;  ///< how long it is
};

/// Looks `address` up as the calling OS thread sees it.
MemoryPlace find_memory(const void* address);

/// What an instruction does with memory.
enum class Operation : std::uint8_t {
  load,
  store,
  atomic,
  async,  ///< a copy that goes on while the thread does, until somebody waits for it
};

/// A launch that was not refused.
struct LaunchShape {
  std::string kernel;        ///< its demangled name, without parameters
  unsigned grid[3];          ///< blocks along x, y, z
  unsigned block[3];         ///< threads of a block
  std::size_t shared_bytes;  ///< dynamic shared memory of a block
};

/// Who is told what happens on the device. Calls come from the OS thread that does it; of a block,
/// from one. A kernel's own loads and stores are not told: the compiler's instrumentation does
/// that. Every function has an empty body here.
class Watcher {
 public:
  virtual ~Watcher();

  /// Its first block has not begun.
  virtual void launch_begins(const LaunchShape& launch);
  /// All its blocks have ended, or it has failed.
  virtual void launch_ended();
  /// @param shared its dynamic shared memory
  virtual void block_begins(std::uint64_t block, unsigned threads, const MemoryPlace& shared);
  /// The block that has just begun on the calling OS thread is one of a cluster; those of others of
  /// it begin before any thread of it runs. They take turns, and what one does may order or touch
  /// what belongs to another.
  virtual void block_joins(const void* cluster, unsigned rank, unsigned blocks);
  /// The calling OS thread has run a block to its end.
  virtual void block_ended();

  // --- What orders the accesses of a block's threads

  /// All threads of the block were at a barrier, and go on.
  virtual void barrier_passed();
  /// These lanes of a warp have met in a warp function, and go on.
  virtual void lanes_met(unsigned warp, unsigned lanes);
  /// The calling thread arrives at an object (an mbarrier, a named barrier), or issues a copy that
  /// will.
  virtual void released(const void* object);
  /// A thread has waited for such an object and goes on: one of the calling OS thread's block, or
  /// of another block of its cluster. @param rank of the block in its cluster, or 0
  virtual void acquired(const void* object, unsigned rank, unsigned thread);
  /// All blocks of the launch were at the grid's barrier; told once a block.
  virtual void grid_barrier_passed();

  // --- Memory

  /// An instruction of the calling thread, which a function of this library stands for.
  virtual void touched(Operation operation, const void* address, std::size_t bytes,
                       const std::source_location& where);
  /// The calling thread issues an asynchronous copy; its destination is not to be read before it
  /// has landed. @param bytes written @param from null if the source is told by read_by_unit()
  /// @param read bytes that are read of it; zeros take the place of the others
  virtual void copy_issued(const void* to, std::size_t bytes, const void* from, std::size_t read,
                           const std::source_location& where);
  /// The copy that was just issued also goes there, in another block of the cluster.
  virtual void copy_shared(const void* to, std::size_t bytes, const std::source_location& where);
  /// TMA or a tensor core reads memory for the calling thread.
  /// @param goes_on until unit_read_ended()
  virtual void read_by_unit(const void* from, std::size_t bytes, const std::source_location& where,
                            bool goes_on);
  /// A tensor core was given factors in shared memory, so many bytes: told beside read_by_unit().
  virtual void factors_given(std::size_t bytes);
  /// Somebody has waited for what reads here.
  virtual void unit_read_ended(const void* from, std::size_t bytes);
  /// Somebody has waited for an asynchronous copy to here.
  virtual void copy_landed(const void* to, std::size_t bytes);
  /// Fresh device memory.
  virtual void allocated(const void* memory, std::size_t bytes);
  /// What began here is gone.
  virtual void freed(const void* memory);
  /// A copy or a fill that the host has asked for.
  virtual void host_wrote(const void* memory, std::size_t bytes);
};

/// Who is told from now on; null: nobody, as at the start. Not while a kernel runs.
void set_watcher(Watcher* watcher);

}  // namespace cuda_on_cpu::inspect
