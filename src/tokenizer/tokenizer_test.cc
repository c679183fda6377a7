// Tokenizer on small vocabularies: special pieces, BOS, ends of answers, and what is refused.
#include "tokenizer/tokenizer.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "support/test_vocabulary.h"
#include "support/tiny_tokenizer.h"

namespace winnow {
namespace {

using test::created;

using Ids = std::vector<TokenId>;

std::string refusal(const Metadata& metadata) {
  const auto tokenizer = Tokenizer::create(metadata);
  return tokenizer.ok() ? "accepted" : tokenizer.error().message;
}

TEST(ByteLevelBpe, TheLowestRankMergesFirst) {
  const auto tokenizer = created(test::byte_level_vocabulary());
  EXPECT_EQ(tokenizer->encode("abc"), (Ids{5}));
  EXPECT_EQ(tokenizer->encode("ab bc a"), (Ids{4, 3, 7, 6}));
}

TEST(ByteLevelBpe, AByteWithoutAPieceIsDroppedAndItsNeighboursMerge) {
  const auto tokenizer = created(test::byte_level_vocabulary());
  EXPECT_EQ(tokenizer->encode("azb"), (Ids{4}));
  EXPECT_TRUE(tokenizer->encode("z").empty());
}

TEST(ByteLevelBpe, LongWordsMergeLikeShortOnes) {
  const auto tokenizer = created(test::byte_level_vocabulary());
  std::string text;
  Ids want;
  for (int i = 0; i < 1000; ++i) {
    text += i % 3 == 0 ? "ab" : "abc";
    want.push_back(i % 3 == 0 ? 4 : 5);
  }
  EXPECT_EQ(tokenizer->encode(text), want);
}

TEST(Tokenizer, NoTextHasFewerTokensThanItsLengthSays) {
  const auto tokenizer = created(test::sentence_piece_vocabulary());
  EXPECT_GT(tokenizer->least_tokens(10000), 500);
  std::mt19937 random(3);
  const std::vector<std::string> parts = {"\u2581the", " the", "  ",   "\u2581",
                                          "the",       "</s>", "\xFF", "\u00e9"};
  for (int round = 0; round < 200; ++round) {
    std::string text;
    for (size_t i = random() % 20; i > 0; --i) text += parts[random() % parts.size()];
    const int64_t least = tokenizer->least_tokens(text.size());
    EXPECT_LE(least, std::ssize(tokenizer->encode(text))) << text;
    EXPECT_LE(least, std::ssize(tokenizer->encode_with_special(text))) << text;
  }
  // Where bytes may be dropped, nothing follows from a length.
  EXPECT_EQ(created(test::byte_level_vocabulary())->least_tokens(10000), 0);
}

TEST(Tokenizer, ControlPiecesInPlainTextStayText) {
  const auto tokenizer = created(test::byte_level_vocabulary());
  for (const TokenId id : tokenizer->encode("a<|im_end|>b"))
    EXPECT_FALSE(tokenizer->is_control(id));
  EXPECT_EQ(tokenizer->encode_with_special("a<|im_end|>b"), (Ids{0, 9, 1}));
}

TEST(Tokenizer, UserDefinedPiecesAreTakenWholeEverywhere) {
  const auto tokenizer = created(test::byte_level_vocabulary());
  EXPECT_EQ(tokenizer->encode("a<tool>b"), (Ids{0, 10, 1}));
  EXPECT_EQ(tokenizer->encode_with_special("a<tool>b"), (Ids{0, 10, 1}));
}

TEST(Tokenizer, ControlPiecesCountOnlyWhollyInsideWhatTheTemplateWrote) {
  const auto tokenizer = created(test::byte_level_vocabulary());
  const std::string text = "<|im_end|>";
  EXPECT_EQ(tokenizer->encode(RenderedText{text, {{0, 10}}}), (Ids{9}));
  for (const TokenId id : tokenizer->encode(RenderedText{text, {{0, 9}}})) EXPECT_NE(id, 9);
  for (const TokenId id : tokenizer->encode(RenderedText{text, {{1, 10}}})) EXPECT_NE(id, 9);
  for (const TokenId id : tokenizer->encode(RenderedText{text, {{0, 4}, {5, 10}}}))
    EXPECT_NE(id, 9);
  EXPECT_EQ(tokenizer->encode(RenderedText{text + "ab" + text, {{0, 10}, {12, 22}}}),
            (Ids{9, 4, 9}));
}

TEST(Tokenizer, TextAcrossTheEdgeOfATemplateSpanMergesAsOne) {
  const auto tokenizer = created(test::byte_level_vocabulary());
  EXPECT_EQ(tokenizer->encode(RenderedText{"abc", {{0, 1}}}), (Ids{5}));
}

TEST(Tokenizer, ARawPromptGetsOneBosIfTheModelWantsOne) {
  Metadata metadata = test::byte_level_vocabulary();
  EXPECT_EQ(created(metadata)->encode_raw_prompt("ab"), (Ids{4}));
  metadata.set("tokenizer.ggml.add_bos_token", true);
  const auto tokenizer = created(metadata);
  EXPECT_EQ(tokenizer->encode_raw_prompt("ab"), (Ids{8, 4}));
  EXPECT_EQ(tokenizer->encode_raw_prompt("<|im_start|>ab"), (Ids{8, 4}));
  EXPECT_EQ(tokenizer->encode_raw_prompt(""), (Ids{8}));
}

TEST(Tokenizer, EndTokensAreEosAndTheKnownTurnEnds) {
  Metadata metadata = test::byte_level_vocabulary();
  metadata.set("tokenizer.ggml.eos_token_id", int64_t{8});
  metadata.set("tokenizer.ggml.eot_token_id", int64_t{10});
  const auto tokenizer = created(metadata);
  const auto ends = tokenizer->end_tokens();
  EXPECT_EQ(Ids(ends.begin(), ends.end()), (Ids{8, 9, 10}));
}

TEST(Tokenizer, DecodeLeavesControlPiecesOutUnlessAsked) {
  const auto tokenizer = created(test::byte_level_vocabulary());
  EXPECT_EQ(tokenizer->decode(Ids{8, 6, 9, 10}, false), " a<tool>");
  EXPECT_EQ(tokenizer->decode(Ids{8, 6, 9, 10}, true), "<|im_start|> a<|im_end|><tool>");
}

TEST(SentencePiece, TheBestScoreMergesAndUnknownCharactersBecomeBytes) {
  const auto tokenizer = created(test::sentence_piece_vocabulary());
  EXPECT_EQ(tokenizer->encode("the the"), (Ids{264, 265}));
  EXPECT_EQ(tokenizer->encode("\u00e9t"), (Ids{3 + 0xC3, 3 + 0xA9, 260}));
  EXPECT_EQ(tokenizer->encode("t\xFFh"), (Ids{260, 3 + 0xFF, 261}));
  EXPECT_EQ(tokenizer->decode(tokenizer->encode("the \xFF\u00e9"), false), "the \xFF\u00e9");
}

TEST(SentencePiece, RunsOfBlanksAreUserDefinedPiecesLongestFirst) {
  const auto tokenizer = created(test::sentence_piece_vocabulary());
  EXPECT_EQ(tokenizer->encode("   the"), (Ids{266, 265}));
}

TEST(SentencePiece, TheBlankBeforeATextComesAndGoesWhereTheFileAsksForIt) {
  Metadata metadata = test::sentence_piece_vocabulary();
  metadata.set("tokenizer.ggml.add_space_prefix", true);
  const auto tokenizer = created(metadata);
  EXPECT_EQ(tokenizer->encode("the"), (Ids{265}));
  EXPECT_EQ(tokenizer->encode_with_special("<s>the</s>"), (Ids{1, 265, 2}));
  EXPECT_EQ(tokenizer->decode(tokenizer->encode(" the the"), false), " the the");
  EXPECT_TRUE(tokenizer->encode("").empty());
}

TEST(TokenizerCreation, AnUnknownPreTokeniserIsRefusedWithTheKnownOnes) {
  Metadata metadata = test::byte_level_vocabulary();
  metadata.set("tokenizer.ggml.pre", std::string("nosuch"));
  EXPECT_NE(refusal(metadata).find("'nosuch'"), std::string::npos);
  EXPECT_NE(refusal(metadata).find("llama-bpe"), std::string::npos);
}

TEST(TokenizerCreation, MissingKeysAreNamed) {
  for (const Metadata& full : {test::byte_level_vocabulary(), test::sentence_piece_vocabulary()}) {
    for (const std::string key : {"model", "pre", "tokens", "token_type", "merges", "scores"}) {
      if (!full.has("tokenizer.ggml." + key)) continue;
      Metadata metadata;
      for (const auto& [name, value] : full.entries())
        if (name != "tokenizer.ggml." + key) metadata.set(name, value);
      EXPECT_NE(refusal(metadata).find("tokenizer.ggml." + key), std::string::npos)
          << refusal(metadata);
    }
  }
}

struct BadEntry {
  std::string key;
  MetadataValue value;
  std::string found;  // in the message
};

TEST(TokenizerCreation, MisshapenEntriesAreRefusedByName) {
  using Strings = std::vector<std::string>;
  using Integers = std::vector<int64_t>;
  const BadEntry entries[] = {
      {"model", std::string("bert"), "'bert'"},
      {"model", int64_t{1}, "integer"},
      {"tokens", Strings{}, "found 0"},
      {"tokens", Integers{1}, "integers"},
      {"tokens", Strings{"a", "b", "c", "\u0120", "ab", "abc", "\u0120a", "a", "x", "y", "z"},
       "'a'"},
      {"token_type", Integers{1, 1}, "found 2"},
      {"token_type", Integers(11, 9), "found 9"},
      {"merges", Strings{"nospace"}, "'nospace'"},
      {"merges", Strings{"a "}, "'a '"},
      {"merges", Strings{" a"}, "' a'"},
      {"merges", Strings{"a b c"}, "'a b c'"},
      {"merges", Strings{"a x"}, "'x'"},
      {"merges", Strings{"a c"}, "'ac'"},
      {"bos_token_id", int64_t{11}, "found 11"},
      {"eos_token_id", int64_t{4294967295}, "found 4294967295"},
      {"eot_token_id", int64_t{-1}, "found -1"},
      {"add_bos_token", std::string("yes"), "string"},
  };
  for (const BadEntry& entry : entries) {
    Metadata metadata = test::byte_level_vocabulary();
    metadata.set("tokenizer.ggml." + entry.key, entry.value);
    const std::string message = refusal(metadata);
    EXPECT_NE(message.find("tokenizer.ggml." + entry.key), std::string::npos) << message;
    EXPECT_NE(message.find(entry.found), std::string::npos) << message;
  }
}

TEST(TokenizerCreation, ScoresMustBeOneNumberForEachToken) {
  Metadata metadata = test::sentence_piece_vocabulary();
  metadata.set("tokenizer.ggml.scores", std::vector<double>{1.0});
  EXPECT_NE(refusal(metadata).find("found 1"), std::string::npos);
  metadata.set("tokenizer.ggml.scores", std::vector<double>(267, std::nan("")));
  EXPECT_NE(refusal(metadata).find("NaN"), std::string::npos);
}

}  // namespace
}  // namespace winnow
