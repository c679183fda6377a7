// HeadReport: layer by layer and head by head, what sparse attention multiplied and what it lost.
#pragma once

#include <boost/json/array.hpp>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <utility>

#include "attention/sparse_attention.h"

namespace winnow {

class HeadReport : public SelectionObserver {
 public:
  // Every `probe_period`-th tile of a head is computed densely as well; 0 = none. Requires
  // probe_period >= 0.
  explicit HeadReport(int64_t probe_period) : probe_period_(probe_period) {}

  void on_tile(const TileSelection& tile) override;
  bool wants_probe(int layer_idx, int head, int32_t first_position) const override;
  void on_probe(const TileProbe& probe) override;

  // Heads with sparse rows, by layer and then head.
  boost::json::array to_json() const;
  std::string to_text() const;

 private:
  struct Head {
    double causal_pairs = 0;
    double kept_pairs = 0;
    // Sums over the rows of the tiles that were probed.
    double probed_rows = 0;
    double mass_kept = 0;
    double output_error = 0;

    double density() const { return kept_pairs / causal_pairs; }
  };

  int64_t probe_period_;
  std::mutex mutex_;
  std::map<std::pair<int, int>, Head> heads_;  // by layer and head
};

}  // namespace winnow
