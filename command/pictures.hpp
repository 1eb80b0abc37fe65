/// @file pictures.hpp
/// @brief The tour's pictures: photographs under all filters, the tile order of every map, and a
/// LiDAR sweep.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "command/drawing.hpp"
#include "core/rulebook_problem.hpp"
#include "core/tile_map_problem.hpp"

namespace convladder::command {

/// A picture with its name and a line about it.
struct Exhibit {
  Drawing drawing;
  std::string name, remark;
};

/// The exhibits in rows, each with its name below it, and a title of two lines above them all.
Drawing contact_sheet(const std::string& title, const std::string& subtitle,
                      const std::vector<Exhibit>& exhibits, int columns);

/// The order in which a map's blocks take the tiles: squares are tiles, colours tell a block's
/// turn, a line joins the blocks' work in that order (stream_k: the work of each block). Where
/// several units share a tile, each has the part of the square, from left to right, that its
/// k-steps are of the tile's.
/// @param units rows as the tile_map ladder gives them
Drawing tile_order_picture(const TileMapProblem& problem, std::span<const std::int32_t> units);

/// Sites from above: the first axis points at the beholder, the last to the right, the one between
/// them up. Each pixel has the colour of the topmost site in it.
/// @param coords rows of batch, z, y, x @param shape of their grid
/// @param part of the grid's width and depth to show, around its middle
Image bird_view(std::span<const std::int32_t> coords, const PerAxis& shape, double part);

/// What tile_order_picture()'s colours and lines mean.
Drawing tile_order_legend();

}  // namespace convladder::command
