#include "command/points.hpp"

#include <cstring>
#include <filesystem>

#include "command/files.hpp"
#include "command/npy.hpp"
#include "core/error.hpp"
#include "oracle/lidar_sweep.hpp"

namespace convladder::command {
namespace {

constexpr std::int64_t kKittiColumns = 4;

}  // namespace

Points read_points(Parameters& parameters) {
  const std::string file = parameters.word("points").value_or("");
  const std::string suffix = std::filesystem::path(file).extension().string();
  if (suffix == ".bin") {
    require_available(2.0 * static_cast<double>(size_of_file("points", file)), "points = " + file);
    const std::vector<std::byte> bytes = read_file("points", file);
    constexpr std::size_t kRowBytes = kKittiColumns * sizeof(float);
    require(bytes.size() % kRowBytes == 0, "points", file,
            text("holds ", bytes.size(), " bytes; x, y, z and intensity in float32 are ", kRowBytes,
                 " for each point"));
    Points points{std::vector<float>(bytes.size() / sizeof(float)), kKittiColumns};
    if (!bytes.empty()) std::memcpy(points.numbers.data(), bytes.data(), bytes.size());
    return points;
  }
  require(suffix == ".npy", "points", file,
          "must be a .bin file (x, y, z, intensity in float32) or a .npy file ([n][3] or [n][4])");
  const NpyFile npy = read_npy("points", file);
  const Shape& shape = npy.array.shape();
  require(npy.array.dtype() == DType::f32, "points", file,
          text("holds ", name_of(npy.array.dtype()), "; points must be float32"));
  require(shape.size() == 2 && (shape[1] == 3 || shape[1] == 4), "points", file,
          text("is ", to_string(shape), "; points are [n][3] or [n][4]"));
  if (!npy.converted.empty()) parameters.note(text("points = ", file, ": ", npy.converted));
  const auto numbers = npy.array.as<float>();
  return {{numbers.begin(), numbers.end()}, shape[1]};
}

std::int64_t lidar_voxels(const Parameters& parameters) {
  const std::string word = parameters.word("lidar").value_or("");
  if (word.empty()) return kOneTurn;
  const std::int64_t voxels = parse_whole("lidar", word);
  require(voxels >= 1 && voxels <= kMostLidarVoxels, "lidar", word,
          text("must be 1 to ", kMostLidarVoxels, " voxels"));
  return voxels;
}

}  // namespace convladder::command
