#include "cli/head_report.h"

#include <boost/json/object.hpp>

#include "attention/attention_stats.h"
#include "cli/formatted.h"

namespace winnow {

void HeadReport::on_tile(const TileSelection& tile) {
  const int64_t end = int64_t{tile.first_position} + tile.num_positions;
  const int64_t all = pairs_seen(tile.first_position, end);
  const int64_t candidates = tile.end_candidate - tile.first_candidate;
  const int64_t left_out =
      (candidates - std::ssize(tile.kept)) * tile.block_tokens * tile.num_positions;
  const std::lock_guard lock(mutex_);
  for (int i = 0; i < tile.num_heads; ++i) {
    Head& head = heads_[{tile.layer_idx, tile.head + i}];
    head.causal_pairs += static_cast<double>(all);
    head.kept_pairs += static_cast<double>(all - left_out);
  }
}

bool HeadReport::wants_probe(int layer_idx, int head, int32_t first_position) const {
  if (probe_period_ == 0) return false;
  // Mixed, so that heads are probed at different places whatever the tiles' size.
  auto mixed = static_cast<uint64_t>(first_position) << 32 |
               static_cast<uint64_t>(layer_idx) << 16 | static_cast<uint64_t>(head);
  for (int i = 0; i < 2; ++i) mixed = (mixed ^ mixed >> 29) * 0x9E3779B97F4A7C15U;
  return (mixed >> 33) % static_cast<uint64_t>(probe_period_) == 0;
}

void HeadReport::on_probe(const TileProbe& probe) {
  const std::lock_guard lock(mutex_);
  Head& head = heads_[{probe.layer_idx, probe.head}];
  head.probed_rows += probe.num_positions;
  head.mass_kept += probe.num_positions * probe.mass_kept;
  head.output_error += probe.num_positions * probe.output_error;
}

boost::json::array HeadReport::to_json() const {
  boost::json::array heads;
  for (const auto& [key, head] : heads_) {
    boost::json::object json{
        {"layer", key.first}, {"head", key.second}, {"density", head.density()}};
    if (head.probed_rows > 0) {
      json["mass_kept"] = head.mass_kept / head.probed_rows;
      json["output_error"] = head.output_error / head.probed_rows;
    }
    heads.push_back(std::move(json));
  }
  return heads;
}

std::string HeadReport::to_text() const {
  std::string text = "layer  head  density  mass kept  output error\n";
  for (const auto& [key, head] : heads_) {
    text += formatted("%5d %5d %8.4f", key.first, key.second, head.density());
    if (head.probed_rows > 0) {
      text += formatted(" %10.4f %13.4f", head.mass_kept / head.probed_rows,
                        head.output_error / head.probed_rows);
    }
    text += "\n";
  }
  return text;
}

}  // namespace winnow
