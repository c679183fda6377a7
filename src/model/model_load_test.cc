// Files that differ from a sound model in one point: loaded with the same results, or refused by
// name.
#include <gtest/gtest.h>

#include "model/model.h"
#include "support/gguf_builder.h"
#include "support/golden.h"
#include "support/step_runner.h"

namespace winnow {
namespace {

using test::GgufBuilder;

GgufBuilder sound_model() {
  auto file = GgufFile::open(test::golden_path("tiny/llama-group3.gguf"));
  EXPECT_TRUE(file.ok());
  return GgufBuilder::copy_of(**file);
}

Result<std::shared_ptr<const Model>> load(const GgufBuilder& builder) {
  TRY(std::unique_ptr<GgufFile> file, GgufFile::open_bytes(builder.build(), "changed model"));
  return Model::from_file(std::move(file));
}

std::vector<float> logits_of(const Model& model) {
  test::StepRunner runner(model, kernel_table(Isa::kScalar), 1, 1);
  test::FedSequence sequence;
  runner.prefill(sequence, std::vector<TokenId>{1, 5, 9, 200, 17, 3}, 128);
  return sequence.logits;
}

void expect_same_logits(const GgufBuilder& changed) {
  const auto model = load(changed);
  ASSERT_TRUE(model.ok()) << model.error().message;
  EXPECT_EQ(logits_of(**model), logits_of(**load(sound_model())));
}

void expect_refused(const GgufBuilder& changed, std::initializer_list<const char*> parts) {
  const auto model = load(changed);
  ASSERT_FALSE(model.ok());
  for (const char* part : parts) {
    EXPECT_NE(model.error().message.find(part), std::string::npos) << model.error().message;
  }
}

constexpr const char* kCounts[] = {"llama.block_count",          "llama.embedding_length",
                                   "llama.attention.head_count", "llama.attention.head_count_kv",
                                   "llama.feed_forward_length",  "llama.context_length"};

template <class T>
GgufBuilder with_counts_as() {
  GgufBuilder changed = sound_model();
  const auto file = GgufFile::open_bytes(changed.build(), "sound model");
  for (const char* key : kCounts) {
    changed.number(key, static_cast<T>((*file)->metadata().integer(key, 0, INT64_MAX).value()));
  }
  return changed;
}

TEST(ModelLoad, CountsOfAnyWidthGiveTheSameModel) {
  expect_same_logits(with_counts_as<uint16_t>());
  expect_same_logits(with_counts_as<uint32_t>());
  expect_same_logits(with_counts_as<uint64_t>());
  expect_same_logits(with_counts_as<int32_t>());
  expect_same_logits(with_counts_as<int64_t>());
}

TEST(ModelLoad, KeysWithDefaultsMayBeAbsent) {
  expect_same_logits(sound_model().remove("llama.rope.dimension_count").remove("llama.vocab_size"));
}

TEST(ModelLoad, ASecondCopyOfTheEmbeddingAsOutputChangesNothing) {
  GgufBuilder changed = sound_model();
  const GgufBuilder::Tensor embedding = *changed.find_tensor("token_embd.weight");
  changed.tensors.push_back({"output.weight", embedding.type, embedding.dims, embedding.data, {}});
  expect_same_logits(changed);
}

TEST(ModelLoad, AnUnknownTensorIsToldAndChangesNothing) {
  GgufBuilder changed = sound_model();
  changed.floats("blk.0.surprise.weight", {4}, {0, 0, 0, 0});
  expect_same_logits(changed);
  EXPECT_EQ((*load(changed))->unused_tensors(), std::vector<std::string>{"blk.0.surprise.weight"});
}

TEST(ModelLoad, AMissingTensorIsNamed) {
  for (const char* name : {"token_embd.weight", "output_norm.weight", "blk.1.attn_v.weight",
                           "blk.0.ffn_norm.weight", "blk.1.ffn_down.weight"}) {
    GgufBuilder changed = sound_model();
    std::erase_if(changed.tensors, [&](const auto& tensor) { return tensor.name == name; });
    expect_refused(changed, {name, "missing"});
  }
}

TEST(ModelLoad, AWrongShapeOfTheSameSizeIsNamedWithBothShapes) {
  GgufBuilder changed = sound_model();
  auto& dims = changed.find_tensor("blk.0.attn_q.weight")->dims;
  dims = {dims[0] / 2, dims[1] * 2};
  expect_refused(changed, {"blk.0.attn_q.weight", "expected shape", "found"});
  changed = sound_model();
  auto* norm = changed.find_tensor("blk.0.attn_norm.weight");
  norm->dims = {norm->dims[0] / 2, 2};
  expect_refused(changed, {"blk.0.attn_norm.weight", "expected shape"});
}

TEST(ModelLoad, MoreTokensThanEmbeddingRowsAreRefused) {
  GgufBuilder changed = sound_model();
  const auto file = GgufFile::open_bytes(changed.build(), "sound model");
  std::vector<std::string> tokens = **(*file)->metadata().strings("tokenizer.ggml.tokens");
  tokens.emplace_back("<extra>");
  changed.texts("tokenizer.ggml.tokens", tokens);
  expect_refused(changed, {"tokenizer.ggml.tokens", "token_embd.weight"});
}

TEST(ModelLoad, RowsBeyondTheVocabularyAreNeverChosen) {
  GgufBuilder changed = sound_model();
  const auto file = GgufFile::open_bytes(changed.build(), "sound model");
  std::vector<std::string> tokens = **(*file)->metadata().strings("tokenizer.ggml.tokens");
  const std::vector<float> all = logits_of(**load(changed));
  tokens.resize(tokens.size() - 7);
  changed.texts("tokenizer.ggml.tokens", tokens);
  const auto model = load(changed);
  ASSERT_TRUE(model.ok()) << model.error().message;
  EXPECT_EQ((*model)->config().vocab_size, static_cast<int32_t>(tokens.size()));
  EXPECT_EQ(logits_of(**model), std::vector<float>(all.begin(), all.end() - 7));
}

TEST(ModelLoad, HeadCountsThatContradictTheTensorsAreRefused) {
  expect_refused(sound_model().number("llama.attention.head_count", uint32_t{7}), {"head_count"});
  expect_refused(sound_model().number("llama.block_count", int32_t{-30}), {"llama.block_count"});
  expect_refused(sound_model().number("llama.block_count", uint32_t{50}), {"is missing"});
}

TEST(ModelLoad, FilesWithoutAnArchitectureOrItsKeysAreRefusedByKey) {
  expect_refused(sound_model().remove("general.architecture"), {"general.architecture"});
  expect_refused(sound_model().text("general.architecture", "mamba"), {"mamba", "llama"});
  for (const char* key : kCounts) {
    if (std::string_view(key) == "llama.attention.head_count_kv") continue;
    expect_refused(sound_model().remove(key), {key});
  }
}

TEST(ModelLoad, ImpossibleRopeFactorsAreRefused) {
  GgufBuilder changed = sound_model();
  const auto file = GgufFile::open_bytes(changed.build(), "sound model");
  const auto model =
      Model::from_file(std::move(GgufFile::open_bytes(changed.build(), "sound model")).value());
  const auto half = static_cast<size_t>((*model)->config().layers[0].rope.dims / 2);
  changed.floats("rope_freqs.weight", {half}, std::vector<float>(half, 0.0F));
  expect_refused(changed, {"rope_freqs.weight", "positive"});
}

}  // namespace
}  // namespace winnow
