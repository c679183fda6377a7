// What shaped the pages of a model's KV cache, for those that outlive the process.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "attention/sparse_profile.h"
#include "engine/engine_options.h"
#include "model/model.h"
#include "store/prefix_folder.h"

namespace winnow {

// The bytes of the model file and of the program, the C library, the kernels, and the pages'
// layout: where all of it is the same, so is every bit of a page. Reads the whole model file. kIo
// if the program's own file cannot be read. Requires options.kernels.
Result<std::string> kv_identity(const Model& model, const EngineOptions& options);

// Differs between profiles that differ.
uint64_t profile_hash(const SparseProfile& profile);

struct PrefixFolderPlace {
  std::string path;
  int64_t limit_bytes = 0;
  std::function<void(const Error&)> on_useless_file = [](const Error&) {};
};
// The folder of prefixes for an engine of that model and with these options.
Result<std::unique_ptr<PrefixFolder>> open_prefix_folder(PrefixFolderPlace place,
                                                         const Model& model,
                                                         const EngineOptions& options);

}  // namespace winnow
