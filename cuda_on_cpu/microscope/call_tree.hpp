/// @file
/// @brief Code locations, each with its chain of callers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

namespace cuda_on_cpu::microscope {

/// A location: an index into the tree. The root, 0, is the caller of a kernel.
using Node = std::uint32_t;

/// The content of a node: a return address, or the index of a Where with this bit set.
constexpr std::uintptr_t kWhereBit = std::uintptr_t{1} << 63;

/// Every location below the call that leads to it.
class CallTree {
 public:
  struct Entry {
    Node parent;
    std::uint32_t depth;
    std::uintptr_t pc;
  };

  CallTree() { nodes_.push_back({0, 0, 0}); }

  Node child(Node parent, std::uintptr_t pc) {
    const auto [found, is_new] =
        children_.try_emplace({parent, pc}, static_cast<Node>(nodes_.size()));
    if (is_new) nodes_.push_back({parent, nodes_[parent].depth + 1, pc});
    return found->second;
  }
  const Entry& operator[](Node node) const { return nodes_[node]; }
  std::size_t size() const { return nodes_.size(); }

 private:
  struct Key {
    Node parent;
    std::uintptr_t pc;
    bool operator==(const Key&) const = default;
  };
  struct Hash {
    std::size_t operator()(const Key& key) const {
      std::uint64_t h = (key.pc ^ std::uint64_t{key.parent} << 40) * 0x9e3779b97f4a7c15u;
      return h ^ h >> 29;
    }
  };
  std::vector<Entry> nodes_;
  std::unordered_map<Key, Node, Hash> children_;
};

}  // namespace cuda_on_cpu::microscope
