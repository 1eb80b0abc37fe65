#include "oracle/runner.hpp"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <cuda_on_cpu/control.hpp>
#include <list>
#include <new>
#include <string_view>
#include <utility>
#include <vector>

#include "oracle/canonical.hpp"
#include "oracle/memory_order.hpp"

namespace convladder {
namespace {

constexpr std::size_t kGuardBytes = 1024;  // keeps the 256-byte alignment

/// Bytes 0xc0 and 0xff in turn: a NaN as float and as half, negative as an integer, but not -1,
/// which means something in a table of rows. In pieces of this, as a device takes uploads.
const std::vector<unsigned char>& poison_bytes() {
  static const std::vector<unsigned char> bytes = [] {
    std::vector<unsigned char> pattern(std::size_t{1} << 20);
    for (std::size_t i = 0; i < pattern.size(); ++i) pattern[i] = i % 2 == 0 ? 0xc0 : 0xff;
    return pattern;
  }();
  return bytes;
}

/// Arrays up to this size are copied with their guard bands at once: a copy to or from cuda_on_cpu
/// unlocks and locks all its memory, which for small arrays takes longer than anything else.
constexpr std::size_t kTogether = std::size_t{1} << 20;

/// Between a 256-byte boundary and the array with this name, in bytes.
std::size_t offset_of(std::string_view name, const RunOptions& options, std::size_t otherwise) {
  const auto own = options.offsets.find(name);
  return own == options.offsets.end() ? otherwise : own->second;
}

/// Device memory for one array, between two guard bands.
class GuardedBuffer {
 public:
  /// @param offset bytes between a 256-byte boundary and the array, if the options do not name it
  /// @param content what it starts as; null: poison
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
      // The failure that broke the device was reported where it happened.
    }
  }

  std::byte* data() const { return base_ + before_; }
  const std::string& name() const { return name_; }

  /// Forgets the content.
  void poison() {
    if (poison_) fill_with_poison(data(), bytes_);
  }
  void upload(const Array& from) { device_->upload(data(), from.data(), bytes_); }

  /// Looks at the memory as it is now; what follows says what it saw. (Of large arrays, it is
  /// fetched only when it is asked for.)
  void look() {
    if (total() > kTogether) return;
    seen_.resize(total());
    device_->download(seen_.data(), base_, total());
  }
  void download(Array& to) const { copy_out(to.data(), before_, bytes_); }
  bool holds(const Array& content) const {
    std::vector<std::byte> now(bytes_);
    copy_out(now.data(), before_, bytes_);
    return bytes_ == 0 || std::memcmp(now.data(), content.data(), bytes_) == 0;
  }
  /// Empty, or which guard band was overwritten.
  std::string broken_guard() const {
    if (!intact(0, before_)) return text("wrote before the beginning of ", name_);
    if (!intact(before_ + bytes_, kGuardBytes)) return text("wrote past the end of ", name_);
    return "";
  }

 private:
  /// Of the array and its guard bands.
  std::size_t total() const { return before_ + bytes_ + kGuardBytes; }
  /// Copies `bytes` bytes from `offset` on, as they were seen.
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
class Memory {
 public:
  Memory(Device& device, const Signature& signature, const Arrays& inputs,
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
    // Aligned, as Context::workspace promises.
    buffers_.emplace_back(*device_, "the workspace", workspace_bytes, options, std::size_t{0});
    workspace_ = buffers_.back().data();
    if (options.placed) options.placed("the workspace", workspace_, workspace_bytes, DType::f32);
  }

  /// Outputs and workspace as they are before a run; at first they are.
  void reset() {
    if (!std::exchange(used_, true)) return;
    std::erase_if(buffers_, [&](const GuardedBuffer& buffer) { return created(buffer.name()); });
    for (GuardedBuffer& buffer : buffers_) {
      if (find_spec(signature_->inputs, buffer.name()) == nullptr) buffer.poison();
      const ArraySpec* output = find_spec(signature_->outputs, buffer.name());
      if (output != nullptr && !output->initial.empty()) buffer.upload(stored_.at(output->initial));
    }
  }

  Arguments arguments() {
    return Arguments(input_slots_, output_slots_,
                     {.stream = options_.stream, .workspace = workspace_},
                     [this](const std::string& name, DType dtype, const Shape& shape) {
                       return create(name, dtype, shape);
                     });
  }

  /// Empty, or the first thing that the run must not have done to memory.
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

  /// What the run wrote. @pre damage() was called
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
    return buffer;
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
  Arrays stored_;  // the inputs, as they lie in memory
  RunOptions options_;
  std::list<GuardedBuffer> buffers_;
  std::vector<Arguments::Slot> input_slots_, output_slots_;
  std::map<std::string, Shape> shapes_;
  std::byte* workspace_ = nullptr;
  bool used_ = false;
};

/// The device memory of cuda_on_cpu that is in use, to find out who leaves some behind. It knows of
/// what cudaMalloc and its kin gave; other places do not tell.
class AllocationsBefore {
 public:
  /// @param alone nobody else allocates meanwhile; without, all is taken for somebody else's
  AllocationsBefore(Where where, bool alone) : emulated_(where == Where::emulated && alone) {
    if (!emulated_) return;
    const auto alive = cuda_on_cpu::control::live_allocations();
    if (!alive.empty()) last_ = alive.back().number;
  }
  /// Empty, or what has been allocated since then and is still there.
  std::string left_behind() const {
    if (!emulated_) return "";
    std::size_t count = 0, bytes = 0;
    for (const auto& allocation : cuda_on_cpu::control::live_allocations()) {
      if (allocation.number <= last_) continue;
      ++count;
      bytes += allocation.bytes;
    }
    return count == 0 ? ""
                      : text("left device memory behind: ", bytes, " bytes in ", count,
                             count == 1 ? " allocation" : " allocations");
  }

 private:
  bool emulated_;
  std::uint64_t last_ = 0;
};

double array_bytes(const Signature& signature) {
  double bytes = 0;
  for (const auto* specs : {&signature.inputs, &signature.outputs}) {
    for (const ArraySpec& spec : *specs) {
      bytes +=
          static_cast<double>(element_count(spec.shape)) * static_cast<double>(size_of(spec.dtype));
    }
  }
  return bytes;
}

/// @throws BadInput if the place has less memory than the problem's arrays take.
void require_memory(const Device& device, const Signature& signature) {
  const double bytes = array_bytes(signature);
  const auto free = static_cast<double>(device.free_bytes());
  require(bytes <= free, "memory", gigabytes(bytes),
          text("the problem needs more than the ", gigabytes(free), " that are free (",
               name_of(device.where()), ")"));
}

/// @throws OutOfMemory if the arrays leave less memory than the workspace takes.
void require_workspace(const Device& device, const Signature& signature,
                       std::size_t workspace_bytes) {
  const auto workspace = static_cast<double>(workspace_bytes);
  const double free = static_cast<double>(device.free_bytes()) - array_bytes(signature);
  if (workspace <= free) return;
  throw OutOfMemory(text("needs a workspace of ", gigabytes(workspace), ", more than the ",
                         gigabytes(free), " that the arrays leave free"));
}

Outcome differs(std::string reason) {
  return {.status = Status::differs, .reason = std::move(reason)};
}

/// Whether the rung refuses inputs in these words.
Outcome refused(const Ladder& ladder, const Problem& problem, const Arrays& inputs,
                const std::string& words, const AnyImplementation& code, Where where,
                const RunOptions& options) {
  try {
    run_guarded(ladder, problem, inputs, code, where, options);
  } catch (const OutOfMemory& error) {
    return {.status = Status::declined, .reason = error.reason};
  } catch (const DeviceError& error) {
    return differs(error.what());
  } catch (const BadInput& refusal) {
    if (std::string_view(refusal.what()).starts_with(words)) return {.status = Status::agrees};
    return differs(text("refuses its inputs with '", refusal.what(), "', and not '", words, "'"));
  }
  return differs(text("takes inputs that it must refuse: ", words));
}

}  // namespace

RungRun run_guarded(const Ladder& ladder, const Problem& problem, const Arrays& inputs,
                    const AnyImplementation& code, Where where, const RunOptions& options) {
  Device& device = *device_at(where);
  const Signature signature = ladder.signature(problem);
  const std::size_t workspace_bytes = code.workspace_bytes(problem);
  require_memory(device, signature);
  require_workspace(device, signature, workspace_bytes);
  RungRun result;
  const AllocationsBefore before(where, options.alone);
  try {
    // Around the run alone, a host that touches device memory is caught.
    std::optional<cuda_on_cpu::control::KeepMemoryOpen> open(std::in_place);
    Memory memory(device, signature, inputs, workspace_bytes, options);
    const Arguments arguments = memory.arguments();
    for (int run = 0; run <= options.warm_up_runs; ++run) {
      memory.reset();
      open.reset();
      device.synchronize();
      const auto start = std::chrono::steady_clock::now();
      try {
        code.run(problem, arguments);
      } catch (const std::bad_alloc&) {
        throw OutOfMemory("asks for more memory, while it runs, than is free");
      }
      device.synchronize();
      code.finish(problem, arguments);
      const std::chrono::duration<double, std::milli> time =
          std::chrono::steady_clock::now() - start;
      result.milliseconds = time.count();
      open.emplace();
    }
    result.damage = memory.damage();
    if (result.damage.empty()) result.outputs = memory.outputs();
  } catch (const std::bad_alloc&) {
    throw BadInput(text("memory: not enough of it (", name_of(where), ") for ", describe(problem)));
  } catch (const BadInput& refusal) {
    if (const std::string left = before.left_behind(); !left.empty())
      throw DeviceError(text(left, ", as it refused its inputs: ", refusal.what()));
    throw;
  }
  if (result.damage.empty()) result.damage = before.left_behind();
  return result;
}

Comparison::Comparison(const Ladder& ladder, const Problem& problem, Data data, std::uint64_t seed,
                       Arrays given)
    : Comparison(ladder, problem, data,
                 make_inputs(ladder.signature(problem), data, seed,
                             longest_sum(ladder.name, problem), std::move(given))) {}

Comparison::Comparison(const Ladder& ladder, const Problem& problem, Data data, Arrays inputs)
    : ladder_(&ladder), problem_(problem), data_(data), inputs_(std::move(inputs)),
      expected_(reference(ladder.name, problem, inputs_)) {}

Outcome Comparison::run(const Rung& rung, Where where, const RunOptions& options) const {
  const auto& code = rung.code_at(where);
  Device* device = device_at(where);
  if (!code || device == nullptr) {
    return {.status = Status::skipped,
            .reason = where == Where::gpu && rung.is_cuda() ? why_no_gpu()
                                                            : "this rung does not run there"};
  }
  if (const Declined declined = code->supports(problem_)) {
    return {.status = Status::declined, .reason = *declined};
  }
  if (const auto* book = std::get_if<RulebookProblem>(&problem_); book && options.spoilt) {
    const auto& [kind, count, seed] = *options.spoilt;
    BadSites bad = bad_sites(*book, inputs_.at("coords"), kind, count, seed);
    if (!bad.refusal.empty()) {
      Arrays inputs = inputs_;
      inputs.insert_or_assign("coords", std::move(bad.coords));
      return refused(*ladder_, problem_, inputs, bad.refusal, *code, where, options);
    }
  }
  Outcome outcome;
  try {
    RungRun run = run_guarded(*ladder_, problem_, inputs_, *code, where, options);
    if (!run.damage.empty()) return differs(std::move(run.damage));
    outcome.outputs = std::move(run.outputs);
    outcome.milliseconds = run.milliseconds;
  } catch (const OutOfMemory& error) {
    return {.status = Status::declined, .reason = error.reason};
  } catch (const DeviceError& error) {
    return differs(error.what());
  }

  outcome.ran = true;
  outcome.status = Status::agrees;
  outcome.exact = true;
  const Arrays found = canonical(problem_, outcome.outputs);
  for (const Expected& expected : expected_) {
    const auto array = found.find(expected.spec.name);
    if (array == found.end()) continue;  // an optional one
    const Verdict verdict = judge(expected, array->second, data_, problem_, code->tile(problem_));
    outcome.exact = outcome.exact && verdict.exact;
    outcome.max_error = std::max(outcome.max_error, verdict.max_error);
    if (!verdict.agrees && outcome.status == Status::agrees) {
      outcome.status = Status::differs;
      outcome.reason = verdict.difference;
    }
  }
  return outcome;
}

}  // namespace convladder
