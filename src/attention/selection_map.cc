#include "attention/selection_map.h"

#include <algorithm>
#include <numeric>

namespace winnow {
namespace {

constexpr int64_t kSmallestCell = 32;

}  // namespace

SelectionMap::SelectionMap(int64_t num_tokens, int max_side, std::optional<int64_t> layer_idx,
                           std::optional<int64_t> head)
    : num_tokens_(num_tokens), cell_tokens_(kSmallestCell), layer_idx_(layer_idx), head_(head) {
  while ((num_tokens + cell_tokens_ - 1) / cell_tokens_ > max_side) cell_tokens_ *= 2;
  side_ = static_cast<int>((num_tokens + cell_tokens_ - 1) / cell_tokens_);
}

SelectionMap::Head& SelectionMap::find_or_add(int layer_idx, int head) {
  const std::pair wanted(layer_idx, head);
  const auto place = std::lower_bound(
      heads_.begin(), heads_.end(), wanted,
      [](const Head& a, const auto& b) { return std::pair(a.layer_idx, a.head) < b; });
  if (place != heads_.end() && std::pair(place->layer_idx, place->head) == wanted) return *place;
  const auto cells = static_cast<size_t>(side_) * static_cast<size_t>(side_);
  return *heads_.insert(place,
                        {layer_idx, head, std::vector<float>(cells), std::vector<float>(cells)});
}

void SelectionMap::on_tile(const TileSelection& tile) {
  if (layer_idx_ && tile.layer_idx != *layer_idx_) return;
  const int64_t end = int64_t{tile.first_position} + tile.num_positions;
  // Keys of each column that one query of the tile sees, and those it keeps.
  std::vector<float> seen(static_cast<size_t>(side_));
  std::vector<float> kept(seen.size());
  const auto add = [&](std::vector<float>& columns, int64_t first_key, int64_t end_key) {
    for (int64_t key = first_key; key < end_key;) {
      const int64_t column = key / cell_tokens_;
      const int64_t next = std::min(end_key, (column + 1) * cell_tokens_);
      columns[static_cast<size_t>(column)] += static_cast<float>(next - key);
      key = next;
    }
  };
  const int64_t block = tile.block_tokens;
  add(seen, 0, end);
  add(kept, 0, tile.first_candidate * block);
  for (const int32_t idx : tile.kept) add(kept, idx * block, (idx + 1) * block);
  add(kept, tile.end_candidate * block, end);

  const std::lock_guard lock(mutex_);
  for (int i = 0; i < tile.num_heads; ++i) {
    if (head_ && tile.head + i != *head_) continue;
    Head& head = find_or_add(tile.layer_idx, tile.head + i);
    for (int64_t position = tile.first_position; position < end;) {
      const int64_t row = position / cell_tokens_;
      const int64_t next = std::min(end, (row + 1) * cell_tokens_);
      const auto queries = static_cast<float>(next - position);
      const size_t first = static_cast<size_t>(row) * seen.size();
      for (size_t column = 0; column < seen.size(); ++column) {
        head.seen[first + column] += queries * seen[column];
        head.kept[first + column] += queries * kept[column];
      }
      position = next;
    }
  }
}

SelectionMap::Cell SelectionMap::cell(const Head& head, int row, int column) const {
  if (column > row) return {Kind::kUnseen};
  const size_t first = static_cast<size_t>(row) * static_cast<size_t>(side_);
  const size_t idx = first + static_cast<size_t>(column);
  // Every sparse row sees the first column.
  if (!(head.seen[first] > 0)) return {Kind::kDense};
  if (!(head.seen[idx] > 0)) return {Kind::kUnseen};
  return {Kind::kSparse, static_cast<double>(head.kept[idx]) / static_cast<double>(head.seen[idx])};
}

double SelectionMap::density(const Head& head) {
  const double seen = std::accumulate(head.seen.begin(), head.seen.end(), 0.0);
  return seen > 0 ? std::accumulate(head.kept.begin(), head.kept.end(), 0.0) / seen : 1;
}

}  // namespace winnow
