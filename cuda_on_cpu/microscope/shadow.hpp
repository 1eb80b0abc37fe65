/// @file
/// @brief The state of each word of memory: its last writer and readers.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <unordered_map>

#include "call_tree.hpp"

namespace cuda_on_cpu::microscope {

/// A recorded access.
struct Stamp {
  std::uint32_t block = 0;  ///< the block's number among all blocks that ran; 0: no access
  std::uint32_t clock = 0;  ///< of the thread
  Node place = 0;
  std::uint16_t thread = 0;
  std::uint8_t bytes = 0;  ///< of the word, a mask
  bool atomic : 1 = false;
  bool pending : 1 = false;  ///< an asynchronous copy or wgmma that no thread has waited for
};

/// A word of 4 bytes. Two recorded readers suffice to find most races; there are no false
/// positives.
struct Word {
  Stamp write;
  std::array<Stamp, 2> reads;
};

/// The words of memory, in pages.
class Shadow {
 public:
  static constexpr std::size_t kPageBytes = 4096, kWords = kPageBytes / 4;
  struct Page {
    std::array<Word, kWords> words{};
    std::array<std::uint8_t, kWords> written{};  ///< which bytes of each word: a mask
    std::array<std::uint8_t, kWords> touched{};
    std::uint32_t block = 0;  ///< shared memory: the block that owns it
  };

  Page& page(std::uintptr_t address) {
    const std::uintptr_t number = address / kPageBytes;
    if (number != last_number_) {
      std::unique_ptr<Page>& slot = pages_[number];
      if (slot == nullptr) slot = std::make_unique<Page>();
      last_ = slot.get();
      last_number_ = number;
    }
    return *last_;
  }

  /// Calls `visit(page, word in page, mask of its bytes, address)` for each word of a range. The
  /// address is that of the range's first byte in the word.
  template <class Visit>
  void for_each_word(std::uintptr_t begin, std::size_t bytes, Visit visit) {
    const std::uintptr_t end = begin + bytes;
    for (std::uintptr_t at = begin; at < end;) {
      const std::uintptr_t word = at & ~std::uintptr_t{3};
      const std::uintptr_t stop = word + 4 < end ? word + 4 : end;
      const auto mask = static_cast<std::uint8_t>(((1u << (stop - at)) - 1) << (at - word));
      visit(page(word), word % kPageBytes / 4, mask, at);
      at = stop;
    }
  }

  void set_written(std::uintptr_t begin, std::size_t bytes) {
    for_each_word(begin, bytes,
                  [](Page& page, std::size_t word, std::uint8_t mask, std::uintptr_t) {
                    page.written[word] |= mask;
                  });
  }
  /// Fresh memory.
  void forget(std::uintptr_t begin, std::size_t bytes) {
    for_each_word(begin, bytes,
                  [](Page& page, std::size_t word, std::uint8_t mask, std::uintptr_t) {
                    page.written[word] &= static_cast<std::uint8_t>(~mask);
                    page.touched[word] &= static_cast<std::uint8_t>(~mask);
                    page.words[word] = {};
                  });
  }

 private:
  std::unordered_map<std::uintptr_t, std::unique_ptr<Page>> pages_;
  std::uintptr_t last_number_ = ~std::uintptr_t{0};
  Page* last_ = nullptr;
};

}  // namespace cuda_on_cpu::microscope
