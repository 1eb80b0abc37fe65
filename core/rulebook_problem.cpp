#include "core/rulebook_problem.hpp"

#include <algorithm>
#include <cstdlib>
#include <limits>

#include "core/array.hpp"
#include "core/output_extent.hpp"
#include "core/padding_after.hpp"

namespace convladder {
namespace {

constexpr std::int64_t kMaxInt = std::numeric_limits<int>::max();

std::string per_axis(const RulebookProblem& p, const PerAxis& values, const char* separator) {
  return joined(std::vector<int>(values.value, values.value + p.ndim), separator);
}

/// "3" where all axes agree, else "3,1,1".
std::string short_text(const RulebookProblem& p, const PerAxis& values) {
  for (int axis = 1; axis < p.ndim; ++axis) {
    if (values[axis] != values[0]) return per_axis(p, values, ",");
  }
  return text(values[0]);
}

/// The extent of the output sites along an axis, or BadInput.
int checked_extent(const RulebookProblem& p, int axis) {
  const std::int64_t size = p.shape[axis], pad = p.pad[axis], stride = p.stride[axis];
  const std::int64_t window = window_extent(p.kernel[axis], p.dilation[axis]);
  const std::string where = text("along axis ", axis);
  if (p.mode == SparseMode::transposed) {
    const std::int64_t extent = (size - 1) * stride - 2 * pad + window + p.out_padding[axis];
    require(extent >= 1, "pad", pad, text("leaves no outputs ", where, ": extent ", extent));
    require(extent <= kMaxInt, "shape", size,
            text("the output extent ", where, " must be less than 2^31, it is ", extent));
    return static_cast<int>(extent);
  }
  const std::int64_t extent =
      output_extent(size, pad, pad + p.out_padding[axis], p.kernel[axis], stride, p.dilation[axis]);
  require(extent >= 1, "shape", size,
          text("the kernel does not fit ", where, ": with the padding ",
               size + 2 * pad + p.out_padding[axis], ", less than its extent ", window));
  require(extent <= kMaxInt, "pad", pad,
          text("the output extent ", where, " must be less than 2^31, it is ", extent));
  return static_cast<int>(extent);
}

/// The upper limit of --out-padding.
int most_out_padding(const RulebookProblem& p, int axis) {
  return p.mode == SparseMode::transposed ? std::max(p.stride[axis], p.dilation[axis]) - 1 : 0;
}

std::string rule_of_out_padding(const RulebookProblem& p, int axis) {
  return p.mode == SparseMode::transposed
             ? text("must be at least 0 and less than the larger of stride and dilation, ",
                    most_out_padding(p, axis) + 1)
             : "is for mode transposed";
}

/// A problem's padding in the user's terms.
struct Paddings {
  bool differ = false;  ///< after is not pad.
  PerAxis after, out_padding;
};

/// The inverse of with_padding_after(): with equal paddings if possible.
Paddings paddings_of(const RulebookProblem& p) {
  Paddings pads;
  for (int axis = 0; axis < p.ndim; ++axis) {
    const int more = p.out_padding[axis];
    pads.out_padding[axis] = std::clamp(more, 0, most_out_padding(p, axis));
    const std::int64_t less =
        std::int64_t{pads.out_padding[axis]} - more;  // relative to out_padding
    const std::int64_t after = p.pad[axis] + (p.mode == SparseMode::transposed ? less : -less);
    pads.after[axis] = static_cast<int>(std::min(after, kMaxInt));
    pads.differ = pads.differ || less != 0;
  }
  return pads;
}

}  // namespace

RulebookProblem with_padding_after(RulebookProblem p, const PerAxis& after) {
  for (int axis = 0; axis < p.ndim; ++axis) {
    require(p.pad[axis] >= 0, "pad", p.pad[axis], "must be at least 0");
    require(after[axis] >= 0, "pad", after[axis], "must be at least 0");
    if (p.stride[axis] < 1 || p.dilation[axis] < 1) continue;  // validated() rejects them
    require(p.out_padding[axis] >= 0 && p.out_padding[axis] <= most_out_padding(p, axis),
            "out-padding", p.out_padding[axis], rule_of_out_padding(p, axis));
    const std::int64_t more = std::int64_t{after[axis]} - p.pad[axis];
    const std::int64_t sum =
        p.out_padding[axis] + (p.mode == SparseMode::transposed ? -more : more);
    require(std::abs(sum) <= kMaxInt, "pad", p.pad[axis],
            "and the padding at the end differ by 2^31 or more");
    p.out_padding[axis] = static_cast<int>(sum);
  }
  return p;
}

RulebookProblem validated(RulebookProblem p) {
  require(p.ndim >= 1 && p.ndim <= kMaxAxes, "shape", text(p.ndim, " axes"), "must be 1 to 4 axes");
  require(p.batch >= 1, "batch", p.batch, "must be at least 1");
  require(p.sites >= 0, "sites", p.sites, "must be at least 0");
  const bool subm = p.mode == SparseMode::subm;
  for (int axis = 0; axis < p.ndim; ++axis) {
    require(p.shape[axis] >= 1, "shape", p.shape[axis], "must be at least 1");
    require(p.kernel[axis] >= 1, "kernel", p.kernel[axis], "must be at least 1");
    require(p.stride[axis] >= 1, "stride", p.stride[axis], "must be at least 1");
    require(p.dilation[axis] >= 1, "dilation", p.dilation[axis], "must be at least 1");
    require(p.pad[axis] >= 0, "pad", p.pad[axis], "must be at least 0");
    require(!subm || p.kernel[axis] % 2 == 1, "kernel", p.kernel[axis],
            "must be odd in mode subm: an even kernel has no tap at the site itself");
    require(!subm || p.stride[axis] == 1, "stride", p.stride[axis],
            "must be 1 in mode subm, whose outputs are the inputs' sites");
    // With the difference of both paddings, see with_padding_after().
    const int more = p.out_padding[axis];
    if (p.mode == SparseMode::transposed) {
      require(more <= std::int64_t{p.pad[axis]} + most_out_padding(p, axis), "out-padding", more,
              rule_of_out_padding(p, axis));
    } else {
      require(!subm || more == 0, "out-padding", more, rule_of_out_padding(p, axis));
      require(more >= -p.pad[axis], "out-padding", more,
              text("leaves less than no padding at the end: pad is ", p.pad[axis]));
    }
  }
  std::int64_t volume = 1;
  for (int axis = 0; axis < p.ndim; ++axis) {
    if (subm) {
      const std::int64_t pad = std::int64_t{p.dilation[axis]} * (p.kernel[axis] / 2);
      require(pad <= kMaxInt, "dilation", p.dilation[axis],
              "the kernel's reach must be below 2^31");
      p.pad[axis] = static_cast<int>(pad);
    }
    p.out_shape[axis] = subm ? p.shape[axis] : checked_extent(p, axis);
    volume = checked_product({volume, p.kernel[axis]}, "kernel volume");
  }
  require(volume <= kMaxInt, "kernel", per_axis(p, p.kernel, ","), "must have less than 2^31 taps");
  p.KV = static_cast<int>(volume);
  for (const PerAxis* extents : {&p.shape, &p.out_shape}) {
    std::int64_t keys = p.batch;
    for (int axis = 0; axis < p.ndim; ++axis) {
      keys = checked_product({keys, (*extents)[axis]},
                             "sites of all samples, which 64-bit keys number");
    }
  }
  checked_product({p.sites, p.KV, std::int64_t{kPairColumns} * 4}, "bytes of pairs");
  return p;
}

std::string describe(const RulebookProblem& p) {
  std::string line = text(name_of(p.mode), ", ", p.sites, p.sites == 1 ? " site in " : " sites in ",
                          per_axis(p, p.shape, "x"));
  if (p.batch != 1) line += text(", batch ", p.batch);
  line += ", kernel " + per_axis(p, p.kernel, "x");
  if (short_text(p, p.stride) != "1") line += ", stride " + short_text(p, p.stride);
  const Paddings pads = paddings_of(p);
  if (pads.differ) {
    std::vector<int> both;
    for (int axis = 0; axis < p.ndim; ++axis)
      both.insert(both.end(), {p.pad[axis], pads.after[axis]});
    line += ", pad " + joined(both, ",");
  } else if (p.mode != SparseMode::subm && short_text(p, p.pad) != "0") {
    line += ", pad " + short_text(p, p.pad);
  }
  if (short_text(p, p.dilation) != "1") line += ", dilation " + short_text(p, p.dilation);
  if (short_text(p, pads.out_padding) != "0")
    line += ", out-padding " + short_text(p, pads.out_padding);
  if (p.form != RulebookForm::pairs) line += text(", form ", name_of(p.form));
  return line;
}

Signature rulebook_signature(const RulebookProblem& p) {
  const std::int64_t columns = 1 + p.ndim;
  const auto found = [](const char* name, const char* axes, Shape shape, bool optional) {
    return ArraySpec{.name = name,
                     .axes = axes,
                     .shape = std::move(shape),
                     .dtype = DType::i32,
                     .dynamic = true,
                     .optional = optional};
  };
  const bool pairs = p.form == RulebookForm::pairs;
  Signature signature{{{"coords", "na", {p.sites, columns}, DType::i32}},
                      {found("out_coords", "ma", {0, columns}, false)}};
  if (pairs) signature.outputs.push_back(found("pairs", "pc", {0, kPairColumns}, false));
  signature.outputs.push_back(found("nbr", "km", {p.KV, 0}, pairs));
  signature.outputs.push_back(found("mask", "mw", {0, mask_words(p.KV)}, pairs));
  if (const int orders = orders_of(p.form); orders > 0)
    signature.outputs.push_back(found("order", "om", {orders, 0}, false));
  return signature;
}

}  // namespace convladder
