#include "engine/cost_model.h"

#include <algorithm>

namespace winnow {
namespace {

// Sum over positions p in [0, end) of the tokens that p sees.
double pairs_before(int64_t end, int64_t window) {
  const auto n = static_cast<double>(end);
  if (window == 0 || end <= window) return n * (n + 1) / 2;
  const auto w = static_cast<double>(window);
  return w * (w + 1) / 2 + (n - w) * w;
}

}  // namespace

PrefillCost::PrefillCost(const ModelConfig& config) {
  for (const LayerConfig& layer : config.layers) {
    const double width = config.width;
    const double head_rows =
        2.0 * layer.heads * layer.head_dim + 2.0 * layer.kv_heads * layer.head_dim;
    per_token_ += width * (head_rows + 3.0 * layer.ffn_width);
    const double per_pair = 2.0 * layer.heads * layer.head_dim;
    const auto same_window = [&](const Attention& known) {
      return known.window == layer.attention_window();
    };
    const auto known = std::find_if(attention_.begin(), attention_.end(), same_window);
    if (known == attention_.end()) {
      attention_.push_back({per_pair, layer.attention_window()});
    } else {
      known->per_pair += per_pair;
    }
  }
}

double PrefillCost::of(int64_t begin, int64_t end, double attention_share) const {
  double cost = per_token_ * static_cast<double>(end - begin);
  for (const Attention& layers : attention_) {
    const double share = layers.window == 0 ? attention_share : 1;
    cost += share * layers.per_pair *
            (pairs_before(end, layers.window) - pairs_before(begin, layers.window));
  }
  return cost;
}

double PrefillCost::eta_s(double elapsed_s, int64_t begin, int64_t done, int64_t end,
                          double attention_share) const {
  if (done <= begin) return 0;
  return elapsed_s * of(done, end, attention_share) / of(begin, done, attention_share);
}

}  // namespace winnow
