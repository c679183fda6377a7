#include "model/config.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>
#include <optional>

namespace winnow {
namespace {

Metadata base_metadata(const std::string& architecture) {
  Metadata metadata;
  const std::string prefix = architecture + ".";
  metadata.set("general.architecture", architecture);
  metadata.set(prefix + "block_count", int64_t{18});
  metadata.set(prefix + "embedding_length", int64_t{640});
  metadata.set(prefix + "context_length", int64_t{32768});
  metadata.set(prefix + "feed_forward_length", int64_t{2048});
  metadata.set(prefix + "attention.head_count", int64_t{4});
  metadata.set(prefix + "attention.head_count_kv", int64_t{1});
  metadata.set(prefix + "attention.key_length", int64_t{256});
  metadata.set(prefix + "attention.layer_norm_rms_epsilon", 1e-6);
  if (architecture == "gemma3") metadata.set(prefix + "attention.sliding_window", int64_t{512});
  return metadata;
}

ModelConfig config_of(const Metadata& metadata) {
  auto config = read_model_config(metadata);
  EXPECT_TRUE(config.ok()) << config.error().message;
  return std::move(config).value();
}

void expect_error(const Metadata& metadata, ErrorCode code, const std::string& part) {
  const auto config = read_model_config(metadata);
  ASSERT_FALSE(config.ok()) << "expected an error about " << part;
  EXPECT_EQ(config.error().code, code) << config.error().message;
  EXPECT_NE(config.error().message.find(part), std::string::npos) << config.error().message;
}

TEST(ModelConfig, Gemma3DefaultsHoldWhereItsKeysAreAbsent) {
  const ModelConfig config = config_of(base_metadata("gemma3"));
  for (size_t i = 0; i < config.layers.size(); ++i) {
    SCOPED_TRACE(i);
    const LayerConfig& layer = config.layers[i];
    const bool sees_all = i == 5 || i == 11 || i == 17;
    EXPECT_EQ(layer.attention, sees_all ? AttentionKind::kFull : AttentionKind::kWindow);
    EXPECT_EQ(layer.window, sees_all ? 0 : 512);
    EXPECT_EQ(layer.rope.base, sees_all ? 1e6 : 10000.0);
    EXPECT_EQ(layer.rope.dims, 256);
    EXPECT_FLOAT_EQ(layer.attention_scale, 1.0F / 16);
    EXPECT_EQ(layer.attention_soft_cap, 0);
    EXPECT_TRUE(layer.qk_norm);
    EXPECT_EQ(layer.norms, NormPlacement::kSandwich);
  }
  EXPECT_FLOAT_EQ(config.embedding_scale, 25.298221F);
}

TEST(ModelConfig, Gemma3EmbeddingScaleIsTheExactRootOfTheWidth) {
  const std::map<int64_t, float> roots = {
      {640, 25.298221F}, {1152, 33.941125F}, {2560, 50.596443F}, {3072, 55.425626F}};
  for (const auto& [width, root] : roots) {
    Metadata metadata = base_metadata("gemma3");
    metadata.set("gemma3.embedding_length", width);
    EXPECT_FLOAT_EQ(config_of(metadata).embedding_scale, root);
  }
}

TEST(ModelConfig, Gemma3LinearScaleIsForLayersThatSeeEverything) {
  Metadata metadata = base_metadata("gemma3");
  metadata.set("gemma3.rope.freq_base", 5e5);
  metadata.set("gemma3.rope.scaling.type", std::string("linear"));
  metadata.set("gemma3.rope.scaling.factor", 8.0);
  const ModelConfig config = config_of(metadata);
  EXPECT_EQ(config.layers[5].rope.base, 5e5);
  EXPECT_EQ(config.layers[5].rope.linear_scale, 8);
  EXPECT_EQ(config.layers[4].rope.base, 10000.0);
  EXPECT_EQ(config.layers[4].rope.linear_scale, 1);
}

TEST(ModelConfig, Gemma3PatternMayBeAFlagPerLayer) {
  Metadata metadata = base_metadata("gemma3");
  std::vector<bool> windowed(18, true);
  windowed[2] = false;
  metadata.set("gemma3.attention.sliding_window_pattern", windowed);
  EXPECT_EQ(config_of(metadata).layers[2].attention, AttentionKind::kFull);
  EXPECT_EQ(config_of(metadata).layers[5].attention, AttentionKind::kWindow);
  metadata.set("gemma3.attention.sliding_window_pattern", std::vector<bool>(17, true));
  expect_error(metadata, ErrorCode::kCorruptFile, "sliding_window_pattern");
}

TEST(ModelConfig, FamiliesDifferInBiasNormAndRowOrder) {
  EXPECT_TRUE(config_of(base_metadata("llama")).layers[0].rope.interleaved_rows);
  EXPECT_TRUE(config_of(base_metadata("qwen2")).layers[0].qkv_bias);
  EXPECT_TRUE(config_of(base_metadata("qwen3")).layers[0].qk_norm);
  EXPECT_FALSE(config_of(base_metadata("qwen3")).layers[0].rope.interleaved_rows);
}

TEST(ModelConfig, HeadWidthDefaultsToWidthOverHeads) {
  Metadata metadata;
  const Metadata whole = base_metadata("llama");
  for (const auto& [key, value] : whole.entries()) {
    if (key != "llama.attention.key_length") metadata.set(key, value);
  }
  EXPECT_EQ(config_of(metadata).layers[0].head_dim, 160);
  EXPECT_EQ(config_of(metadata).layers[0].rope.dims, 160);
}

TEST(ModelConfig, KvHeadsMayBeAnArrayOfOnePerLayer) {
  Metadata metadata = base_metadata("llama");
  metadata.set("llama.attention.head_count_kv", std::vector<int64_t>(18, 2));
  EXPECT_EQ(config_of(metadata).layers[17].kv_heads, 2);
  metadata.set("llama.attention.head_count_kv", std::vector<int64_t>(17, 2));
  expect_error(metadata, ErrorCode::kCorruptFile, "head_count_kv");
}

TEST(ModelConfig, ErrorsNameTheKeyOrTheSupportedChoices) {
  expect_error(base_metadata("mamba"), ErrorCode::kUnsupported, "llama, qwen2, qwen3, gemma3");
  Metadata metadata = base_metadata("llama");
  metadata.set("llama.block_count", int64_t{-30});
  expect_error(metadata, ErrorCode::kCorruptFile, "llama.block_count");
  metadata = base_metadata("llama");
  metadata.set("llama.attention.head_count_kv", int64_t{3});
  expect_error(metadata, ErrorCode::kCorruptFile, "head_count_kv");
  metadata = base_metadata("llama");
  metadata.set("llama.attention.key_length", int64_t{24});
  expect_error(metadata, ErrorCode::kUnsupported, "key_length");
  metadata = base_metadata("llama");
  metadata.set("llama.expert_count", int64_t{8});
  expect_error(metadata, ErrorCode::kUnsupported, "expert_count");
}

TEST(ModelConfig, RopeScalingOtherThanLinearIsRefusedWhateverItsFactor) {
  for (const char* type : {"yarn", "longrope", "llama3", "dynamic", ""}) {
    for (const std::optional<double> factor : {std::optional<double>(), {1.0}, {4.0}}) {
      SCOPED_TRACE(type);
      Metadata metadata = base_metadata("qwen3");
      metadata.set("qwen3.rope.scaling.type", std::string(type));
      if (factor) metadata.set("qwen3.rope.scaling.factor", *factor);
      expect_error(metadata, ErrorCode::kUnsupported,
                   "qwen3.rope.scaling.type: supported are none and linear, found ");
    }
  }
}

TEST(ModelConfig, AFactorOfRopeScalingIsLinearUnlessTheTypeIsNone) {
  const auto scale = [](const char* key, const char* type) {
    Metadata metadata = base_metadata("llama");
    metadata.set(key, 4.0);
    if (type != nullptr) metadata.set("llama.rope.scaling.type", std::string(type));
    return config_of(metadata).layers[0].rope.linear_scale;
  };
  for (const char* key : {"llama.rope.scaling.factor", "llama.rope.scale_linear"}) {
    EXPECT_EQ(scale(key, nullptr), 4);
    EXPECT_EQ(scale(key, "linear"), 4);
    EXPECT_EQ(scale(key, "none"), 1);
  }
}

TEST(ModelConfig, NumbersBeyondTheirRangeAreNamedWithIt) {
  constexpr double kInf = std::numeric_limits<double>::infinity();
  const std::map<std::string, std::vector<double>> bad_values = {
      {"attention.layer_norm_rms_epsilon", {0, -1, 1, 1e30}},
      {"attention.scale", {0, -0.1, 1e9}},
      {"attn_logit_softcapping", {-1, 1e9}},
      {"final_logit_softcapping", {-30, 1e9}},
      {"rope.freq_base", {0, 0.5, -10000, 1e30}},
      {"rope.scaling.factor", {0, -1, 1e30}},
      {"rope.scale_linear", {0, -1, 1e30}},
      {"rope.freq_base_swa", {0, 0.5, -10000, 1e30}},
  };
  for (const auto& [key, values] : bad_values) {
    std::vector<double> all = values;
    all.insert(all.end(), {std::nan(""), kInf, -kInf});
    for (const double value : all) {
      SCOPED_TRACE(value);
      Metadata metadata = base_metadata("gemma3");
      metadata.set("gemma3." + key, value);
      expect_error(metadata, ErrorCode::kCorruptFile,
                   "'gemma3." + key + "': expected a number from ");
    }
  }
}

}  // namespace
}  // namespace winnow
