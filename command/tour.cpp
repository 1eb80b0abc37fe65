#include "command/tour.hpp"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>

#include "command/compare.hpp"
#include "command/emulated_device.hpp"
#include "command/photograph.hpp"
#include "command/pictures.hpp"
#include "command/save.hpp"
#include "command/table.hpp"
#include "command/task.hpp"
#include "command/terminal.hpp"
#include "core/error.hpp"
#include "ladders/ladders.hpp"
#include "ladders/rung_libraries.hpp"
#include "oracle/lidar_sweep.hpp"
#include "oracle/rulebook.hpp"

namespace convladder::command {
namespace fs = std::filesystem;
namespace {

constexpr const char* kFolder = "out/tour";  // the folder of the pictures without --save

struct Photograph {
  const char* file;
  const char* credit;
};
constexpr Photograph kPhotographs[] = {
    {"coffee.png", "Coffee, photograph by Rachel Michetti"},
    {"chelsea.png", "Chelsea, photograph by Stefan van der Walt"}};
constexpr const Photograph& kComparedPhotograph = kPhotographs[1];  // the smaller of the two

constexpr std::int64_t kPartOfATurn = 12000;  // voxels of the sweep for rulebooks
/// The sweep for sparse convolutions: part of a rotation, which the emulated kernels process
/// quickly.
constexpr std::int64_t kConvolvedVoxels = 4000;
constexpr int kSweepChannels = 16;
constexpr double kWorkOfPictures = 2;  // see Stop::work
constexpr int kCoarse = 16;            // voxels along a cell of the dense tensor

/// A rulebook over a sweep. Strided convolutions halve the grid, as in the encoders of detectors.
RulebookProblem sweep_rulebook(SparseMode mode, const Array& coords) {
  const bool strided = mode == SparseMode::strided;
  return validated(RulebookProblem{.mode = mode,
                                   .sites = static_cast<int>(coords.shape()[0]),
                                   .shape = kLidarShape,
                                   .stride = every_axis(strided ? 2 : 1),
                                   .pad = every_axis(strided ? 1 : 0)});
}

/// The sites of a sweep after the strides that a detector applies before its dense tensor: cells of
/// 16 x 16 x 16 voxels.
Task coarse_sweep_task(std::uint64_t seed) {
  const Array sweep = lidar_sweep(kConvolvedVoxels, seed);
  const RulebookProblem strides =
      validated(RulebookProblem{.mode = SparseMode::strided,
                                .sites = static_cast<int>(sweep.shape()[0]),
                                .shape = kLidarShape,
                                .kernel = every_axis(kCoarse),
                                .stride = every_axis(kCoarse)});
  Rulebook coarse = make_rulebook(strides, sweep);
  const RulebookProblem grid = validated(RulebookProblem{
      .sites = coarse.M, .shape = coarse.problem.out_shape, .kernel = every_axis(1)});
  Task task = sparse_task(ladder("sparse_to_dense"), grid, std::move(coarse.out_coords),
                          {.Cin = kSweepChannels}, seed);
  task.title = "simulated LiDAR sweep, coarse, " + task.title;
  return task;
}

/// A table of the tour.
struct Stop {
  std::vector<Prepared> problems;
  std::vector<Seat> seats;
  double work = 0;    ///< The relative time of the stop without a GPU, for the estimate of the time
                      ///< left.
  bool saved = true;  ///< --save has one folder per ladder, which the ladder's first stop fills.
};

/// The path of a file in the repository's folder data/.
std::string data_file(const std::string& name) {
  for (const fs::path folder : {"data", CONVLADDER_SOURCE_DIR "/data"}) {
    std::error_code error;
    if (fs::exists(folder / name, error)) return (folder / name).string();
  }
  throw BadInput(text("data/", name,
                      ": not found; the tour needs the files of the repository's folder data/"));
}

/// The tour's problems, in the order of the ladders; their number and sizes fit into half a minute
/// without a GPU. Data are integers, which reveal every wrong index, or random numbers where the
/// size of the rounding errors is of interest.
std::vector<Stop> make_stops(const Options& options, const Selection& selection) {
  std::vector<Stop> stops;
  const auto add = [&](const char* name, double work, std::vector<Task> tasks, Data data) {
    Stop stop{{}, selection.seats(*tasks.front().ladder), work, true};
    if (stop.seats.empty()) return;
    for (const Stop& before : stops)
      stop.saved = stop.saved && before.problems.front().task.ladder->name != name;
    for (Task& task : tasks)
      stop.problems.push_back(prepare(std::move(task), options.data.value_or(data), options.seed));
    stops.push_back(std::move(stop));
  };
  const auto add_problem = [&](const char* name, double work, const Problem& problem, Data data) {
    Task task{.ladder = &ladder(name), .problem = problem, .title = describe(problem)};
    std::vector<Task> tasks;
    tasks.push_back(std::move(task));
    add(name, work, std::move(tasks), data);
  };

  std::vector<Task> photograph;
  photograph.push_back(
      photograph_task(data_file(kComparedPhotograph.file), filter_named("sobel"), {}));
  add("conv2d", 6, std::move(photograph), Data::integer);
  add_problem("conv2d", 2,
              validated(Conv2dProblem{.C = 6, .H = 96, .W = 128, .K = 6, .R = 6, .S = 6}),
              Data::real);
  const Conv2dProblem layer = validated(Conv2dProblem{
      .N = 2, .C = 32, .H = 56, .W = 56, .K = 32, .R = 3, .S = 3, .pad = {1, 1, 1, 1}});
  add_problem("conv2d_dgrad", 1, layer, Data::integer);
  add_problem("conv2d_wgrad", 1, layer, Data::real);
  add_problem("im2col", 0.5, columns_of(layer), Data::integer);
  add_problem("col2im", 0.5, columns_of(layer), Data::integer);
  add_problem("gemm", 2, validated(GemmProblem{.M = 384, .N = 384, .K = 384}), Data::real);
  std::vector<Task> maps;
  for (const TileMapName& map : kTileMaps) {
    const Problem problem =
        validated(TileMapProblem{.map = map.map,
                                 .tiles_m = 12,
                                 .tiles_n = 16,
                                 .k_steps = 8,
                                 .splits = map.map == TileMap::split_k ? kDefaultSplits : 1,
                                 .batch = map.map == TileMap::batched ? 2 : 1,
                                 .blocks = 27});
    maps.push_back({.ladder = &ladder("tile_map"), .problem = problem, .title = describe(problem)});
  }
  add("tile_map", 0.5, std::move(maps), Data::integer);

  const auto add_sweep = [&](const char* name, double work, SparseMode mode, std::int64_t voxels,
                             Data data) {
    if (selection.seats(ladder(name)).empty()) return;
    Array coords = lidar_sweep(voxels, options.seed);
    const RulebookProblem book = sweep_rulebook(mode, coords);
    std::vector<Task> tasks;
    tasks.push_back(sparse_task(ladder(name), book, std::move(coords),
                                {.Cin = kSweepChannels, .Cout = kSweepChannels}, options.seed));
    tasks.front().title = "simulated LiDAR sweep, " + tasks.front().title;
    add(name, work, std::move(tasks), data);
  };
  add_sweep("rulebook", 4, SparseMode::subm, kPartOfATurn, Data::integer);
  add_sweep("rulebook", 2, SparseMode::strided, kPartOfATurn, Data::integer);
  add_sweep("sparse_conv", 0.5, SparseMode::subm, kConvolvedVoxels, Data::integer);
  add_sweep("sparse_dgrad", 0.5, SparseMode::strided, kConvolvedVoxels, Data::integer);
  add_sweep("sparse_wgrad", 0.5, SparseMode::subm, kConvolvedVoxels, Data::real);
  add_sweep("sparse_max_pool", 0.5, SparseMode::strided, kConvolvedVoxels, Data::integer);
  add_sweep("sparse_max_pool_dgrad", 0.5, SparseMode::strided, kConvolvedVoxels, Data::real);
  add_sweep("sparse_avg_pool", 0.5, SparseMode::strided, kConvolvedVoxels, Data::integer);
  add_sweep("sparse_global_pool", 0.5, SparseMode::subm, kConvolvedVoxels, Data::integer);
  if (!selection.seats(ladder("sparse_to_dense")).empty()) {
    std::vector<Task> tasks;
    tasks.push_back(coarse_sweep_task(options.seed));
    add("sparse_to_dense", 0.5, std::move(tasks), Data::integer);
  }
  if (!selection.seats(ladder("voxelize")).empty()) {
    Options sweep;
    sweep.ladder = "voxelize";
    sweep.seed = options.seed;
    sweep.problem.set("lidar", text(kConvolvedVoxels));
    add("voxelize", 0.5, read_tasks(sweep), Data::real);
  }
  // Roots of unity are irrational numbers or integers: the ring determines how results are
  // compared.
  if (options.data != Data::integer)
    add_problem("fft", 0.5, validated(FftProblem{.N = 64, .L = 256}), Data::real);
  if (options.data != Data::real) {
    add_problem("fft", 0.5, validated(FftProblem{.N = 64, .L = 64, .ring = FftRing::mersenne}),
                Data::integer);
  }
  // A ladder without a problem here shows its example.
  for (const Ladder& other : ladders()) {
    const auto is_here = [&](const Stop& stop) {
      return stop.problems.front().task.ladder->name == other.name;
    };
    if (selection.seats(other).empty() || std::ranges::any_of(stops, is_here)) continue;
    Options example;
    example.ladder = other.name;
    add(other.name.c_str(), 0.5, read_tasks(example), Data::integer);
  }
  return stops;
}

/// A photograph under each of the filters.
std::vector<Task> filter_tasks(const Photograph& photograph) {
  std::vector<Task> tasks;
  for (const Filter& filter : filters()) {
    tasks.push_back(photograph_task(data_file(photograph.file), filter, {}));
  }
  return tasks;
}

/// The seat whose results become pictures: the fastest rung that agreed on the photograph and
/// supports all filters, on a GPU if available, otherwise emulated. Null if there is none.
const Row* painter(const std::vector<Report>& reports, const std::vector<Task>& tasks) {
  const Row* best = nullptr;
  for (const Report& report : reports) {
    if (report.task.filter == nullptr) continue;
    for (const Row& row : report.rows) {
      const auto takes = [&](const Task& task) {
        return !row.rung->code_at(row.where)->supports(task.problem);
      };
      const auto is_better = [&] {
        return best == nullptr || row.where > best->where ||
               (row.where == best->where && row.outcome.milliseconds < best->outcome.milliseconds);
      };
      if (row.outcome.status == Status::agrees && is_better() &&
          std::all_of(tasks.begin(), tasks.end(), takes)) {
        best = &row;
      }
    }
  }
  return best;
}

/// A photograph under all filters.
Drawing filtered_photographs(const Photograph& photograph, const std::vector<Task>& tasks,
                             const Row& by, Progress& progress) {
  const Samples samples = read_png("image", data_file(photograph.file));
  std::vector<Exhibit> exhibits = {{Drawing(picture_of(samples)), "input", "the photograph"}};
  for (const Task& task : tasks) {
    const Filter& filter = *task.filter;
    progress.begin(text("picture: ", photograph.file, ", ", filter.name));
    const RungRun run =
        run_guarded(*task.ladder, task.problem, task.drawn, *by.rung->code_at(by.where), by.where);
    exhibits.push_back({Drawing(picture_of(filter, run.outputs.at("y"), samples.depth)),
                        filter.name, filter.what});
    progress.step();
  }
  return contact_sheet(photograph.credit,
                       text("filtered by ", by.rung->name, " (", name_of(by.where), ")"), exhibits,
                       3);
}

Drawing tile_orders(const std::vector<Report>& reports) {
  std::vector<Exhibit> exhibits;
  for (const Report& report : reports) {
    const auto* problem = std::get_if<TileMapProblem>(&report.task.problem);
    if (problem == nullptr) continue;
    const BlockGrid grid = grid_of(*problem);
    exhibits.push_back({tile_order_picture(*problem, report.units),
                        std::string(name_of(problem->map)),
                        text(grid.x * grid.y * grid.z, " blocks")});
  }
  exhibits.push_back({tile_order_legend(), "", ""});
  return contact_sheet("The order in which each map assigns the tiles of a GEMM to blocks",
                       "blocks that run concurrently share the rows and columns that they read",
                       exhibits, 4);
}

/// The sites of a sweep from above: the input, the outputs of a submanifold and of a strided
/// convolution, and a detail of each.
Drawing sweep_from_above(std::uint64_t seed) {
  const Array sweep = lidar_sweep(kOneTurn, seed);
  const Rulebook same = make_rulebook(sweep_rulebook(SparseMode::subm, sweep), sweep);
  const Rulebook half = make_rulebook(sweep_rulebook(SparseMode::strided, sweep), sweep);
  const auto sites = [](const Array& coords) { return text(coords.shape()[0], " sites"); };
  std::vector<Exhibit> exhibits;
  for (const bool detail : {false, true}) {
    const auto view = [&](const Array& coords, const PerAxis& shape) {
      return Drawing(bird_view(coords.as<std::int32_t>(), shape, detail ? 0.16 : 1));
    };
    const auto remark = [&](const Array& coords) {
      return detail ? std::string("in the middle") : sites(coords);
    };
    exhibits.push_back({view(sweep, same.problem.shape), "input", remark(sweep)});
    exhibits.push_back(
        {view(same.out_coords, same.problem.out_shape), "submanifold", remark(same.out_coords)});
    exhibits.push_back(
        {view(half.out_coords, half.problem.out_shape), "strided by 2", remark(half.out_coords)});
  }
  return contact_sheet("A simulated LiDAR sweep from above, 160 m x 160 m",
                       "occupied sites, coloured by the height of the topmost; a submanifold "
                       "convolution adds no sites",
                       exhibits, 3);
}

/// Reports in the progress bar that the tour waits for a library of rungs that is still being
/// built, and the estimated remaining time of the build.
class BuildWatch {
 public:
  explicit BuildWatch(Progress& progress) {
    observe_waits([&progress](const std::string& folder) {
      folder.empty() ? progress.go_on() : progress.wait("waiting until " + folder + " is built");
    });
    progress.set_other_work([start = Clock::now(), first = build_progress()] {
      const std::optional<double> now = build_progress();
      const double done = now.value_or(1) - first.value_or(0);
      if (!now || done <= 0) return 0.0;
      return std::chrono::duration<double>(Clock::now() - start).count() * (1 - *now) / done;
    });
  }
  BuildWatch(const BuildWatch&) = delete;
  BuildWatch& operator=(const BuildWatch&) = delete;
  ~BuildWatch() { observe_waits(nullptr); }

 private:
  using Clock = std::chrono::steady_clock;
};

/// Without a bar: one line per stop on standard error, with the progress of the tour.
void tell_time_left(Progress& progress, const Stop& stop, std::size_t number, std::size_t stops) {
  if (can_show_progress()) return;
  const std::string left = progress.time_left();
  std::fprintf(stderr, "  [%zu of %zu] %s%s\n", number, stops,
               stop.problems.front().task.ladder->name.c_str(),
               left.empty() ? "" : (": " + left).c_str());
}

std::string machine_line() {
  const Device* gpu = device_at(Where::gpu);
  return text("CPU: ", device_at(Where::cpu)->name(),
              "; GPU: ", gpu ? gpu->name() : "none (" + why_no_gpu() + ")");
}

}  // namespace

int tour(const Options& options) {
  const auto start = std::chrono::steady_clock::now();
  if (const auto name = options.problem.first()) {
    throw BadInput(text(
        *name, ": an option that describes a problem requires a ladder: ./ladder compare LADDER --",
        *name, " ..."));
  }
  std::vector<const Ladder*> all;
  for (const Ladder& ladder : ladders()) all.push_back(&ladder);
  const Selection selection(options, all);
  Outputs outputs = open_outputs(options, kFolder);
  if (options.save) {
    for (const Ladder* ladder : all)
      check_folders(*outputs.folder, *ladder, selection.seats(*ladder));
  }
  std::vector<Stop> stops = make_stops(options, selection);

  const std::size_t pictures_steps = std::size(kPhotographs) * filters().size() + 1;
  std::size_t steps = pictures_steps;
  double work = kWorkOfPictures;
  for (const Stop& stop : stops) {
    steps += steps_of(stop.seats, stop.problems.size());
    work += stop.work;
  }
  std::vector<Report> reports;
  std::vector<std::string> pictures;
  {
    Progress progress(steps, work);
    const BuildWatch watch(progress);
    progress.line(styled(
        Style::bold, "ConvLadder: every rung of every ladder, compared with the same reference"));
    progress.line(styled(Style::dim, printable(machine_line())) + "\n");
    for (Stop& stop : stops) {
      tell_time_left(progress, stop, static_cast<std::size_t>(&stop - stops.data()) + 1,
                     stops.size());
      const std::size_t steps_here = steps_of(stop.seats, stop.problems.size());
      progress.set_work_of_a_step(stop.work /
                                  static_cast<double>(std::max<std::size_t>(steps_here, 1)));
      const bool save = options.save.has_value() && stop.saved;
      // The problems are small: without --limit, every rung runs, however slow the machine is.
      const RunOptions run_options{.limit = 1.0 * options.limit.value_or(0)};
      for (Report& report :
           run_and_print(std::move(stop.problems), stop.seats, save, progress, run_options)) {
        if (save) stage_outputs(*outputs.folder, report);
        for (Row& row : report.rows) row.outcome.outputs.clear();
        reports.push_back(std::move(report));
      }
      progress.line("");
    }
    const auto add_picture = [&](const std::string& name, const Drawing& drawing) {
      write_bytes("save", outputs.folder->stage(name), drawing.png());
      pictures.push_back((outputs.folder->path() / name).string());
    };
    progress.set_work_of_a_step(kWorkOfPictures / static_cast<double>(pictures_steps));
    for (const Photograph& photograph : kPhotographs) {
      const std::vector<Task> tasks = filter_tasks(photograph);
      const Row* by = painter(reports, tasks);
      if (by == nullptr || !can_draw()) continue;
      add_picture(photograph.file, filtered_photographs(photograph, tasks, *by, progress));
    }
    if (can_draw() && !selection.seats(ladder("tile_map")).empty())
      add_picture("tile_maps.png", tile_orders(reports));
    if (can_draw() && !selection.seats(ladder("rulebook")).empty()) {
      progress.begin("picture: lidar.png");
      add_picture("lidar.png", sweep_from_above(options.seed));
      progress.step();
    }
    outputs.folder->commit();
  }
  if (outputs.json) outputs.json->write(compare_json(reports));

  const auto seconds =
      std::chrono::duration_cast<std::chrono::seconds>(std::chrono::steady_clock::now() - start);
  std::printf("%s, in %lld s\n", tally(reports).c_str(), static_cast<long long>(seconds.count()));
  std::printf("%s\n", styled(Style::dim,
                             "emulated: the CUDA file runs on this CPU; this checks its result, "
                             "but the time is not a GPU time")
                          .c_str());
  if (!can_draw()) std::printf("Pictures: none, because this program was built without Cairo\n");
  for (const std::string& picture : pictures) {
    std::printf("%s%s\n", &picture == pictures.data() ? "Pictures: " : "          ",
                printable(picture).c_str());
  }
  if (const std::string line = device_line(reports); !line.empty())
    std::printf("%s\n", line.c_str());
  return status_of(reports);
}

}  // namespace convladder::command
