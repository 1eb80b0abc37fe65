/// @file guarded_memory.hpp
/// @brief The memory of one run: each array is between guard bands and initially filled with
/// poison.
#pragma once

#include <algorithm>
#include <cstring>
#include <cuda_on_cpu/readable.hpp>
#include <list>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/device.hpp"
#include "oracle/guarded_run.hpp"
#include "oracle/memory_order.hpp"

#if defined(__SANITIZE_ADDRESS__)  // g++
#define CONVLADDER_ADDRESS_SANITIZER
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)  // clang++
#define CONVLADDER_ADDRESS_SANITIZER
#endif
#endif
#ifdef CONVLADDER_ADDRESS_SANITIZER
#include <sanitizer/asan_interface.h>
#endif

namespace convladder {

/// Bytes of each guard band; keeps the alignment of 256 bytes.
inline constexpr std::size_t kGuardBytes = 1024;

/// Bytes 0xa0 and 0x7f alternating, in blocks of this size, in which a device receives uploads. The
/// pattern is a NaN as float, fp16 and bf16; as float and bf16 it is a signalling NaN, which an
/// addition turns into another one, so that an addition to a guard band is detected. As an integer
/// it is positive and large, so that tests for negative numbers, such as a row of -1, do not catch
/// it: used as an index, it leads outside of memory.
inline const std::vector<unsigned char>& poison_bytes() {
  static const std::vector<unsigned char> bytes = [] {
    std::vector<unsigned char> pattern(std::size_t{1} << 20);
    for (std::size_t i = 0; i < pattern.size(); ++i) pattern[i] = i % 2 == 0 ? 0xa0 : 0x7f;
    return pattern;
  }();
  return bytes;
}

/// Arrays up to this size are copied together with their guard bands: a copy to or from cuda_on_cpu
/// opens and closes all its memory, which for small arrays takes most of the time.
inline constexpr std::size_t kTogether = std::size_t{1} << 20;

/// The offset of the array with this name from a 256-byte boundary, in bytes.
inline std::size_t offset_of(std::string_view name, const RunOptions& options,
                             std::size_t otherwise) {
  const auto own = options.offsets.find(name);
  return own == options.offsets.end() ? otherwise : own->second;
}

/// Tells AddressSanitizer to end a program that accesses these bytes, or no longer to do so.
/// Without AddressSanitizer it has no effect.
inline void set_forbidden([[maybe_unused]] const void* memory, [[maybe_unused]] std::size_t bytes,
                          [[maybe_unused]] bool forbidden) {
#ifdef CONVLADDER_ADDRESS_SANITIZER
  forbidden ? __asan_poison_memory_region(memory, bytes)
            : __asan_unpoison_memory_region(memory, bytes);
#endif
}

/// Device memory for one array, between two guard bands.
class GuardedBuffer {
 public:
  /// @param offset bytes from a 256-byte boundary to the array, if the options do not give it
  /// @param content initial content; null: poison
  GuardedBuffer(Device& device, std::string name, std::size_t bytes, const RunOptions& options,
                std::size_t offset, const Array* content = nullptr)
      : device_(&device), name_(std::move(name)), bytes_(bytes),
        before_(kGuardBytes + offset_of(name_, options, offset)), poison_(options.poison),
        base_(static_cast<std::byte*>(device.allocate(total()))) {
    if (total() <= kTogether && (content != nullptr || poison_)) {
      std::vector<unsigned char> all(total());
      const auto begin = poison_bytes().begin();
      std::copy_n(begin, before_, all.data());
      std::copy_n(begin, bytes_, all.data() + before_);
      std::copy_n(begin, kGuardBytes, all.data() + before_ + bytes_);
      if (content != nullptr && bytes_ != 0)
        std::memcpy(all.data() + before_, content->data(), bytes_);
      device_->upload(base_, all.data(), all.size());
      return;
    }
    fill_with_poison(base_, before_);
    fill_with_poison(data() + bytes_, kGuardBytes);
    content != nullptr ? upload(*content) : poison();
  }
  GuardedBuffer(const GuardedBuffer&) = delete;
  GuardedBuffer& operator=(const GuardedBuffer&) = delete;
  ~GuardedBuffer() {
    try {
      device_->release(base_);
    } catch (const DeviceError&) {
      // The failure that made the device unusable was already reported.
    }
  }

  /// The device address of the array.
  std::byte* data() const { return base_ + before_; }
  /// The array's name, for messages.
  const std::string& name() const { return name_; }

  /// Discards the content.
  void poison() {
    if (poison_) fill_with_poison(data(), bytes_);
  }
  /// Copies the array to the device.
  void upload(const Array& from) { device_->upload(data(), from.data(), bytes_); }

  /// Takes a snapshot of the memory, to which the following functions refer. (Large arrays are
  /// copied only on demand.)
  void look() {
    if (total() > kTogether) return;
    seen_.resize(total());
    device_->download(seen_.data(), base_, total());
  }
  /// Copies it back.
  void download(Array& to) const { copy_out(to.data(), before_, bytes_); }
  /// True if the device memory still holds exactly these bytes.
  bool holds(const Array& content) const {
    std::vector<std::byte> now(bytes_);
    copy_out(now.data(), before_, bytes_);
    return bytes_ == 0 || std::memcmp(now.data(), content.data(), bytes_) == 0;
  }
  /// See set_forbidden(). Writes to a guard band remain visible; reads of it that do not affect a
  /// result are detected only in this way. Asynchronous copies are checked in every build.
  void forbid_guards(bool forbidden) const {
    set_forbidden(base_, before_, forbidden);
    set_forbidden(data() + bytes_, kGuardBytes, forbidden);
    cuda_on_cpu::control::set_readable(forbidden ? data() : base_, forbidden ? bytes_ : total());
  }
  /// Empty, or the guard band that was overwritten.
  std::string broken_guard() const {
    if (!intact(0, before_)) return text("wrote before the beginning of ", name_);
    if (!intact(before_ + bytes_, kGuardBytes)) return text("wrote past the end of ", name_);
    return "";
  }

 private:
  /// Of the array and its guard bands.
  std::size_t total() const { return before_ + bytes_ + kGuardBytes; }
  /// Copies `bytes` bytes of the snapshot from `offset` on.
  void copy_out(std::byte* to, std::size_t offset, std::size_t bytes) const {
    if (seen_.empty()) {
      device_->download(to, base_ + offset, bytes);
    } else {
      std::copy_n(seen_.data() + offset, bytes, to);
    }
  }
  bool intact(std::size_t offset, std::size_t bytes) const {
    std::vector<std::byte> now(bytes);
    copy_out(now.data(), offset, bytes);
    return std::memcmp(now.data(), poison_bytes().data(), bytes) == 0;
  }
  void fill_with_poison(std::byte* memory, std::size_t bytes) {
    const std::vector<unsigned char>& poison = poison_bytes();
    for (std::size_t done = 0; done < bytes; done += poison.size()) {
      device_->upload(memory + done, poison.data(), std::min(poison.size(), bytes - done));
    }
  }

  Device* device_;
  std::string name_;
  std::size_t bytes_, before_;
  bool poison_;
  std::byte* base_;
  std::vector<std::byte> seen_;
};

/// All memory of one run.
class RunMemory {
 public:
  /// Allocates all arrays, and uploads the inputs.
  RunMemory(Device& device, const Signature& signature, const Arrays& inputs,
            std::size_t workspace_bytes, const RunOptions& options)
      : device_(&device), signature_(&signature), options_(options) {
    for (const ArraySpec& spec : signature.inputs) {
      const Array& array =
          stored_.emplace(spec.name, in_memory(inputs.at(spec.name), spec.order)).first->second;
      add(spec.name, spec.dtype, array.size_bytes(), &array);
      input_slots_.push_back({spec.name, spec.dtype, buffers_.back().data()});
    }
    for (const ArraySpec& spec : signature.outputs) {
      if (spec.dynamic) continue;
      add(spec.name, spec.dtype,
          static_cast<std::size_t>(element_count(spec.shape)) * size_of(spec.dtype),
          spec.initial.empty() ? nullptr : &stored_.at(spec.initial));
      output_slots_.push_back({spec.name, spec.dtype, buffers_.back().data()});
      shapes_[spec.name] = spec.shape;
    }
    // Aligned as required by Context::workspace.
    buffers_.emplace_back(*device_, "the workspace", workspace_bytes, options, std::size_t{0});
    workspace_ = buffers_.back().data();
    if (options.placed) options.placed("the workspace", workspace_, workspace_bytes, DType::f32);
  }

  /// Restores outputs and workspace to their state before a run, which is also the initial state.
  void reset() {
    if (!std::exchange(used_, true)) return;
    std::erase_if(buffers_, [&](const GuardedBuffer& buffer) { return created(buffer.name()); });
    for (GuardedBuffer& buffer : buffers_) {
      if (find_spec(signature_->inputs, buffer.name()) == nullptr) buffer.poison();
      const ArraySpec* output = find_spec(signature_->outputs, buffer.name());
      if (output != nullptr && !output->initial.empty()) buffer.upload(stored_.at(output->initial));
    }
  }

  /// The arguments for the rung.
  Arguments arguments() {
    return Arguments(input_slots_, output_slots_,
                     {.stream = options_.stream, .workspace = workspace_},
                     [this](const std::string& name, DType dtype, const Shape& shape) {
                       return create(name, dtype, shape);
                     });
  }

  /// Forbids accesses to the guard bands during its lifetime, if the options request it.
  class GuardsForbidden {
   public:
    /// `memory` must outlive it.
    explicit GuardsForbidden(RunMemory& memory) : memory_(memory) {
      memory_.forbid_guards(memory_.options_.forbid_guards);
    }
    GuardsForbidden(const GuardsForbidden&) = delete;
    GuardsForbidden& operator=(const GuardsForbidden&) = delete;
    ~GuardsForbidden() { memory_.forbid_guards(false); }

   private:
    RunMemory& memory_;
  };

  /// Empty, or the first forbidden effect of the run on memory.
  std::string damage() {
    for (GuardedBuffer& buffer : buffers_) {
      buffer.look();
      if (const std::string broken = buffer.broken_guard(); !broken.empty()) return broken;
      if (find_spec(signature_->inputs, buffer.name()) != nullptr &&
          !buffer.holds(stored_.at(buffer.name()))) {
        return text("changed its input ", buffer.name());
      }
    }
    for (const ArraySpec& spec : signature_->outputs) {
      if (!shapes_.contains(spec.name) && !spec.optional)
        return text("did not create its output ", spec.name);
    }
    return "";
  }

  /// The outputs of the run. @pre damage() was called
  Arrays outputs() const {
    Arrays outputs;
    for (const ArraySpec& spec : signature_->outputs) {
      const auto shape = shapes_.find(spec.name);
      if (shape == shapes_.end()) continue;
      Array array(spec.dtype, shape->second);
      const auto buffer =
          std::find_if(buffers_.begin(), buffers_.end(),
                       [&](const auto& candidate) { return candidate.name() == spec.name; });
      buffer->download(array);
      outputs.emplace(spec.name, from_memory(std::move(array), spec.order));
    }
    return outputs;
  }

 private:
  GuardedBuffer& add(const std::string& name, DType dtype, std::size_t bytes,
                     const Array* content = nullptr) {
    GuardedBuffer& buffer =
        buffers_.emplace_back(*device_, name, bytes, options_, options_.misalignment, content);
    if (options_.placed) options_.placed(name, buffer.data(), bytes, dtype);
    if (guards_forbidden_) buffer.forbid_guards(true);  // created by the run
    return buffer;
  }

  void forbid_guards(bool forbidden) {
    if (std::exchange(guards_forbidden_, forbidden) == forbidden) return;
    for (const GuardedBuffer& buffer : buffers_) buffer.forbid_guards(forbidden);
  }

  void* create(const std::string& name, DType dtype, const Shape& shape) {
    const ArraySpec* spec = find_spec(signature_->outputs, name);
    if (spec == nullptr || !spec->dynamic || spec->dtype != dtype) {
      throw std::logic_error("the ladder has no such output to create: " + name);
    }
    if (!shapes_.emplace(name, shape).second) throw std::logic_error("created twice: " + name);
    return add(name, dtype, static_cast<std::size_t>(element_count(shape)) * size_of(dtype)).data();
  }

  bool created(const std::string& name) {
    const ArraySpec* spec = find_spec(signature_->outputs, name);
    if (spec == nullptr || !spec->dynamic) return false;
    shapes_.erase(name);
    return true;
  }

  static const ArraySpec* find_spec(const std::vector<ArraySpec>& specs, const std::string& name) {
    const auto found = std::find_if(specs.begin(), specs.end(),
                                    [&](const ArraySpec& spec) { return spec.name == name; });
    return found == specs.end() ? nullptr : &*found;
  }

  Device* device_;
  const Signature* signature_;
  Arrays stored_;  // the inputs, in memory order
  RunOptions options_;
  std::list<GuardedBuffer> buffers_;
  std::vector<Arguments::Slot> input_slots_, output_slots_;
  std::map<std::string, Shape> shapes_;
  std::byte* workspace_ = nullptr;
  bool used_ = false;
  bool guards_forbidden_ = false;
};

}  // namespace convladder
