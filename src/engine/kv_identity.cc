#include "engine/kv_identity.h"

#include <gnu/libc-version.h>

#include "base/mapped_file.h"
#include "model/decoder.h"
#include "store/byte_hash.h"

namespace winnow {
namespace {

std::string layout_name(const std::vector<KvLayout>& layouts) {
  ByteDigest digest;
  for (const KvLayout& layout : layouts) {
    const int32_t numbers[] = {
        layout.kv_heads,     layout.head_dim,    static_cast<int32_t>(layout.dtype),
        layout.block_tokens, layout.sketch_rank, kPageTokens};
    digest.add(std::as_bytes(std::span(numbers)));
  }
  return digest.hex();
}

}  // namespace

Result<std::string> kv_identity(const Model& model, const EngineOptions& options) {
  TRY(const MappedFile program, MappedFile::open("/proc/self/exe"));
  ByteDigest program_digest;
  program_digest.add(program.bytes());
  ByteDigest weights;
  for (const std::span<const std::byte> part : model.file().part_bytes()) weights.add(part);
  return "weights=" + weights.hex() + " program=" + program_digest.hex() +
         " libc=" + gnu_get_libc_version() +
         " kernels=" + std::string(isa_name(options.kernels->isa)) +
         " layout=" + layout_name(kv_layouts(model.config(), options.kv_dtype));
}

uint64_t profile_hash(const SparseProfile& profile) {
  std::vector<float> numbers = {profile.tau_factor};
  for (const SparseProfile::Layer& layer : profile.layers) {
    for (const std::vector<float>* moments : {&layer.moments.keys, &layer.moments.queries}) {
      numbers.push_back(static_cast<float>(moments->size()));
      numbers.insert(numbers.end(), moments->begin(), moments->end());
    }
  }
  return byte_hash(std::as_bytes(std::span(numbers)));
}

Result<std::unique_ptr<PrefixFolder>> open_prefix_folder(PrefixFolderPlace place,
                                                         const Model& model,
                                                         const EngineOptions& options) {
  TRY(std::string identity, kv_identity(model, options));
  return PrefixFolder::open(
      {.path = std::move(place.path),
       .limit_bytes = place.limit_bytes,
       .identity = std::move(identity),
       .page_bytes = bytes_per_page(kv_layouts(model.config(), options.kv_dtype)),
       .on_useless_file = std::move(place.on_useless_file)});
}

}  // namespace winnow
