#include "shared_buffer.hpp"

#include <sys/mman.h>

#include <cstring>
#include <new>

#include "model_device.hpp"
#include "page.hpp"
#include "sanitizer.hpp"

namespace cuda_on_cpu {
namespace {

constexpr std::size_t kGuard = 1024;
constexpr std::size_t kCapacity = model::kMostSharedPerBlock;
static_assert(kCapacity % kPage + kGuard <= kPage, "the last page has room for the guard band");
constexpr std::size_t kUsablePages = (kCapacity + kGuard + kPage - 1) / kPage * kPage;
constexpr std::size_t kMapped = kPage + kUsablePages + kPage;
/// Different from the fill, so that NaNs written to it are detected.
constexpr unsigned char kGuardByte = 0xFA;

}  // namespace

SharedBuffer::SharedBuffer() : bytes_(0) {
  void* const mapping = mmap(nullptr, kMapped, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapping == MAP_FAILED) throw std::bad_alloc();
  mapping_ = static_cast<unsigned char*>(mapping);
  data_ = mapping_ + kPage;
  mprotect(data_, kUsablePages, PROT_READ | PROT_WRITE);
  fill_guard();
}

SharedBuffer::~SharedBuffer() {
  sanitizer::unpoison(data_, kUsablePages);
  munmap(mapping_, kMapped);
}

void SharedBuffer::fill_guard() {
  sanitizer::unpoison(data_, kUsablePages);
  std::memset(data_ + bytes_, kGuardByte, kGuard);
  sanitizer::poison(data_ + bytes_, kUsablePages - bytes_);
}

void SharedBuffer::prepare(std::size_t bytes, unsigned char fill) {
  if (bytes != bytes_) {
    bytes_ = bytes;
    fill_guard();
  }
  std::memset(data_, fill, bytes);
}

std::string SharedBuffer::check_guard() {
  if (sanitizer::kAddress) return {};  // the band is poisoned, so an access was already reported
  const unsigned char* const band = data_ + bytes_;
  // All bytes are equal if each equals its successor and the first is correct.
  if (band[0] == kGuardByte && std::memcmp(band, band + 1, kGuard - 1) == 0) return {};
  std::size_t offset = 0;
  while (band[offset] == kGuardByte) ++offset;
  fill_guard();
  return "wrote beyond its " + std::to_string(bytes_) +
         " bytes of dynamic shared memory, first at offset " + std::to_string(bytes_ + offset) +
         ".";
}

}  // namespace cuda_on_cpu
