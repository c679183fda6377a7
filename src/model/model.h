// Model: weights of a model file bound to the description of its layers; constant after load.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "model/config.h"
#include "weights/gguf.h"

namespace winnow {

class ModelWeights;

class Model {
 public:
  // Maps the file and checks that every tensor its architecture needs is there with the right
  // shape.
  static Result<std::shared_ptr<const Model>> load(const std::string& path);
  static Result<std::shared_ptr<const Model>> from_file(std::unique_ptr<GgufFile> file);
  ~Model();

  const ModelConfig& config() const;
  const GgufFile& file() const;
  const ModelWeights& weights() const;
  int64_t weight_bytes() const;
  // In the file, but unknown to its architecture: worth a warning.
  const std::vector<std::string>& unused_tensors() const;

 private:
  struct Impl;
  explicit Model(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace winnow
