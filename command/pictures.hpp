/// @file pictures.hpp
/// @brief The pictures of the tour: photographs under all filters, the tile order of every map, and
/// a LiDAR sweep.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "command/drawing.hpp"
#include "core/rulebook_problem.hpp"
#include "core/tile_map_problem.hpp"

namespace convladder::command {

/// A picture with its name and a one-line description.
struct Exhibit {
  Drawing drawing;
  std::string name, remark;
};

/// The exhibits in rows, each with its name below, and a title of two lines at the top.
Drawing contact_sheet(const std::string& title, const std::string& subtitle,
                      const std::vector<Exhibit>& exhibits, int columns);

/// The order in which the blocks of a map compute the tiles. Squares are tiles, colours give the
/// index of the block, and a line connects the blocks' work in that order (stream_k: the work of
/// each block). If several units share a tile, each is drawn on the part of the square that
/// corresponds to its k-steps, from left to right.
/// @param units rows of the tile_map ladder
Drawing tile_order_picture(const TileMapProblem& problem, std::span<const std::int32_t> units);

/// Sites from above: the first axis points towards the viewer, the last to the right, the middle
/// one upwards. Each pixel has the colour of the topmost site in it.
/// @param coords rows of batch, z, y, x @param shape of their grid
/// @param part fraction of the grid's width and depth to show, around its centre
Image bird_view(std::span<const std::int32_t> coords, const PerAxis& shape, double part);

/// The legend of tile_order_picture().
Drawing tile_order_legend();

}  // namespace convladder::command
