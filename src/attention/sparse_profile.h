// SparseProfile: what is known of a model's attention from texts other than the prompt.
#pragma once

#include <vector>

#include "attention/sketch_basis.h"

namespace winnow {

struct SparseProfile {
  struct Layer {
    SketchMoments moments;
    std::vector<float> tau_factors;  // per query head, multiply the rule's tau; empty = 1
  };
  std::vector<Layer> layers;  // one per layer of the model; those of window layers are unused
};

}  // namespace winnow
