// SelectionMap: which keys the sparse rows of one prompt kept, head by head, in square cells of
// tokens: a row of cells is a stretch of queries, a column a stretch of keys.
#pragma once

#include <cstdint>
#include <mutex>
#include <optional>
#include <vector>

#include "attention/sparse_attention.h"

namespace winnow {

class SelectionMap : public SelectionObserver {
 public:
  // Only of one layer, or one query head of each, where given. A side has at most `max_side`
  // cells. Requires num_tokens >= 1 and max_side >= 1.
  SelectionMap(int64_t num_tokens, int max_side, std::optional<int64_t> layer_idx,
               std::optional<int64_t> head);

  void on_tile(const TileSelection& tile) override;

  enum class Kind {
    kUnseen,  // later than the queries
    kDense,   // no sparse row among the queries
    kSparse,
  };
  struct Cell {
    Kind kind = Kind::kUnseen;
    double kept = 0;  // kSparse: share of the pairs of query and key that were multiplied
  };
  struct Head {
    int layer_idx = 0;
    int head = 0;
    std::vector<float> seen = {};  // [side][side], pairs of sparse rows
    std::vector<float> kept = {};
  };

  int64_t num_tokens() const { return num_tokens_; }
  int side() const { return side_; }
  int64_t cell_tokens() const { return cell_tokens_; }
  // Those with sparse rows, by layer and then head.
  const std::vector<Head>& heads() const { return heads_; }
  Cell cell(const Head& head, int row, int column) const;
  // Of a head's sparse rows.
  static double density(const Head& head);

 private:
  Head& find_or_add(int layer_idx, int head);

  int64_t num_tokens_;
  int64_t cell_tokens_;
  int side_;
  std::optional<int64_t> layer_idx_;
  std::optional<int64_t> head_;
  std::mutex mutex_;
  std::vector<Head> heads_;
};

}  // namespace winnow
