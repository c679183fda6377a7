// The supported architectures: for each, how its files differ from the common description.
#pragma once

#include <span>
#include <string_view>

#include "base/result.h"
#include "model/config.h"
#include "weights/metadata.h"

namespace winnow {

struct Architecture {
  std::string_view name;  // general.architecture
  // Adjusts a description that already holds everything the common keys say.
  Status (*describe)(const Metadata& metadata, ModelConfig& config);
};

std::span<const Architecture> architectures();

}  // namespace winnow
