#include "weights/inspect.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <stdexcept>
#include <string>
#include <vector>

#include "support/gguf_builder.h"

namespace winnow {
namespace {

std::unique_ptr<GgufFile> sample_file() {
  test::GgufBuilder model;
  model.text("general.name", "line\nbreak \x1B[31m \xFF")
      .number("a.count", uint32_t{30})
      .number("a.eps", 1e-5F);
  model.number("a.flag", true)
      .number("a.large", UINT64_MAX)
      .texts("b.tokens", std::vector<std::string>(1000, "<s>"));
  model.array("b.types", std::vector<int32_t>{1, 2, 3}).array("b.none", std::vector<float>{});
  model.text("c.template", std::string(100000, 'x'));
  model.floats("norm\t", {4}, {1, 2, 3, 4})
      .tensor("weights", DType::kQ8_0, {32, 3}, test::Bytes(102));
  return std::move(GgufFile::open_bytes(model.build(), "sample")).value();
}

const FileSummary::Key& key_named(const FileSummary& summary, const std::string& name) {
  for (const FileSummary::Key& key : summary.keys) {
    if (key.name == name) return key;
  }
  throw std::runtime_error("no key " + name);
}

TEST(Inspect, ValuesAreShownWithTheirType) {
  const FileSummary summary = summarize(*sample_file());
  const auto expect = [&](const char* name, const char* type, const char* value) {
    EXPECT_EQ(key_named(summary, name).type, type);
    EXPECT_EQ(key_named(summary, name).value, value);
  };
  expect("a.count", "integer", "30");
  expect("a.eps", "number", "1e-05");
  expect("a.flag", "bool", "true");
  expect("a.large", "integer", "18446744073709551615");
  expect("b.types", "integer[3]", "[1, 2, 3]");
  expect("b.none", "number[0]", "[]");
}

TEST(Inspect, LongArraysAndTextsAreShortened) {
  const FileSummary summary = summarize(*sample_file());
  const FileSummary::Key& tokens = key_named(summary, "b.tokens");
  EXPECT_EQ(tokens.type, "string[1000]");
  EXPECT_EQ(tokens.value, R"(["<s>", "<s>", "<s>", "<s>", "<s>", "<s>", ...])");
  EXPECT_LT(key_named(summary, "c.template").value.size(), 200u);
}

TEST(Inspect, ControlCharactersAndBrokenBytesAreEscaped) {
  const FileSummary summary = summarize(*sample_file());
  EXPECT_EQ(key_named(summary, "general.name").value, R"("line\nbreak \x1B[31m \xFF")");
  EXPECT_EQ(summary.tensors[0].name, "norm\\t");
  for (const char letter : to_text(summary)) {
    EXPECT_TRUE(letter == '\n' || static_cast<unsigned char>(letter) >= 0x20);
  }
}

TEST(Inspect, TotalsAddUpByType) {
  const FileSummary summary = summarize(*sample_file());
  ASSERT_EQ(summary.totals.size(), 2u);
  EXPECT_EQ(summary.totals[0].type, "Q8_0");
  EXPECT_EQ(summary.totals[0].num_elements, 96);
  EXPECT_EQ(summary.totals[0].num_bytes, 102);
  EXPECT_EQ(summary.totals[1].type, "F32");
  EXPECT_EQ(summary.num_elements, 100);
  EXPECT_EQ(summary.tensor_bytes, 118);
}

TEST(Inspect, TheTextHasALinePerKeyAndTensor) {
  const FileSummary summary = summarize(*sample_file());
  const std::string text = to_text(summary);
  EXPECT_EQ(std::ranges::count(text, '\n'), 1 + 2 + 9 + 2 + 2 + 2 + 4);
  EXPECT_NE(text.find("  weights  Q8_0  32 x 3  102 bytes\n"), std::string::npos) << text;
}

}  // namespace
}  // namespace winnow
