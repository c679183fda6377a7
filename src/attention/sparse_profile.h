// SparseProfile: what is known of a model's attention from texts other than the prompt.
#pragma once

#include <cstdint>
#include <vector>

#include "attention/sketch_basis.h"

namespace winnow {

struct SparseProfile {
  struct Layer {
    int32_t kv_heads = 0;
    int32_t head_dim = 0;
    SketchMoments moments;
  };
  std::vector<Layer> layers;  // one per layer of the model; those of window layers stay empty
  float tau_factor = 1;       // multiplies a rule's tau
};

}  // namespace winnow
