/// @file
/// @brief Interface for tools that watch a kernel's loads and stores (the microscope, hooks of
/// -fsanitize=thread): the running thread, the kind of memory at an address, and events beside the
/// kernel's own loads and stores. This header declares no CUDA names.
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

/// Whether kernel code runs on the calling OS thread; if so, `position` identifies the CUDA thread.
bool in_kernel(ThreadPosition* position);

/// The most bytes of stack that CUDA threads have used in blocks of the calling OS thread, in whole
/// pages; 0 if it ran none. On a GPU, arrays on the stack would be local memory, which is allocated
/// for every resident thread.
std::size_t deepest_stack();

/// The kinds of memory.
enum class MemorySpace { host, device, dynamic_shared, static_shared };

/// The memory at an address. `base` and `bytes` describe the allocation, block buffer or file range
/// around it; both are 0 for host memory, which includes `__constant__` variables and the threads'
/// local variables.
struct MemoryPlace {
  MemorySpace space;  ///< the kind
  const void* base;   ///< start address
  std::size_t bytes;  ///< size in bytes
};

/// Classifies `address` as seen from the calling OS thread.
MemoryPlace find_memory(const void* address);

/// The memory operation of an instruction.
enum class Operation : std::uint8_t {
  load,
  store,
  atomic,
  async,  ///< a copy that proceeds asynchronously until a thread waits for it
};

/// A launch that was accepted.
struct LaunchShape {
  std::string kernel;        ///< its demangled name, without parameters
  unsigned grid[3];          ///< blocks along x, y, z
  unsigned block[3];         ///< threads of a block
  std::size_t shared_bytes;  ///< dynamic shared memory of a block
};

/// Receives the events of the device. Calls come from the OS thread that executes the event; the
/// events of a block come from one OS thread. A kernel's own loads and stores are not reported here
/// but by the compiler's instrumentation. The default implementations are empty.
class Watcher {
 public:
  virtual ~Watcher();

  /// No block has started yet.
  virtual void launch_begins(const LaunchShape& launch);
  /// All blocks have ended, or the launch has failed.
  virtual void launch_ended();
  /// A block starts. @param shared its dynamic shared memory
  virtual void block_begins(std::uint64_t block, unsigned threads, const MemoryPlace& shared);
  /// The block that has just started on the calling OS thread belongs to a cluster; the other
  /// blocks of the cluster start before any thread of it runs. The blocks run alternately, and an
  /// operation of one may order or access the data of another.
  virtual void block_joins(const void* cluster, unsigned rank, unsigned blocks);
  /// The calling OS thread has completed a block.
  virtual void block_ended();

  // --- Events that order the accesses of a block's threads

  /// All threads of the block have reached a barrier and continue.
  virtual void barrier_passed();
  /// These lanes of a warp have met in a warp function and continue.
  virtual void lanes_met(unsigned warp, unsigned lanes);
  /// The calling thread arrives at an object (an mbarrier, a named barrier), or issues a copy that
  /// will arrive there.
  virtual void released(const void* object);
  /// A thread has waited for such an object and continues: a thread of the calling OS thread's
  /// block, or of another block of its cluster. @param rank of the block in its cluster, or 0
  virtual void acquired(const void* object, unsigned rank, unsigned thread);
  /// All blocks of the launch have reached the grid's barrier; reported once per block.
  virtual void grid_barrier_passed();

  // --- Memory

  /// A memory operation of the calling thread that a function of this library performs.
  virtual void touched(Operation operation, const void* address, std::size_t bytes,
                       const std::source_location& where);
  /// The calling thread issues an asynchronous copy; its destination must not be read before the
  /// copy has completed. @param bytes written @param from null if the source is reported by
  /// read_by_unit()
  /// @param read bytes of the source that are read; the remaining ones are zeros
  virtual void copy_issued(const void* to, std::size_t bytes, const void* from, std::size_t read,
                           const std::source_location& where);
  /// The copy that was just issued also writes there, in another block of the cluster.
  virtual void copy_shared(const void* to, std::size_t bytes, const std::source_location& where);
  /// TMA or a tensor core reads memory for the calling thread.
  /// @param goes_on whether the read lasts until unit_read_ended()
  virtual void read_by_unit(const void* from, std::size_t bytes, const std::source_location& where,
                            bool goes_on);
  /// A tensor core was given operands in shared memory of this size; reported in addition to
  /// read_by_unit().
  virtual void factors_given(std::size_t bytes);
  /// A thread has waited for the unit that reads this memory.
  virtual void unit_read_ended(const void* from, std::size_t bytes);
  /// A thread has waited for an asynchronous copy to this memory.
  virtual void copy_landed(const void* to, std::size_t bytes);
  /// New device memory.
  virtual void allocated(const void* memory, std::size_t bytes);
  /// The allocation that starts here was freed.
  virtual void freed(const void* memory);
  /// A copy or a fill requested by the host.
  virtual void host_wrote(const void* memory, std::size_t bytes);
};

/// Sets the watcher; null (the default) disables it. Must not be called while a kernel runs.
void set_watcher(Watcher* watcher);

}  // namespace cuda_on_cpu::inspect
