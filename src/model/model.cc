#include "model/model.h"

#include "model/weights.h"

namespace winnow {

struct Model::Impl {
  std::unique_ptr<GgufFile> file;
  ModelConfig config;
  ModelWeights weights;
};

Model::Model(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Model::~Model() = default;

Result<std::shared_ptr<const Model>> Model::load(const std::string& path) {
  TRY(std::unique_ptr<GgufFile> file, GgufFile::open(path));
  auto model = from_file(std::move(file));
  if (!model.ok())
    return fail(model.error().code, "%s: %s", path.c_str(), model.error().message.c_str());
  return model;
}

Result<std::shared_ptr<const Model>> Model::from_file(std::unique_ptr<GgufFile> file) {
  auto impl = std::make_unique<Impl>();
  impl->file = std::move(file);
  TRY(impl->config, read_model_config(impl->file->metadata()));
  TRY(impl->weights, ModelWeights::bind(*impl->file, impl->config));
  return std::shared_ptr<const Model>(new Model(std::move(impl)));
}

const ModelConfig& Model::config() const { return impl_->config; }
const GgufFile& Model::file() const { return *impl_->file; }
const ModelWeights& Model::weights() const { return impl_->weights; }

const std::vector<std::string>& Model::unused_tensors() const {
  return impl_->weights.unused_tensors;
}

int64_t Model::weight_bytes() const {
  int64_t bytes = 0;
  for (const TensorInfo& tensor : impl_->file->tensors()) bytes += tensor.num_bytes;
  return bytes;
}

}  // namespace winnow
