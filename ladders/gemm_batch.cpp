#include "ladders/gemm_batch.hpp"

#include "core/float8.hpp"
#include "core/matrix_copy.hpp"

namespace convladder {
namespace {

using Copy = void (*)(const MatrixCopy&);

/// Alignment of the arrays in a workspace, in bytes.
constexpr std::size_t kAlignment = 256;
std::size_t aligned(std::size_t bytes) {
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

/// An operand of the GEMM, [rows][columns] after transposition.
struct Factor {
  const char* name;
  std::int64_t rows, columns;
  bool transposed;

  std::int64_t size() const { return rows * columns; }
  /// FP8 rungs load aligned 32-bit words; all other rungs accept matrices at any element address.
  bool is_copied(const GemmBatchProblem& p) const {
    return transposed || (p.product.dtype == DType::f8 && p.batch > 1 && size() % 4 != 0);
  }
  std::size_t bytes_of_copy(const GemmBatchProblem& p) const {
    return is_copied(p) ? aligned(static_cast<std::size_t>(size()) * size_of(p.product.dtype)) : 0;
  }
};

Factor a_of(const GemmBatchProblem& p) { return {"a", p.product.M, p.product.K, p.transpose_a}; }
Factor b_of(const GemmBatchProblem& p) { return {"b", p.product.K, p.product.N, p.transpose_b}; }

/// Bytes of the rung's own workspace, of a copy of a and of a copy of b.
std::size_t workspace_bytes(const AnyImplementation& code, const GemmBatchProblem& p) {
  return aligned(code.workspace_bytes(p.product)) + a_of(p).bytes_of_copy(p) +
         b_of(p).bytes_of_copy(p);
}

/// The address of the first byte of an array of the run.
template <class Elements>
auto* bytes_of(const Arguments& arguments, const char* name, DType dtype) {
  Elements array;
  arguments.find(name, array);
  return with_any_float_type(dtype, [&]<class T>(T) {
    if constexpr (std::is_same_v<Elements, Input>) {
      return reinterpret_cast<const std::byte*>(array.template as<const T>());
    } else {
      return reinterpret_cast<std::byte*>(array.template as<T>());
    }
  });
}

void run(const AnyImplementation& code, Copy copy, const GemmBatchProblem& p,
         const Arguments& arguments) {
  const GemmProblem& product = p.product;
  const std::size_t element = size_of(product.dtype);
  const DType result = gemm_signature(product).outputs.front().dtype;
  auto* const copies =
      arguments.context().workspace_as<std::byte>() + aligned(code.workspace_bytes(product));
  const Factor a = a_of(p), b = b_of(p);
  const float* const bias = arguments.in_or_null<float>("bias");
  std::byte* const c = bytes_of<Output>(arguments, "c", result);
  /// Matrix i of an operand, copied if the rung needs a copy. @param to address of the copy
  const auto matrix = [&](const Factor& factor, int i, std::byte* to) -> void* {
    const std::byte* const from = bytes_of<Input>(arguments, factor.name, product.dtype) +
                                  static_cast<std::size_t>(i * factor.size()) * element;
    if (!factor.is_copied(p)) return const_cast<std::byte*>(from);
    copy({.from = from,
          .to = to,
          .rows = factor.transposed ? factor.columns : factor.rows,
          .columns = factor.transposed ? factor.rows : factor.columns,
          .element_bytes = element,
          .transposed = factor.transposed});
    return to;
  };
  for (int i = 0; i < p.count(); ++i) {
    std::vector<Arguments::Slot> inputs = {
        {"a", product.dtype, matrix(a, i, copies)},
        {"b", product.dtype, matrix(b, i, copies + a.bytes_of_copy(p))}};
    if (bias != nullptr) inputs.push_back({"bias", DType::f32, const_cast<float*>(bias)});
    const std::size_t offset = static_cast<std::size_t>(i) * static_cast<std::size_t>(product.M) *
                               static_cast<std::size_t>(product.N) * size_of(result);
    code.run(product,
             Arguments(std::move(inputs), {{"c", result, c + offset}}, arguments.context(), {}));
  }
}

/// Turns a function of GemmProblem into one that also accepts GemmBatchProblem.
template <class Result>
std::function<Result(const Problem&)> of_product(
    const std::function<Result(const Problem&)>& function) {
  return [=](const Problem& problem) {
    const auto* batch = std::get_if<GemmBatchProblem>(&problem);
    return function(batch != nullptr ? Problem(batch->product) : problem);
  };
}

AnyImplementation in_batches(const AnyImplementation& code, Copy copy) {
  AnyImplementation result = code;
  result.supports = of_product(code.supports);
  result.tile = of_product(code.tile);
  result.choice = of_product(code.choice);
  result.workspace_bytes = [=](const Problem& problem) {
    const auto* batch = std::get_if<GemmBatchProblem>(&problem);
    return batch != nullptr ? workspace_bytes(code, *batch) : code.workspace_bytes(problem);
  };
  result.run = [=](const Problem& problem, const Arguments& arguments) {
    const auto* batch = std::get_if<GemmBatchProblem>(&problem);
    if (batch == nullptr) return code.run(problem, arguments);
    in_stream(arguments.context().stream, [&] { run(code, copy, *batch, arguments); });
  };
  result.finish = [=](const Problem& problem, const Arguments& arguments) {
    if (!std::holds_alternative<GemmBatchProblem>(problem)) code.finish(problem, arguments);
  };
  return result;
}

}  // namespace

Rung in_batches(Rung rung) {
  const auto wrap = [&](Where where, Copy copy) {
    auto& code = rung.code[static_cast<std::size_t>(where)];
    if (code) code = in_batches(*code, copy);
  };
  wrap(Where::cpu, copy_matrix);
  wrap(Where::emulated, emulated::copy_matrix);
#ifdef CONVLADDER_HAVE_NVCC
  wrap(Where::gpu, gpu::copy_matrix);
#endif
  return rung;
}

}  // namespace convladder
