/// @file cudnn_operation.hpp
/// @brief A convolution, or one of its gradients, as cuDNN's graph interface describes it.
#pragma once

#include <cudnn.h>
#if __has_include(<cudnn_backend.h>)  // cuDNN 8; later ones have it all in cudnn.h
#include <cudnn_backend.h>
#endif

#include <array>
#include <cstdint>
#include <utility>
#include <vector>

#include "benchmarks/gpu/cudnn.hpp"
#include "core/conv2d_problem.hpp"

namespace convladder::benchmarks {

/// One of cuDNN's opaque descriptors. The type of an attribute's elements is told twice, once to
/// the compiler.
class Descriptor {
 public:
  explicit Descriptor(cudnnBackendDescriptorType_t type) {
    check(cudnnBackendCreateDescriptor(type, &raw_));
  }
  Descriptor(Descriptor&& other) noexcept : raw_(std::exchange(other.raw_, nullptr)) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  Descriptor& operator=(Descriptor&&) = delete;
  ~Descriptor() {
    if (raw_ != nullptr) cudnnBackendDestroyDescriptor(raw_);
  }

  cudnnBackendDescriptor_t raw() const { return raw_; }

  template <class T>
  void set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, const T& value) {
    check(cudnnBackendSetAttribute(raw_, name, type, 1, &value));
  }
  template <class T>
  void set_all(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
               const std::vector<T>& values) {
    check(cudnnBackendSetAttribute(raw_, name, type, static_cast<std::int64_t>(values.size()),
                                   values.data()));
  }
  void set(cudnnBackendAttributeName_t name, const Descriptor& other) {
    set(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, other.raw_);
  }
  void finish() { check(cudnnBackendFinalize(raw_)); }

  /// At most `most` values. Empty where there are none.
  template <class T>
  std::vector<T> get(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
                     std::int64_t most) const {
    std::vector<T> values(static_cast<std::size_t>(most));
    std::int64_t count = 0;
    check(cudnnBackendGetAttribute(raw_, name, type, most, &count, values.data()));
    values.resize(static_cast<std::size_t>(std::min(count, most)));
    return values;
  }
  /// Fills `others`, made before; the first of them are valid. @returns how many
  std::size_t get(cudnnBackendAttributeName_t name, const std::vector<Descriptor>& others) const {
    std::vector<cudnnBackendDescriptor_t> raws;
    for (const Descriptor& other : others) raws.push_back(other.raw_);
    std::int64_t count = 0;
    const auto most = static_cast<std::int64_t>(raws.size());
    check(cudnnBackendGetAttribute(raw_, name, CUDNN_TYPE_BACKEND_DESCRIPTOR, most, &count,
                                   raws.data()));
    return static_cast<std::size_t>(std::min(count, most));
  }

 private:
  cudnnBackendDescriptor_t raw_ = nullptr;
};

/// So many, as yet without attributes.
inline std::vector<Descriptor> descriptors(cudnnBackendDescriptorType_t type, std::int64_t count) {
  std::vector<Descriptor> made;
  for (std::int64_t i = 0; i < count; ++i) made.emplace_back(type);
  return made;
}

/// By which an operation and the pointers of a run agree on the arrays.
enum Id : std::int64_t { kX = 1, kW, kY };

/// cuDNN's name for a type.
inline cudnnDataType_t type_of(DType dtype) {
  return dtype == DType::f16    ? CUDNN_DATA_HALF
         : dtype == DType::bf16 ? CUDNN_DATA_BFLOAT16
                                : CUDNN_DATA_FLOAT;
}

/// An array [d0][d1][d2][d3], or in the order d0, d2, d3, d1.
inline Descriptor tensor(Id id, DType dtype, std::int64_t d0, std::int64_t d1, std::int64_t d2,
                         std::int64_t d3, bool nhwc) {
  Descriptor made(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
  made.set(CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, std::int64_t{id});
  made.set(CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, type_of(dtype));
  made.set(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, std::int64_t{16});
  made.set_all(CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, std::vector{d0, d1, d2, d3});
  made.set_all(CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64,
               nhwc ? std::vector{d1 * d2 * d3, std::int64_t{1}, d3 * d1, d1}
                    : std::vector{d1 * d2 * d3, d2 * d3, d3, std::int64_t{1}});
  made.finish();
  return made;
}

/// What differs between a convolution and its two gradients.
struct Direction {
  cudnnBackendDescriptorType_t operation;
  cudnnBackendAttributeName_t alpha, beta, convolution, x, w, y;
};

inline constexpr Direction kForward = {CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
                                       CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA,
                                       CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA,
                                       CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
                                       CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X,
                                       CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
                                       CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y};
inline constexpr Direction kInputGradient = {
    CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
    CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA,
    CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA,
    CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
    CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX,
    CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
    CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY};
inline constexpr Direction kWeightGradient = {
    CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
    CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA,
    CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA,
    CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
    CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
    CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
    CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY};

/// The graph of a single operation, and all that it refers to. A gradient of the weights has the
/// type of x: cuDNN's fast engines of 16 bits write no other.
struct OneOperation {
  OneOperation(const Conv2dProblem& p, bool nhwc, const Direction& direction)
      : x(tensor(kX, p.dtype, p.N, p.C, p.H, p.W, nhwc)),
        w(tensor(kW, p.dtype, p.K, p.C / p.groups, p.R, p.S, nhwc)),
        y(tensor(kY, p.dtype, p.N, p.K, p.P, p.Q, nhwc)), operation(direction.operation) {
    using Axes = std::vector<std::int64_t>;
    convolution.set(CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, CUDNN_DATA_FLOAT);
    convolution.set(CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE,
                    CUDNN_CROSS_CORRELATION);
    convolution.set(CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, CUDNN_TYPE_INT64, std::int64_t{2});
    convolution.set_all(CUDNN_ATTR_CONVOLUTION_DILATIONS, CUDNN_TYPE_INT64,
                        Axes{p.dilation.h, p.dilation.w});
    convolution.set_all(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, CUDNN_TYPE_INT64,
                        Axes{p.stride.h, p.stride.w});
    convolution.set_all(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, CUDNN_TYPE_INT64,
                        Axes{p.pad.top, p.pad.left});
    convolution.set_all(CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, CUDNN_TYPE_INT64,
                        Axes{p.pad.bottom, p.pad.right});
    convolution.finish();
    operation.set(direction.convolution, convolution);
    operation.set(direction.x, x);
    operation.set(direction.w, w);
    operation.set(direction.y, y);
    operation.set(direction.alpha, CUDNN_TYPE_FLOAT, 1.0f);
    operation.set(direction.beta, CUDNN_TYPE_FLOAT, 0.0f);
    operation.finish();
    graph.set(CUDNN_ATTR_OPERATIONGRAPH_OPS, operation);
    graph.set(CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, cudnn_handle());
    graph.finish();
  }

  Descriptor x, w, y;
  Descriptor convolution{CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR};
  Descriptor operation;
  Descriptor graph{CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR};
};

}  // namespace convladder::benchmarks
