#include "command/options.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <map>

#include "command/emulated_device.hpp"
#include "core/error.hpp"
#include "ladders/ladders.hpp"

namespace convladder::command {
namespace {

/// An option that describes a problem. Its value remains text, which the ladder's own parser reads.
struct ProblemOption {
  const char* name;
  const char* value;
  const char* help;
  const char* group;
  bool bare = false;  ///< The value is optional.
};

constexpr const char* kSizes = "Sizes";
constexpr const char* kArrays =
    "Arrays in .npy files (arrays that are not given are made up from the seed)";
constexpr const char* kImage = "An image (conv2d)";
constexpr const char* kColumns = "Columns (im2col, col2im)";
constexpr const char* kTiles = "Tile maps";
constexpr const char* kSparse = "Sparse (rulebook, sparse_..., voxelize)";
constexpr const char* kConditionsGroup = "Conditions (which must not change a result)";

constexpr ProblemOption kProblemOptions[] = {
    {"n", "N", "images; gemm: columns of b; fft: lines; voxelize: made-up points", kSizes},
    {"c", "C", "input channels; voxelize: numbers per made-up point, 3 or more", kSizes},
    {"h", "H", "input height", kSizes},
    {"w", "W", "input width", kSizes},
    {"k", "K", "output channels; gemm: columns of a", kSizes},
    {"r", "R", "filter height", kSizes},
    {"s", "S", "filter width", kSizes},
    {"m", "M", "gemm: rows of a", kSizes},
    {"length", "L", "fft: points per line; H,L: rows, and points per row, of a plane", kSizes},
    {"input", "NAME",
     "fft: complex (default), or real: y, or x of the inverse, holds half of the spectrum", kSizes},
    {"direction", "NAME", "fft: forward (default) or inverse, which does not divide by L", kSizes},
    {"ring", "NAME",
     "fft: complex (default) numbers, or mersenne: integers modulo 2^17 - 1, which are exact",
     kSizes},
    {"pad", "P",
     "zeros around the input: P, or PH,PW, or top,bottom,left,right (default 0); im2col, col2im: "
     "one number, one per axis, or before,after of each axis; or same: as many as give input / "
     "stride outputs, rounded up",
     kSizes},
    {"stride", "V", "step between outputs: V or VH,VW (default 1)", kSizes},
    {"dilation", "V", "step between filter taps: V or VH,VW (default 1: none)", kSizes},
    {"groups", "G", "groups of channels; G = C is depthwise (default 1)", kSizes},
    {"activation", "NAME",
     "none (default) or relu: activation function of the outputs (conv2d, gemm, sparse_conv)",
     kSizes},
    {"layout", "NAME",
     "nchw (default) or nhwc: layout of the arrays in memory; files are always nchw", kSizes},
    {"dtype", "NAME",
     "fp32 (default); tf32: operands may be rounded to TF32; fp16, bf16, or fp8 (gemm): FP32 "
     "accumulators",
     kSizes},
    {"transpose", "NAME", "gemm: a, b or ab: a is stored as [k][m], b as [n][k]", kSizes},
    {"scale-a", "X", "gemm in fp8: scale by which the elements of a are multiplied (default 1)",
     kSizes},
    {"scale-b", "X", "gemm in fp8: scale by which the elements of b are multiplied (default 1)",
     kSizes},
    {"x", "FILE", "input [n][c][h][w]", kArrays},
    {"weights", "FILE", "filters [k][c/groups][r][s]; sparse: [taps][cin][cout]", kArrays},
    {"bias", "[FILE]",
     "one number per output channel [k], [cout], gemm: per column [n]; without a file: made up; "
     "without the option: no bias",
     kArrays, true},
    {"dy", "FILE", "gradient of the output [n][k][p][q]; sparse: [output row][cout]", kArrays},
    {"col", "FILE", "columns [n][c * kernel volume][output volume]", kArrays},
    {"a", "FILE", "left matrix [m][k], or a batch [batch][m][k]", kArrays},
    {"b", "FILE", "right matrix [k][n], or a batch [batch][k][n]", kArrays},
    {"into", "FILE", "content of the output before the run", kArrays},
    {"image", "FILE", "a photograph in PNG, JPEG or BMP; each channel is filtered separately",
     kImage},
    {"filter", "NAME", "sobel, gaussian, laplacian, sharpen or emboss", kImage},
    {"size", "L", "input extents: W, or H,W, or D,H,W", kColumns},
    {"kernel", "V", "filter taps: one number, or one per axis", kColumns},
    {"request", "NAME", "write, add or none: treatment of the old values of the output", kColumns},
    {"tiles", "TM,TN[,STEPS]", "rows and columns of an output tile, k-steps per tile", kTiles},
    {"splits", "S", "blocks per tile (split_k)", kTiles},
    {"batch", "B",
     "batched GEMMs (tile_map, gemm); sparse: samples (default: largest batch index + 1)", kTiles},
    {"blocks", "N", "blocks that run concurrently (stream_k, and the waves of the prediction)",
     kTiles},
    {"map", "NAME", "the order of the tiles (default: all; gemm, conv2d: row_major)", kTiles},
    {"mode", "NAME", "subm (default), strided, transposed or inverse: determines the output sites",
     kSparse},
    {"reduce", "NAME", "max (default) or mean: reduction of a global pooling", kSparse},
    {"form", "NAME", "pairs (default), table, sorted or split: the form of the rulebook", kSparse},
    {"coords", "FILE",
     "the sites, int32 [site][1 + axes]: batch index first, then coordinates from the outermost "
     "axis",
     kSparse},
    {"shape", "L", "extents of the grid, one per axis (default: the smallest that holds the sites)",
     kSparse},
    {"features", "FILE", "features, one row per site [site][cin]", kSparse},
    {"cin", "C", "input channels, if no array gives them", kSparse},
    {"cout", "C", "output channels, if no array gives them", kSparse},
    {"out-padding", "P",
     "additional output extent at the end (transposed, conv2d_transpose): one number, or one per "
     "axis",
     kSparse},
    {"points", "FILE", "a LiDAR sweep: .bin (x,y,z,intensity in float32) or .npy [n][3 or more]",
     kSparse},
    {"columns", "N", "numbers per point in a .bin file (default: 4)", kSparse},
    {"voxel", "V", "side of a voxel, for points: one number, or three, along x,y,z", kSparse},
    {"range", "X0,..", "x0,y0,z0,x1,y1,z1: the range; points outside are ignored", kSparse},
    {"lidar", "[VOXELS]", "a simulated LiDAR sweep: one full rotation, or about that many voxels",
     kSparse, true},
    {"sites", "COUNT", "number of made-up sites (default: 200)", kSparse},
    {"places", "NAME",
     "distribution of made-up sites: scattered (default), cluster, block, plane, line, corners",
     kSparse},
    {"order", "NAME", "order of made-up sites: drawn (default: none), sorted, reversed, innermost",
     kSparse},

    {"offset", "BYTES", "offset of the arrays from a multiple of 256 bytes: all, or x:4,y:12",
     kConditionsGroup},
    {"thread-order", "NAME",
     "order of emulated threads and blocks: forward (default), reverse, shuffled",
     kConditionsGroup},
    {"most-blocks", "N", "the most blocks along an axis of the grid of a grid-stride kernel",
     kConditionsGroup},
    {"bad-sites", "KIND:N",
     "COUNT rows of sites are duplicates, or lie outside of the grid: rungs must reject them",
     kConditionsGroup},
};

constexpr int kMostSeconds = 30 * 24 * 3600;  // of fuzz; also an option of its problems

constexpr const char* kHelp = R"(ConvLadder: convolution on GPUs, step by step.

Every algorithm is a ladder of versions, from a plain definition on the CPU to fast CUDA kernels;
each is compared with the same reference.

  ./ladder compare                     the tour: every rung of every ladder, and pictures
  ./ladder compare LADDER [problem]    the rungs of one ladder on a problem of your own
  ./ladder list [--ladder LADDER]      all rungs, each with a one-line summary
  ./ladder bench [LADDER]              times on a GPU beside those of vendor libraries
  ./ladder fuzz [LADDER]               random problems, to find one on which a rung fails
  ./ladder inspect RUNG [problem]      its memory requests, counted line by line, and races
  ./ladder test | check | docs | notebooks
                                       the suite, a contributor's checks, the pages, the lessons

  ./ladder compare --help              all options, with examples

Ladders: )";

constexpr const char* kExamples = R"(Examples:
  ./ladder compare conv2d --image data/coffee.png --filter sobel --save out/sobel
  ./ladder compare conv2d --c 64 --h 56 --w 56 --k 64 --r 3 --s 3 --pad 1 --rung 'cuda_*'
  ./ladder compare conv2d --x x.npy --weights w.npy --stride 2 --save out/mine --json out/mine.json
  ./ladder compare col2im --size 16,20,24 --kernel 3 --request add
  ./ladder compare tile_map --tiles 10,6,4 --map hilbert
  ./ladder compare rulebook --lidar --mode strided --kernel 3 --stride 2 --pad 1
  ./ladder compare sparse_conv --coords c.npy --shape 41,400,352 --features f.npy --cout 32

Exit status: 0 all agree, 1 some rung differs, 2 bad input, 4 an error of the program itself,
130 interrupted. Environment variables: with CONVLADDER_REQUIRE_GPU=1, a rung that is skipped because
there is no GPU counts as a failure; NO_COLOR disables colours.
)";

std::vector<std::string> names_of(const std::vector<Ladder>& ladders) {
  std::vector<std::string> names;
  for (const Ladder& ladder : ladders) names.push_back(ladder.name);
  return names;
}

std::vector<std::string> ladder_names() { return names_of(ladders()); }

/// The options of `compare`.
std::vector<std::string> names_to_compare() {
  std::vector<std::string> names = ladder_names();
  for (const std::string& alias : names_of(aliases())) names.push_back(alias);
  return names;
}

/// CLI11 prints two empty lines between groups of options.
std::string without_double_gaps(std::string help) {
  for (std::size_t gap; (gap = help.find("\n\n\n")) != std::string::npos;) help.erase(gap, 1);
  return help;
}

/// All "--name" options of a command.
std::vector<std::string> option_names(const CLI::App& command) {
  std::vector<std::string> names;
  for (const CLI::Option* option : command.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  }
  return names;
}

/// Throws BadInput for the first word that CLI11 could not interpret.
void reject_extras(const CLI::App& command) {
  const std::vector<std::string> extras = command.remaining();
  if (extras.empty()) return;
  const auto option = std::find_if(extras.begin(), extras.end(),
                                   [](const std::string& word) { return word.starts_with("-"); });
  if (option == extras.end()) {
    throw BadInput(text("argument = ", extras.front(), ": unexpected argument"));
  }
  const std::string name = option->substr(0, option->find('='));
  if (name == "-h")
    throw BadInput(
        "option = -h: the only form of the help option is --help, because --h is the input "
        "height\nnearest: --help");
  throw BadInput(text("option = ", name, ": unknown to ", command.get_name(),
                      "\nnearest: ", nearest(name, option_names(command))));
}

std::uint64_t parse_seed(const std::string& text) {
  const std::int64_t seed = parse_whole("seed", text);
  require(seed >= 0, "seed", seed, "must be at least 0");
  return static_cast<std::uint64_t>(seed);
}

int parse_count(const std::string& parameter, const std::string& text) {
  const std::int64_t count = parse_whole(parameter, text);
  require(count >= 1 && count <= kMostSeconds, parameter, count,
          convladder::text("must be 1 to ", kMostSeconds));
  return static_cast<int>(count);
}

/// The limit of compare in seconds, or none.
int parse_limit(const std::string& text) {
  if (text == "none") return 0;
  const std::int64_t limit = parse_whole("limit", text);
  require(limit >= 0 && limit <= kMostSeconds, "limit", limit,
          convladder::text("must be none, or 0 to ", kMostSeconds, " seconds"));
  return static_cast<int>(limit);
}

std::vector<Where> parse_places(const std::vector<std::string>& words) {
  std::vector<Where> places;
  for (const std::string& word : words) {
    parse_word("backend", word, {"cpu", "emulated", "gpu"});
    for (const Where where : kEverywhere) {
      if (word == name_of(where) &&
          std::find(places.begin(), places.end(), where) == places.end()) {
        places.push_back(where);
      }
    }
  }
  return places;
}

/// The first word must be a command: CLI11 would not report the nearest one.
void require_command(const std::vector<std::string>& arguments) {
  const std::string& word = arguments.front();
  const std::vector<std::string> ours = {"compare", "list", "bench", "fuzz", "inspect", "help"};
  if (word.starts_with("-") || std::find(ours.begin(), ours.end(), word) != ours.end()) return;
  for (const char* script : {"test", "check", "docs", "notebooks"}) {
    if (word == script) throw BadInput(text("command = ", word, ": is run by the script ./ladder"));
  }
  throw BadInput(text("command = ", word, ": unknown", "\nnearest: ",
                      nearest(word, {"compare", "list", "bench", "fuzz", "inspect", "help", "test",
                                     "check", "docs", "notebooks"})));
}

/// A repeated option takes one value each time, so that it cannot consume the ladder's name.
CLI::Option* add_repeated(CLI::App* command, const std::string& name,
                          std::vector<std::string>& words, const std::string& help) {
  return command->add_option(name, words, help)
      ->allow_extra_args(false)
      ->type_size(1)
      ->expected(1, 1 << 20);
}

}  // namespace

Options parse_options(const std::vector<std::string>& arguments) {
  Options options;
  const std::string help = kHelp + joined(ladder_names(), ", ") +
                           "\nAlso to compare: " + joined(names_of(aliases()), ", ") + "\n";
  if (arguments.empty() || arguments.front() == "help") {
    options.help = help;
    return options;
  }
  require_command(arguments);

  std::string ladder, data, seed, json, save, export_sites, seconds, most_problems, limit;
  std::string rung, html, trace, blocks, device;
  std::vector<std::string> places;
  std::map<std::string, std::string> problem;

  CLI::App app("", "./ladder");
  app.set_help_flag("--help", "print this help");
  app.set_version_flag("--version", "ConvLadder " CONVLADDER_VERSION);
  app.allow_extras();
  app.get_formatter()->column_width(26);

  CLI::App* compare = app.add_subcommand(
      "compare", "Compares the rungs of a ladder on one problem; without a ladder: the tour.");
  compare->allow_extras();
  compare->footer(kExamples);
  compare->add_option("LADDER", ladder, joined(names_to_compare(), ", "))->type_name("");

  CLI::App* inspect =
      app.add_subcommand("inspect",
                         "Counts the memory requests of a CUDA rung on a problem, line by line, on "
                         "the CPU, and detects races and reads of unwritten memory.");
  inspect->allow_extras();
  inspect->add_option("RUNG", rung, "cuda_naive/conv2d/direct, or conv2d/direct/tiled")
      ->type_name("");
  inspect->add_option("--source", options.source, "a file to use in place of the rung's own")
      ->type_name("FILE");
  inspect
      ->add_option("--blocks", blocks,
                   "count at most N blocks of each launch, evenly spread (default: all)")
      ->type_name("N");
  inspect
      ->add_option("--html", html, "also write an HTML page with the annotated source to this file")
      ->type_name("FILE");
  inspect
      ->add_option("--trace", trace,
                   "also write each request of the counted blocks, in order, to this file")
      ->type_name("FILE");

  for (CLI::App* command : {compare, inspect}) {
    command
        ->add_option("--data", data,
                     "integer (exact: every rung must produce identical bits) or real")
        ->type_name("KIND");
    command->add_option("--seed", seed, "seed of made-up data (default 1)")->type_name("N");
    for (const ProblemOption& option : kProblemOptions) {
      if (command == inspect && std::string_view("blocks") == option.name) continue;
      command->add_option(std::string("--") + option.name, problem[option.name], option.help)
          ->type_name(option.value)
          ->expected(option.bare ? 0 : 1, 1)
          ->group(option.group);
    }
  }

  CLI::App* list =
      app.add_subcommand("list", "Lists the rungs of every ladder, with the idea of each.");
  list->allow_extras();
  list->add_option("--ladder", ladder, "only this ladder")->type_name("LADDER");

  CLI::App* bench =
      app.add_subcommand("bench",
                         "Times rungs on a GPU, beside vendor libraries; without a GPU: "
                         "the newest committed run.");
  bench->allow_extras();
  bench->add_option("LADDER", ladder, joined(ladder_names(), ", "))->type_name("");
  add_repeated(bench, "--problem", options.benchmarks, "a benchmark problem; repeatable")
      ->type_name("ID");
  bench
      ->add_option("--export-sites", export_sites,
                   "write the sites of sparse problems to this folder, for other programs, instead "
                   "of measuring")
      ->type_name("DIR");

  CLI::App* fuzz =
      app.add_subcommand("fuzz",
                         "Compares rungs on random problems, on both sides of every choice that a "
                         "rung makes, until the time limit; failing problems are simplified.");
  fuzz->allow_extras();
  fuzz->add_option("LADDER", ladder, joined(ladder_names(), ", "))->type_name("");
  fuzz->add_option("--seconds", seconds, "time limit in seconds (default 60)")->type_name("S");
  fuzz->add_option("--problems", most_problems, "or stop after this many problems per ladder")
      ->type_name("N");
  fuzz->add_option("--limit", limit, "time limit of one run in seconds (default 60)")
      ->type_name("S");
  fuzz->add_option("--seed", seed, "seed of the problems (default: a new one each time)")
      ->type_name("N");

  for (CLI::App* command : {compare, fuzz}) {
    add_repeated(command, "--backend", places,
                 "cpu, emulated (CUDA code on the CPU) or gpu; repeatable")
        ->type_name("WHERE");
  }
  for (CLI::App* command : {compare, inspect, fuzz}) {
    command
        ->add_option("--device", device,
                     "the card that the emulated GPU models: " + device_list() +
                         " (default: sm_90, with 8 SMs)")
        ->type_name("ARCH");
  }
  for (CLI::App* command : {compare, bench, fuzz}) {
    add_repeated(command, "--rung", options.rungs,
                 "only rungs whose name matches the pattern; repeatable")
        ->type_name("GLOB");
  }
  for (CLI::App* command : {compare, list, bench, fuzz, inspect}) {
    command
        ->add_option("--json", json,
                     command == bench
                         ? "also write the result to this file, and its roofline picture beside "
                           "it; - is standard output, and the tables go to standard error"
                         : "also write the result to this file; - is standard output, and the "
                           "tables go to standard error")
        ->type_name("FILE");
  }
  compare
      ->add_option("--limit", limit,
                   "decline rungs whose estimated time exceeds this many seconds; 0 or none: no "
                   "limit (default 20; the tour: none)")
      ->type_name("SECONDS");
  compare->add_option("--save", save, "write every result, and pictures, to this folder")
      ->type_name("DIR");

  try {
    app.parse(std::vector<std::string>(arguments.rbegin(), arguments.rend()));
  } catch (const CLI::CallForHelp&) {
    options.help = app.get_subcommands().empty() ? help : without_double_gaps(app.help());
    return options;
  } catch (const CLI::CallForVersion& version) {
    options.help = std::string(version.what()) + "\n";
    return options;
  } catch (const CLI::ArgumentMismatch& error) {
    // "--n: 1 required N missing", "--n: At Most 1 required but received 2"
    const std::string message = error.what();
    throw BadInput(text("option = ", message.substr(0, message.find(':')),
                        ": must be given once, with one value"));
  } catch (const CLI::ParseError& error) {
    throw BadInput(error.what());
  }
  for (const CLI::App* command : {compare, list, bench, fuzz, inspect}) reject_extras(*command);
  reject_extras(app);

  options.command = compare->parsed() ? Command::compare
                    : list->parsed()  ? Command::list
                    : bench->parsed() ? Command::bench
                    : fuzz->parsed()  ? Command::fuzz
                                      : Command::inspect;
  for (const CLI::App* command : app.get_subcommands()) {
    for (const CLI::Option* option : command->get_options()) {
      if (option->count() == 0) continue;
      const std::string name = option->get_name(false, false);
      if (name == "LADDER" || name == "--ladder") options.ladder = ladder;
      if (name == "--data")
        options.data =
            parse_word("data", data, {"integer", "real"}) == "real" ? Data::real : Data::integer;
      if (name == "--seed") options.seed = parse_seed(seed), options.seed_given = true;
      if (name == "--seconds") options.seconds = parse_count("seconds", seconds);
      if (name == "--limit")
        options.limit = command == compare ? parse_limit(limit) : parse_count("limit", limit);
      if (name == "--problems") options.most_problems = parse_count("problems", most_problems);
      if (name == "--json") options.json = json;
      if (name == "--save") options.save = save;
      if (name == "RUNG") options.rungs = {rung};
      if (name == "--device") options.device = device;
      if (name == "--html") options.html = html;
      if (name == "--trace") options.trace = trace;
      if (name == "--blocks" && command == inspect) options.blocks = parse_count("blocks", blocks);
      if (name == "--export-sites") options.export_sites = export_sites;
      if (!name.starts_with("--") || !problem.contains(name.substr(2))) continue;
      if (name == "--blocks" && command == inspect) continue;
      const std::string word = name.substr(2);
      if (std::ranges::find(kConditions, word) != kConditions.end()) {
        set_condition(options.conditions, word, problem[word]);
      } else {
        options.problem.set(word, problem[word]);
      }
    }
  }
  options.places = parse_places(places);
  if (options.device) {
    require(options.places.empty() ||
                std::ranges::find(options.places, Where::emulated) != options.places.end(),
            "device", *options.device, "applies to the emulated backend only: --backend emulated");
  }
  if (options.ladder) {
    const Ladder& named = convladder::ladder(*options.ladder);  // throws if there is none
    const bool has_rungs = std::ranges::any_of(
        ladders(), [&](const Ladder& candidate) { return &candidate == &named; });
    require(has_rungs || options.command == Command::compare, "ladder", named.name,
            text("is supported by compare only: its rungs belong to another ladder\nnearest: ",
                 nearest(named.name, ladder_names())));
  }
  return options;
}

}  // namespace convladder::command
