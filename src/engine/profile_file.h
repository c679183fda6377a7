// Profile files: a model's SparseProfile on disk, with a checksum. Layout, little-endian:
//   8 bytes "WINPROF1", u64 fingerprint of the model, u32 number of layers,
//   per layer: u32 kv_heads, u32 head_dim (both zero for a layer without moments),
//     f32 keys [kv_heads][head_dim][head_dim], f32 queries likewise,
//   f32 tau factor, u64 FNV-1a hash of everything before it.
#pragma once

#include <cstdint>
#include <string>

#include "attention/sparse_profile.h"
#include "base/result.h"
#include "model/model.h"

namespace winnow {

// Differs between models whose weights differ: a hash of every tensor's name, type, shape and first
// bytes.
uint64_t model_fingerprint(const Model& model);

// The file is complete or not there: it is written beside its place and renamed. kIo naming the
// path.
Status save_profile(const SparseProfile& profile, uint64_t fingerprint, const std::string& path);

// kNotFound if there is no such file; kCorruptFile naming what was expected and found; a profile of
// another model is refused.
Result<SparseProfile> load_profile(const std::string& path, const Model& model);

}  // namespace winnow
