/// @file table_forms.cuh
/// @brief Converts the table nbr to the requested form of a rulebook: pairs, or sorted rows.
#pragma once

#include "core/cuda/launch.hpp"
#include "core/implementation.hpp"
#include "core/rulebook_problem.hpp"
#include "core/text.hpp"

namespace convladder::BACKEND::cuda_optimized::rulebook {

/// Creates the arrays that the problem's form needs besides the table nbr [KV][M] and mask
/// [M][words].
void create_form(const RulebookProblem& book, std::int64_t M, const std::int32_t* nbr,
                 const std::int32_t* mask, const RulebookArrays& arrays);

/// For the description of a rung's choice: what it makes of a table.
inline std::string form_in_words(const RulebookProblem& book) {
  const int parts = orders_of(book.form);
  const bool several_rounds = parts > 0 && first_tap(book.KV, parts, 1) > 32;
  return text(book.form == RulebookForm::pairs   ? "then pairs"
              : book.form == RulebookForm::table ? "a table"
                                                 : text("then ", how_many(parts, "order")),
              several_rounds ? " in several rounds" : "",
              mask_words(book.KV) > 1 ? ", masks of several words" : "");
}

}  // namespace convladder::BACKEND::cuda_optimized::rulebook
