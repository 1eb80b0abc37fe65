/// @file
/// @brief Asynchronous copies from global to shared memory, as in <cuda_pipeline.h>.
///
/// The destination of a copy is filled with NaN bytes when the copy is issued; the data are copied
/// when the issuing thread waits for them. A missing or too weak wait therefore shows as NaNs.
#pragma once

#include <cuda_runtime.h>

namespace cuda_on_cpu {

/// Copies 4, 8 or 16 bytes between addresses aligned to that size; the last `zfill` bytes become
/// zero and are not read from the source.
void __pipeline_memcpy_async(void* shared_to, const void* global_from, std::size_t size_and_align,
                             std::size_t zfill = 0, detail::Site site = detail::Site::current());
/// Closes this thread's batch of copies.
void __pipeline_commit();
/// Completes the copies of all committed batches of this thread except the last `batches`.
void __pipeline_wait_prior(std::size_t batches);

}  // namespace cuda_on_cpu
