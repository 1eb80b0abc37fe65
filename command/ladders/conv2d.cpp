/// @file conv2d.cpp
/// @brief Options of conv2d, conv2d_dgrad, conv2d_wgrad and conv2d_transpose.
#include <filesystem>

#include "command/ladders/in_code.hpp"
#include "command/ladders/ladder_command.hpp"
#include "command/photograph_file.hpp"
#include "core/arithmetic.hpp"
#include "core/conv2d_transpose.hpp"
#include "core/error.hpp"
#include "core/same_padding.hpp"
#include "ladders/ladders.hpp"

namespace convladder::command {
namespace {

const Conv2dProblem kConv2dExample = {.N = 2, .C = 4, .H = 48, .W = 64, .K = 8, .R = 3, .S = 3};
const Conv2dTranspose kTransposeExample = {
    .N = 2, .C = 8, .H = 24, .W = 32, .K = 4, .R = 3, .S = 3};

/// Padding; empty for `same`, which follows from the sizes of the problem.
Padding read_pad(const Parameters& parameters) {
  if (parameters.pads_same()) return {};
  const std::vector<int> pad = parameters.numbers("pad");
  switch (pad.size()) {
    case 0: return {};
    case 1: return {pad[0], pad[0], pad[0], pad[0]};
    case 2: return {pad[0], pad[0], pad[1], pad[1]};
    case 4: return {pad[0], pad[1], pad[2], pad[3]};
    default:
      throw BadInput(text("pad = ", *parameters.word("pad"),
                          ": must be P, or PH,PW, or top,bottom,left,right, or same"));
  }
}

Step read_step(const Parameters& parameters, const std::string& name) {
  const std::vector<int> step = parameters.numbers(name);
  require(step.size() <= 2, name, joined(step, ","),
          "must be one number, or two: vertical,horizontal");
  return step.empty() ? Step{} : Step{step.front(), step.back()};
}

/// The parameters that say how a filter moves over its input.
Conv2dProblem read_steps(const Parameters& parameters) {
  return {.pad = read_pad(parameters),
          .stride = read_step(parameters, "stride"),
          .dilation = read_step(parameters, "dilation")};
}

/// Records the extents of an array, in the order of these names.
void tell_shape(Extents& extents, const std::string& source, const Shape& shape,
                const std::vector<std::string>& names) {
  for (std::size_t axis = 0; axis < names.size(); ++axis)
    extents.tell(names[axis], shape[axis], source);
}

/// Weights hold C/groups channels.
void tell_weights(Extents& extents, const std::string& source, const Shape& shape, int groups,
                  bool groups_given) {
  if (extents.told("c") && extents.value("c", 0) != shape[1] * groups) {
    const std::int64_t C = extents.value("c", 0);
    const bool divides = shape[1] > 0 && C % shape[1] == 0 && shape[0] % (C / shape[1]) == 0;
    throw BadInput(text(
        source, ": filters over ", shape[1], " channels do not fit c = ", C, " with groups = ",
        groups, !groups_given && divides ? text("; --groups ", C / shape[1], " would fit") : ""));
  }
  extents.tell("k", shape[0], source);
  extents.tell("c", shape[1] * groups, source);
  extents.tell("r", shape[2], source);
  extents.tell("s", shape[3], source);
}

/// An extent that the array's shape does not determine because of the stride must be given beside
/// it.
void require_beside(const Extents& extents, const std::string& name, const std::string& arrays) {
  if (!extents.told(name)) {
    throw BadInput(text(name, ": must be given together with ", arrays,
                        ", whose shape does not determine it"));
  }
}

/// The properties that distinguish the three ladders.
struct Own {
  std::vector<std::string> parameters;
  std::vector<const char*> beside_dy;  ///< Extents that dy does not determine.
};

/// If only groups are given, the channels of the example must be compatible with them.
int example_channels(int channels, int groups) {
  return groups >= channels ? groups : ceil_div(channels, groups) * groups;
}

Task read_conv2d(const Ladder& ladder, Parameters parameters, const Own& own) {
  std::vector<std::string> known = {"n",   "c",      "h",        "w",      "k",      "r",    "s",
                                    "pad", "stride", "dilation", "groups", "layout", "dtype"};
  known.insert(known.end(), own.parameters.begin(), own.parameters.end());
  parameters.require_only(ladder.name, known);

  if (parameters.given("image") || parameters.given("filter")) {
    for (const char* name : {"image", "filter"}) {
      if (!parameters.given(name))
        throw BadInput(
            text(name, ": must be given: --image PNG and --filter NAME belong together"));
    }
    parameters.require_only("a photograph", {"image", "filter", "pad", "stride", "dilation"});
    const Filter& filter = filter_named(*parameters.word("filter"));
    return photograph_task(*parameters.word("image"), filter, read_steps(parameters),
                           parameters.pads_same());
  }

  Task task{.ladder = &ladder, .problem = {}, .title = {}};
  Conv2dProblem conv = read_steps(parameters);
  conv.groups = parameters.number("groups").value_or(1);
  require(conv.groups >= 1, "groups", conv.groups, "must be at least 1");
  Extents extents;
  for (const char* name : {"n", "c", "h", "w", "k", "r", "s"})
    extents.tell_option(parameters, name);
  const auto read = [&](const char* name, const char* axes, const std::vector<std::string>& names) {
    if (!parameters.array_given(name)) return;
    const Array& array = task.given.emplace(name, *parameters.array(name, {axes})).first->second;
    const std::string source = parameters.source(name, array.shape());
    if (names.empty()) {
      tell_weights(extents, source, array.shape(), conv.groups, parameters.given("groups"));
    } else {
      tell_shape(extents, source, array.shape(), names);
    }
  };
  read("x", "[n][c][h][w]", {"n", "c", "h", "w"});
  read("dy", "[n][k][p][q]", {"n", "k"});
  read("weights", "[k][c/groups][r][s]", {});
  read("bias", "[k]", {"k"});
  if (task.given.contains("dy")) {
    for (const char* name : own.beside_dy) require_beside(extents, name, "dy");
  }

  conv.N = extents.value("n", kConv2dExample.N);
  conv.C = extents.value("c", example_channels(kConv2dExample.C, conv.groups));
  conv.H = extents.value("h", kConv2dExample.H);
  conv.W = extents.value("w", kConv2dExample.W);
  conv.K = extents.value("k", example_channels(kConv2dExample.K, conv.groups));
  conv.R = extents.value("r", kConv2dExample.R);
  conv.S = extents.value("s", kConv2dExample.S);
  conv.bias = parameters.given("bias");
  if (parameters.word("activation", {"none", "relu"}) == "relu") {
    conv.activation = Activation::relu;
  }
  conv.layout = parameters.layout();
  conv.map = parameters.map().value_or(TileMap::row_major);
  parameters.set_dtype(conv);
  if (parameters.pads_same()) conv.pad = same_padding(conv);
  conv = validated(conv);
  task.problem = conv;
  task.title = describe(conv);
  task.notes = parameters.notes();
  return task;
}

/// --out-padding: one number, or down,across.
Step read_out_padding(const Parameters& parameters) {
  const std::vector<int> more = parameters.numbers("out-padding");
  require(more.size() <= 2, "out-padding", joined(more, ","),
          "must be one number, or two: vertical,horizontal");
  return more.empty() ? Step{0, 0} : Step{more.front(), more.back()};
}

std::vector<Task> read_transpose(const Ladder& ladder, const Options& options) {
  Parameters parameters = options.problem;  // which collects notes
  parameters.require_only(
      ladder.name, {"n", "c", "h", "w", "k", "r", "s", "pad", "stride", "dilation", "out-padding",
                    "groups", "layout", "dtype", "x", "weights", "bias"});
  Task task{.ladder = &ladder, .problem = {}, .title = {}};
  Conv2dTranspose transpose{.pad = read_pad(parameters),
                            .same = parameters.pads_same(),
                            .stride = read_step(parameters, "stride"),
                            .dilation = read_step(parameters, "dilation"),
                            .out_padding = read_out_padding(parameters),
                            .groups = parameters.number("groups").value_or(1),
                            .bias = parameters.given("bias"),
                            .layout = parameters.layout()};
  require(transpose.groups >= 1, "groups", transpose.groups, "must be at least 1");
  Extents extents;
  for (const char* name : {"n", "c", "h", "w", "k", "r", "s"})
    extents.tell_option(parameters, name);
  const auto read = [&](const char* name, const char* axes) -> const Array* {
    if (!parameters.array_given(name)) return nullptr;
    return &task.given.emplace(name, *parameters.array(name, {axes})).first->second;
  };
  if (const Array* x = read("x", "[n][c][h][w]"))
    tell_shape(extents, parameters.source("x", x->shape()), x->shape(), {"n", "c", "h", "w"});
  if (const Array* weights = read("weights", "[c][k/groups][r][s]")) {
    const std::string source = parameters.source("weights", weights->shape());
    extents.tell("c", weights->shape()[0], source);
    extents.tell("k", weights->shape()[1] * transpose.groups, source);
    extents.tell("r", weights->shape()[2], source);
    extents.tell("s", weights->shape()[3], source);
  }
  if (const Array* bias = read("bias", "[k]"))
    extents.tell("k", bias->shape()[0], parameters.source("bias", bias->shape()));
  transpose.N = extents.value("n", kTransposeExample.N);
  transpose.C = extents.value("c", example_channels(kTransposeExample.C, transpose.groups));
  transpose.H = extents.value("h", kTransposeExample.H);
  transpose.W = extents.value("w", kTransposeExample.W);
  transpose.K = extents.value("k", example_channels(kTransposeExample.K, transpose.groups));
  transpose.R = extents.value("r", kTransposeExample.R);
  transpose.S = extents.value("s", kTransposeExample.S);
  parameters.set_dtype(transpose);
  const Conv2dProblem gradient = gradient_of(transpose);
  task.problem = gradient;
  task.title = describe_transpose(gradient);
  task.notes = parameters.notes();
  return {std::move(task)};
}

std::string conv2d_in_code(const Conv2dProblem& p) {
  return text("Conv2dProblem{.N = ", p.N, ", .C = ", p.C, ", .H = ", p.H, ", .W = ", p.W,
              ", .K = ", p.K, ", .R = ", p.R, ", .S = ", p.S, ", .pad = {", p.pad.top, ", ",
              p.pad.bottom, ", ", p.pad.left, ", ", p.pad.right, "}, .stride = {", p.stride.h, ", ",
              p.stride.w, "}, .dilation = {", p.dilation.h, ", ", p.dilation.w,
              "}, .groups = ", p.groups, ", .bias = ", p.bias ? "true" : "false",
              ", .activation = Activation::", name_of(p.activation),
              ", .layout = Layout::", name_of(p.layout), ", .map = TileMap::", name_of(p.map),
              ", .dtype = DType::", in_code(p.dtype),
              ", .precision = Precision::", name_of(p.precision), ", .P = ", p.P, ", .Q = ", p.Q,
              "}");
}

/// The filtered photograph, if there is one.
std::optional<std::vector<std::byte>> filtered(const Task& task, const Arrays& outputs) {
  const auto y = outputs.find("y");
  if (task.filter == nullptr || y == outputs.end()) return {};
  const Image image = picture_of(*task.filter, y->second, task.sample_bits);
  return png_bytes(image.width(), image.height(), image.rgb());
}

LadderCommand command_with(const Own& own, std::vector<std::vector<std::string>> terms) {
  const auto read = [own](const Ladder& ladder, const Options& options) {
    return std::vector{read_conv2d(ladder, options.problem, own)};
  };
  return {
      .read = read, .in_code = code_of<Conv2dProblem>(conv2d_in_code), .terms = std::move(terms)};
}

}  // namespace

Task photograph_task(const std::string& path, const Filter& filter, const Conv2dProblem& steps,
                     bool same) {
  const Samples samples = read_photograph("image", path);
  Task task{.ladder = &ladder("conv2d"),
            .problem = {},
            .title = {},
            .filter = &filter,
            .sample_bits = samples.depth};
  Conv2dProblem conv = steps;
  conv.N = 1;
  conv.C = conv.groups = samples.channels;
  conv.H = samples.height, conv.W = samples.width;
  conv.K = samples.channels * static_cast<int>(filter.weights.size());
  conv.R = conv.S = filter.taps;
  if (same) conv.pad = same_padding(conv);
  conv = validated(conv);
  task.problem = conv;
  task.title = text(std::filesystem::path(path).filename().string(), ", ", filter.name, ": ",
                    describe(conv));
  task.drawn.emplace("x", photograph_array(samples));
  task.drawn.emplace("weights", filter_weights(filter, samples.channels));
  return task;
}

LadderCommand conv2d_command() {
  LadderCommand command =
      command_with({{"x", "weights", "bias", "activation", "map", "image", "filter"}, {}},
                   {{"x", "weights"}, {"bias"}});
  command.picture = filtered;
  return command;
}

LadderCommand conv2d_dgrad_command() {
  return command_with({{"dy", "weights"}, {"h", "w"}}, {{"dy", "weights"}});
}

LadderCommand conv2d_transpose_command() {
  return {.read = read_transpose,
          .in_code = code_of<Conv2dProblem>(conv2d_in_code),
          .terms = {{"x", "weights"}, {"bias"}}};
}

LadderCommand conv2d_wgrad_command() {
  return command_with({{"x", "dy"}, {"r", "s"}}, {{"x", "dy"}, {"dy"}});  // dw and db
}

}  // namespace convladder::command
