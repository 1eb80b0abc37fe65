#include <algorithm>
#include <cmath>
#include <iterator>

#include "benchmarks/gpu/contest_memory.hpp"
#include "benchmarks/gpu/kernels.hpp"
#include "core/cuda/launch.hpp"
#include "core/half.hpp"

namespace convladder::benchmarks {
namespace {

std::size_t bytes_of(const ArraySpec& spec) {
  return static_cast<std::size_t>(element_count(spec.shape)) * size_of(spec.dtype);
}

/// Elements as numbers, exactly.
std::vector<double> numbers_of(const Array& array) {
  if (array.dtype() == DType::i32) {
    const auto integers = array.as<std::int32_t>();
    return {integers.begin(), integers.end()};
  }
  const Array widened = rounded_to(array, DType::f32);
  const auto floats = widened.as<float>();
  return {floats.begin(), floats.end()};
}

}  // namespace

ContestMemory::ContestMemory(const Contest& contest, int copies) : contest_(&contest) {
  for (const WholeOutput& whole : contest.wholes) {
    Buffer& buffer = right_.emplace_back(whole.right.size_bytes());
    gpu::check(cudaMemcpy(buffer.data(), whole.right.data(), whole.right.size_bytes(),
                          cudaMemcpyHostToDevice));
  }
  for (int copy = 0; copy < copies; ++copy) {
    Copy& arrays = copies_.emplace_back();
    for (const ArraySpec& spec : contest.signature.inputs) {
      const Array& array = contest.inputs.at(spec.name);
      Buffer& buffer = arrays.buffers.emplace_back(array.size_bytes());
      if (copy == 0) {
        gpu::check(cudaMemcpy(buffer.data(), array.data(), buffer.bytes(), cudaMemcpyHostToDevice));
      } else {
        gpu::check(cudaMemcpy(buffer.data(), copies_.front().inputs[arrays.inputs.size()].data,
                              buffer.bytes(), cudaMemcpyDeviceToDevice));
      }
      arrays.inputs.push_back({spec.name, spec.dtype, buffer.data()});
    }
    for (const ArraySpec& spec : contest.signature.outputs) {
      if (spec.dynamic) continue;
      Buffer& buffer = arrays.buffers.emplace_back(bytes_of(spec));
      arrays.outputs.push_back({spec.name, spec.dtype, buffer.data()});
    }
  }
  gpu::check(cudaDeviceSynchronize());
}

bool ContestMemory::has_created() const {
  const auto& outputs = contest_->signature.outputs;
  return std::any_of(outputs.begin(), outputs.end(),
                     [](const ArraySpec& spec) { return spec.dynamic; });
}

Arguments ContestMemory::arguments(int copy, void* workspace, CreatedOutputs* created) {
  Copy& arrays = copies_[static_cast<std::size_t>(copy)];
  if (created != nullptr) created->clear();
  return Arguments(arrays.inputs, arrays.outputs, {.workspace = workspace},
                   [&arrays, created](const std::string& name, DType dtype, const Shape& shape) {
                     const std::size_t bytes =
                         static_cast<std::size_t>(element_count(shape)) * size_of(dtype);
                     auto& made = arrays.made[{name, bytes}];
                     if (made == nullptr) made = std::make_unique<Buffer>(bytes);
                     if (created != nullptr) (*created)[name] = {shape, made->data()};
                     return made->data();
                   });
}

void ContestMemory::poison() const {
  for (const Copy& copy : copies_) {
    for (std::size_t i = 0; i < copy.outputs.size(); ++i) {
      gpu::check(cudaMemsetAsync(copy.outputs[i].data, 0xff, bytes_of(output(i)), rung_stream()));
    }
    for (const auto& [name_and_size, buffer] : copy.made)
      gpu::check(cudaMemsetAsync(buffer->data(), 0x7f, buffer->bytes(), rung_stream()));
  }
}

std::string ContestMemory::wrong(int copies, const std::vector<Samples>& right,
                                 double tolerance_factor) const {
  for (int copy = 0; copy < copies; ++copy) {
    for (std::size_t i = 0; i < copies_[static_cast<std::size_t>(copy)].outputs.size(); ++i) {
      const std::string what = wrong_output(copy, i, right, tolerance_factor);
      if (!what.empty()) return what;
    }
  }
  return "";
}

std::string ContestMemory::wrong(const std::vector<CreatedOutputs>& created) const {
  for (std::size_t copy = 0; copy < created.size(); ++copy) {
    bool canonical = true;
    for (std::size_t i = 0; i < contest_->wholes.size(); ++i) {
      const WholeOutput& whole = contest_->wholes[i];
      const auto made = created[copy].find(whole.spec.name);
      if (made == created[copy].end()) {
        if (whole.spec.optional) continue;
        return "did not create its output " + whole.spec.name;
      }
      if (made->second.shape != whole.spec.shape) {
        return text(whole.spec.name, " has shape ", to_string(made->second.shape), ", expected ",
                    to_string(whole.spec.shape));
      }
      canonical = canonical && different_words(made->second.data, i) == 0;
    }
    if (canonical || (copy != 0 && copy + 1 != created.size())) continue;
    const std::string what = contest_->difference(downloaded(created[copy]));
    if (!what.empty()) return what;
  }
  return "";
}

unsigned long long ContestMemory::different_words(const void* found, std::size_t whole) const {
  const Array& right = contest_->wholes[whole].right;
  return counted([&](unsigned long long* count) {
    launch_count_different(found,
                           std::next(right_.begin(), static_cast<std::ptrdiff_t>(whole))->data(),
                           right.size(), count);
  });
}

std::map<std::string, Array, std::less<>> ContestMemory::downloaded(
    const CreatedOutputs& created) const {
  std::map<std::string, Array, std::less<>> outputs;
  for (const auto& [name, made] : created) {
    const auto spec = std::ranges::find(contest_->signature.outputs, name, &ArraySpec::name);
    Array array(spec->dtype, made.shape);
    gpu::check(cudaMemcpy(array.data(), made.data, array.size_bytes(), cudaMemcpyDeviceToHost));
    outputs.emplace(name, std::move(array));
  }
  return outputs;
}

unsigned long long ContestMemory::counted(const std::function<void(unsigned long long*)>& launch) {
  const Buffer counter(sizeof(unsigned long long));
  unsigned long long count = 0;
  gpu::check(cudaMemsetAsync(counter.data(), 0, counter.bytes(), rung_stream()));
  launch(static_cast<unsigned long long*>(counter.data()));
  wait();
  gpu::check(cudaMemcpy(&count, counter.data(), sizeof count, cudaMemcpyDeviceToHost));
  return count;
}

const ArraySpec& ContestMemory::output(std::size_t i) const {
  std::vector<const ArraySpec*> specs;
  for (const ArraySpec& spec : contest_->signature.outputs) {
    if (!spec.dynamic) specs.push_back(&spec);
  }
  return *specs[i];
}

std::string ContestMemory::wrong_output(int copy, std::size_t i, const std::vector<Samples>& right,
                                        double tolerance_factor) const {
  const Arguments::Slot& slot = copies_[static_cast<std::size_t>(copy)].outputs[i];
  const ArraySpec& spec = output(i);
  const std::size_t size = size_of(slot.dtype);
  const unsigned long long count = counted([&](unsigned long long* unwritten) {
    launch_count_unwritten(slot.data, size, element_count(spec.shape), unwritten);
  });
  if (count != 0) return text(slot.name, ": ", count, " elements were not written, or NaN");
  for (const Samples& samples : right) {
    if (samples.output != slot.name) continue;
    const auto n = static_cast<std::int64_t>(samples.places.size());
    const Buffer places(samples.places.size() * sizeof(std::int64_t));
    const Buffer found(samples.places.size() * size);
    gpu::check(
        cudaMemcpy(places.data(), samples.places.data(), places.bytes(), cudaMemcpyHostToDevice));
    launch_gather(slot.data, size, static_cast<const std::int64_t*>(places.data()), n,
                  found.data());
    wait();
    Array gathered(slot.dtype, {n});
    gpu::check(
        cudaMemcpy(gathered.data(), found.data(), gathered.size_bytes(), cudaMemcpyDeviceToHost));
    const std::vector<double> values = numbers_of(gathered);
    for (std::size_t k = 0; k < values.size(); ++k) {
      const double value = values[k];
      // Written positively and negated, so that NaN fails.
      if (!(std::abs(value - samples.values[k]) <= tolerance_factor * samples.tolerances[k])) {
        return text(slot.name, "[", samples.places[k], "]: expected ", samples.values[k],
                    ", found ", value, " (allowed ", tolerance_factor * samples.tolerances[k], ")");
      }
    }
  }
  return "";
}

}  // namespace convladder::benchmarks
