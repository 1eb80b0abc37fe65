# What the rungs of this ladder call: sorts and sums, and the forms of a table.
set(algorithms core/cuda/algorithms.cu,core/cuda/site_check.cu,cuda_optimized/rulebook/shared/table_forms.cu)

planted_bug(grid_not_cleared
  RUNG cuda_naive/rulebook/dense_grid
  WITH ${algorithms}
  FIND [==[launch(rulebook_dense_grid_clear_cells, {item_blocks, kThreads}, book, coords, grid);]==]
  REPLACE [==[]==]
  TEACHES "memory that nobody cleared holds the rows of an earlier call: it must not start as what one hopes for")

planted_bug(mirror_not_exchanged
  RUNG cuda_optimized/rulebook/submanifold/symmetric
  WITH ${algorithms}
  FIND [==[book.KV - 1 - k, outs[i], ins[i]);]==]
  REPLACE [==[book.KV - 1 - k, ins[i], outs[i]);]==]
  TEACHES "at the opposite tap input and output change places: counts alone do not show it")

planted_bug(mirrored_list_one_tap_off
  RUNG cuda_optimized/rulebook/submanifold/symmetric
  WITH ${algorithms}
  FIND [==[P - offsets[k + 1] + place]==]
  REPLACE [==[P - offsets[k] + place]==]
  TEACHES "lists in reverse order begin where the next one's ends; guard bands see what is written behind the last")

planted_bug(output_taken_for_the_filler
  RUNG cuda_naive/rulebook/two_phases
  WITH ${algorithms}
  FIND [==[if (found > 0 && downloaded(keys.data() + found - 1) == filler_of(book)) --found;]==]
  REPLACE [==[if (found > 0) --found;]==]
  TEACHES "spconv's unique - 1, without its extra filler: the output with the largest key is lost where every tap finds one")

planted_bug(counts_of_a_failed_build
  RUNG cuda_naive/rulebook/two_phases
  WITH ${algorithms}
  FIND [==[check(cudaMemsetAsync(counts, 0, static_cast<std::size_t>(book.KV) * sizeof *counts,
                        current_stream()));]==]
  REPLACE [==[]==]
  TEACHES "spconv's second attempt, after a hash table that could not be built, counts on from the first")

planted_bug(first_rulebook_kept_for_all
  RUNG cuda_naive/rulebook/dense_grid
  WITH ${algorithms}
  FIND [==[const std::int64_t P = downloaded(offsets.data() + book.KV);]==]
  REPLACE [==[static const std::int64_t P = downloaded(offsets.data() + book.KV);]==]
  TEACHES "what is kept from one rulebook is wrong for the next, as with spconv's indice_key on other sites")

planted_bug(inverse_keeps_the_roles
  RUNG cuda_naive/rulebook/two_phases
  WITH ${algorithms}
  FIND [==[pair[1] = book.mode == SparseMode::inverse ? found : given;]==]
  REPLACE [==[pair[1] = given;]==]
  TEACHES "an inverse convolution is the strided one with its roles exchanged")

planted_bug(keys_of_32_bits
  RUNG cuda_optimized/rulebook/neighbour_table
  WITH ${algorithms}
  FIND [==[candidates[place++] = key_of(book, book.out_shape, out);]==]
  REPLACE [==[candidates[place++] = static_cast<std::uint32_t>(key_of(book, book.out_shape, out));]==]
  TEACHES "spconv#745: a grid of 2448 x 2448 x 2448 outputs has keys that 32 bits do not hold")

planted_bug(one_word_a_mask
  RUNG cuda_optimized/rulebook/neighbour_table
  WITH ${algorithms}
  FIND [==[if (k % 32 == 31 || k == book.KV - 1) {]==]
  REPLACE [==[if (k == book.KV - 1) {]==]
  TEACHES "kernels of more than 32 taps need more than one word")

planted_bug(ranks_read_too_late
  RUNG cuda_optimized/rulebook/neighbour_table
  FILE cuda_optimized/rulebook/shared/table_forms.cu
  WITH ${algorithms}
  FIND [==[__syncthreads();  // all have added up before the next tile's counts overwrite these]==]
  REPLACE [==[]==]
  TEACHES "a second barrier in a loop: it only matters when the loop goes round, which few blocks make it do")

planted_bug(aggregated_place_read_too_early
  RUNG cuda_optimized/rulebook/submanifold/aggregated_counters
  WITH ${algorithms}
  FIND [==[__syncthreads();  // the index is stored, and all threads have added up before the next tile's]==]
  REPLACE [==[]==]
  TEACHES "one thread asks for all: the others must wait for the answer")

planted_bug(empty_cell_taken_for_a_row
  RUNG cuda_optimized/rulebook/submanifold/output_stationary
  WITH ${algorithms}
  FIND [==[const std::int32_t in_row = there != kEmpty ? there : -1;]==]
  REPLACE [==[const std::int32_t in_row = there;]==]
  TEACHES "the mark of an empty cell is no row: the table says -1 where a tap finds nothing")

planted_bug(key_stored_without_comparing
  RUNG cuda_optimized/rulebook/submanifold/linear_probing
  WITH ${algorithms}
  FIND [==[const Key there = atomicCAS(&keys[slot], kEmpty, Key{key});]==]
  REPLACE [==[const Key there = atomicExch(&keys[slot], Key{key});]==]
  TEACHES "a slot may only be taken while it is empty: an exchange overwrites the key of another site")

planted_bug(probing_behind_the_last_slot
  RUNG cuda_optimized/rulebook/submanifold/linear_probing
  WITH ${algorithms}
  FIND [==[return (slot + 1) & static_cast<std::uint64_t>(capacity() - 1);]==]
  REPLACE [==[return slot + 1;]==]
  TEACHES "the slot behind the last one is the first: only keys whose home slots are the last ones get there")

planted_bug(hash_search_stops_at_a_full_bucket
  RUNG cuda_optimized/rulebook/submanifold/hash_table
  FILE cuda_optimized/rulebook/shared/site_hash.cuh
  WITH ${algorithms}
  FIND [==[if (found != ~0u || all >> 31 != 0) return static_cast<std::int32_t>(found);  // or empty: -1]==]
  REPLACE [==[return static_cast<std::int32_t>(found);]==]
  TEACHES "a full bucket is ordinary: a search goes on until there is an empty slot")

planted_bug(hash_entries_of_32_bit_keys
  RUNG cuda_optimized/rulebook/submanifold/hash_table
  FILE cuda_optimized/rulebook/shared/site_hash.cuh
  WITH ${algorithms}
  FIND [==[const Slot entry = Slot{key} << row_bits]==]
  REPLACE [==[const Slot entry = Slot{static_cast<std::uint32_t>(key)} << row_bits]==]
  TEACHES "64-bit keys cut to 32 when they are stored: sites beyond 2^32 cells do not find themselves")

planted_bug(hash_table_not_cleared
  RUNG cuda_optimized/rulebook/submanifold/hash_table
  WITH ${algorithms}
  FIND [==[grid_stride(hash.capacity() / 2)]==]
  REPLACE [==[grid_stride(hash.capacity() / 32)]==]
  TEACHES "slots that nobody emptied hold what the memory held before, and there is no room for sites")

planted_bug(bucket_behind_the_last_one
  RUNG cuda_optimized/rulebook/submanifold/hash_table
  FILE cuda_optimized/rulebook/shared/site_hash.cuh
  WITH ${algorithms}
  FIND [==[return (bucket + 1) & static_cast<std::uint32_t>(capacity() / kSlots - 1);]==]
  REPLACE [==[return bucket + 1;]==]
  TEACHES "behind the last bucket comes the first: seldom, unless sites are chosen for it")

planted_bug(place_behind_the_last_one
  RUNG cuda_optimized/rulebook/submanifold/cooperative_launch
  FILE cuda_optimized/rulebook/shared/run_index.cuh
  WITH ${algorithms}
  FIND [==[return place + 1 == capacity ? 0 : place + 1;]==]
  REPLACE [==[return place + 1;]==]
  TEACHES "the same for a table of runs: what lies behind its last entry is other data")

planted_bug(set_searched_to_its_end
  RUNG cuda_optimized/rulebook/strided/hash_set
  WITH ${algorithms}
  FIND [==[while (slots[slot] != key) slot = (slot + 1) & mask;]==]
  REPLACE [==[while (slots[slot] != key && slot < mask) ++slot;]==]
  TEACHES "the same for a set: who looks for a key must go round as who put it in")

planted_bug(filter_word_held_too_long
  RUNG cuda_optimized/rulebook/submanifold/filtered_hash
  WITH ${algorithms}
  FIND [==[if (inside && key / 32 != line) {]==]
  REPLACE [==[if (inside && line == ~std::uint64_t{0}) {]==]
  TEACHES "a filter may say yes too often, and never no where there is a site: a word answers for its own 32 cells")

planted_bug(lists_begin_behind_themselves
  RUNG cuda_optimized/rulebook/submanifold/count_scan_fill
  WITH ${algorithms}
  FIND [==[of_tap[thread] = sum - own;]==]
  REPLACE [==[of_tap[thread] = sum;]==]
  TEACHES "an exclusive sum leaves its own count out, an inclusive one does not")

planted_bug(tile_ranked_before_it_is_there
  RUNG cuda_optimized/rulebook/submanifold/count_scan_fill
  WITH ${algorithms}
  FIND [==[__syncthreads();  // all taps of the tile are stored before a warp reads those of all rows]==]
  REPLACE [==[]==]
  TEACHES "each thread writes a column, each warp reads rows: between the two stands a barrier")

planted_bug(found_sites_of_32_bits
  RUNG cuda_optimized/rulebook/strided/hash_set
  WITH ${algorithms}
  FIND [==[site_of_key(book, book.out_shape, keys[row])]==]
  REPLACE [==[site_of_key(book, book.out_shape, static_cast<std::int32_t>(keys[row]))]==]
  TEACHES "a 64-bit key read into 32 bits, as spconv's second stage does: sites beyond 2^31 cells become others")

planted_bug(pattern_cut_at_the_word
  RUNG cuda_optimized/rulebook/strided/bit_grid
  FILE cuda_optimized/rulebook/shared/bit_ranks.cuh
  WITH ${algorithms}
  FIND [==[if (both >> 32 != 0)]==]
  REPLACE [==[if (false)]==]
  TEACHES "cells side by side may lie in two words")

planted_bug(taps_a_stride_apart_in_spite_of_dilation
  RUNG cuda_optimized/rulebook/strided/hash_set
  FILE cuda_optimized/rulebook/shared/lattice.cuh
  WITH ${algorithms}
  FIND [==[book.stride[axis] / common]==]
  REPLACE [==[book.stride[axis]]==]
  TEACHES "with stride 2 and dilation 2 every tap may lead somewhere: 27 outputs of a site, not 8, as spconv 2 assumes")

planted_bug(next_word_not_looked_at
  RUNG cuda_optimized/rulebook/strided/gather
  FILE cuda_optimized/rulebook/shared/output_taps.cuh
  WITH ${algorithms}
  FIND [==[next = __ldg(&bits[cells[i] / 32 + 1]);]==]
  REPLACE [==[next = 0;]==]
  TEACHES "a line of taps may begin in one word and end in the next: one line in ten or so")

planted_bug(rank_goes_on_in_the_next_word
  RUNG cuda_optimized/rulebook/strided/gather
  FILE cuda_optimized/rulebook/shared/output_taps.cuh
  WITH ${algorithms}
  FIND [==[__popc(before & ~in_word)]==]
  REPLACE [==[__popc(before)]==]
  TEACHES "places are consecutive within a word only: the next one's begin anywhere")

planted_bug(looked_up_before_all_have_entered
  RUNG cuda_optimized/rulebook/submanifold/cooperative_launch
  WITH ${algorithms}
  FIND [==[all_blocks.sync();  // all sites are in the table before any is looked up]==]
  REPLACE [==[]==]
  TEACHES "one launch has no end of a kernel between its steps: only a barrier of the whole grid")

planted_bug(any_order_taken_for_sorted
  RUNG cuda_optimized/rulebook/submanifold/cooperative_launch
  WITH ${algorithms}
  FIND [==[const bool sorted = __syncthreads_or(any) == 0;]==]
  REPLACE [==[const bool sorted = __syncthreads_or(any) >= 0;]==]
  TEACHES "a rank is a row only where the input is sorted, and an input may have any order")

planted_bug(collided_run_taken_for_its_own
  RUNG cuda_optimized/rulebook/submanifold/cooperative_launch
  FILE cuda_optimized/rulebook/shared/run_index.cuh
  WITH ${algorithms}
  FIND [==[while (entry != 0 && entry >> 32 != run) {]==]
  REPLACE [==[while (false) {]==]
  TEACHES "a place that is taken may be taken by another: an entry says whose it is")

planted_bug(staged_pairs_read_too_early
  RUNG cuda_optimized/rulebook/submanifold/brick_lists
  WITH ${algorithms}
  FIND [==[__syncwarp();  // all pairs are stored before other lanes write them out]==]
  REPLACE [==[]==]
  TEACHES "who stages a pair and who stores it are two lanes of a warp, which need not run together")

planted_bug(place_taken_for_the_row
  RUNG cuda_optimized/rulebook/strided/input_lists
  FILE cuda_optimized/rulebook/shared/site_tiles.cuh
  WITH ${algorithms}
  FIND [==[return rows != nullptr ? rows[place] : static_cast<std::int32_t>(place);]==]
  REPLACE [==[return static_cast<std::int32_t>(place);]==]
  TEACHES "inputs are gone through in the order of their sites, and named by their rows, which may have any order")

planted_bug(outputs_numbered_behind_the_inputs
  RUNG cuda_optimized/rulebook/strided/input_lists
  FILE cuda_optimized/rulebook/shared/site_tiles.cuh
  WITH ${algorithms}
  FIND [==[found.bits[at / 32]) - first_found);]==]
  REPLACE [==[found.bits[at / 32]));]==]
  TEACHES "two grids numbered in one: a row of the second is its number less all of the first")

planted_bug(pairs_counted_that_are_not_written
  RUNG cuda_optimized/rulebook/strided/input_lists
  FILE cuda_optimized/rulebook/shared/site_tiles.cuh
  WITH ${algorithms}
  FIND [==[if (found >= 0 && found < along.found) ++of_axis;]==]
  REPLACE [==[++of_axis;]==]
  TEACHES "a size foretold by other means than the writing must agree with it: taps may lead beyond the grid")

planted_bug(lists_of_inverse_keep_the_roles
  RUNG cuda_optimized/rulebook/strided/input_lists
  WITH ${algorithms}
  FIND [==[inverse ? InOut{found_rows[i], rows[i]} : InOut{rows[i], found_rows[i]}]==]
  REPLACE [==[InOut{rows[i], found_rows[i]}]==]
  TEACHES "given sites are the outputs of an inverse convolution, whose lists are in their order")

planted_bug(warp_sums_read_too_early
  RUNG cuda_optimized/rulebook/submanifold/brick_lists
  FILE cuda_optimized/rulebook/shared/bit_ranks.cuh
  WITH ${algorithms}
  FIND [==[__syncthreads();  // all warps have stored their sums]==]
  REPLACE [==[]==]
  TEACHES "a block's sums need all its warps' sums: without the barrier they are those of the call before")

planted_bug(word_of_the_first_run_held
  RUNG cuda_optimized/rulebook/submanifold/occupancy_bits
  WITH ${algorithms}
  FIND [==[if (run != held.run) held = bits.settle(run, bits.ask(run));]==]
  REPLACE [==[if (held.run == ~0u) held = bits.settle(run, bits.ask(run));]==]
  TEACHES "a word answers for the 32 cells of its own run: the next line of taps lies in another")

planted_bug(rank_taken_for_the_row
  RUNG cuda_optimized/rulebook/submanifold/bit_grid
  WITH ${algorithms}
  FIND [==[return sorted ? rank : rows[rank];]==]
  REPLACE [==[return rank;]==]
  TEACHES "bits are counted in the order of cells, rows are numbered in the order of the input")

planted_bug(words_before_in_the_block_forgotten
  RUNG cuda_optimized/rulebook/submanifold/bit_grid
  WITH ${algorithms}
  FIND [==[for (std::uint32_t before = found.run / kBlockWords * kBlockWords; before < found.run; ++before)]==]
  REPLACE [==[for (std::uint32_t before = found.run; before < found.run; ++before)]==]
  TEACHES "a rank has three parts: the blocks before, the words before, and the bits before")

planted_bug(page_of_the_first_forgotten
  RUNG cuda_optimized/rulebook/submanifold/paged_bricks
  FILE cuda_optimized/rulebook/shared/bricks.cuh
  WITH ${algorithms}
  FIND [==[if (taken != 0) page = taken;]==]
  REPLACE [==[]==]
  TEACHES "who comes second to a brick has to enter its site where the first one did, not in a page of its own")

planted_bug(fourth_brick_of_a_window_forgotten
  RUNG cuda_optimized/rulebook/submanifold/paged_bricks
  FILE cuda_optimized/rulebook/shared/bricks.cuh
  WITH ${algorithms}
  FIND [==[{true, x != 0, y != 0, x != 0 && y != 0};]==]
  REPLACE [==[{true, x != 0, y != 0, false};]==]
  TEACHES "a window at a corner meets four bricks of its plane, and the fourth only by one cell")

planted_bug(page_of_the_first_row_for_all
  RUNG cuda_optimized/rulebook/submanifold/paged_bricks
  WITH ${algorithms}
  FIND [==[page = 0;]==]
  REPLACE [==[]==]
  TEACHES "what stays in a register is of the thread's first row: only many rows have a second one")

planted_bug(bits_of_lanes_joined_across_boards
  RUNG cuda_optimized/rulebook/submanifold/paged_bricks
  FILE cuda_optimized/rulebook/shared/bricks.cuh
  WITH ${algorithms}
  FIND [==[(place.brick * kDepth + place.board) * 2 + place.bit / 32]==]
  REPLACE [==[place.brick * kDepth + place.board]==]
  TEACHES "lanes enter together what is in one word; a board has two")

planted_bug(equal_digits_in_another_order
  RUNG cuda_optimized/rulebook/submanifold/paged_bricks
  FILE cuda_optimized/rulebook/shared/mask_order.cuh
  WITH ${algorithms}
  FIND [==[before = lanes & ((1u << lane) - 1);]==]
  REPLACE [==[before = lanes & ~1u << lane;]==]
  TEACHES "a sort digit by digit is right only if each pass leaves equal digits in the order in which it met them")

planted_bug(held_row_not_named
  RUNG cuda_optimized/rulebook/submanifold/brick_lists
  WITH ${algorithms}
  FIND [==[held = row;]==]
  REPLACE [==[]==]
  TEACHES "who keeps what a task has loaded must know of which row: three groups of taps, in two rounds, come back to the first one's number")

planted_bug(centre_counted_twice
  RUNG cuda_optimized/rulebook/submanifold/brick_lists
  WITH ${algorithms}
  FIND [==[tasks.is_mirrored(k) ? 2 * hits : hits]==]
  REPLACE [==[2 * hits]==]
  TEACHES "the centre's list is its own mirror: it is written once, and counted once")

set(algorithms core/cuda/algorithms.cu,core/cuda/site_check.cu)  # of the other ladders
