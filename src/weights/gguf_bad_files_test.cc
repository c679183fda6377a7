// Files that are not what they should be: each refused by name, at once, with the place of the
// fault.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "support/gguf_builder.h"
#include "support/temp_folder.h"
#include "weights/gguf.h"
#include "weights/gguf_part.h"

namespace winnow {
namespace {

using test::Bytes;
using test::GgufBuilder;

// Two tensors, and metadata of every shape.
GgufBuilder sound_model() {
  GgufBuilder model;
  model.text("general.architecture", "llama")
      .number("x.count", uint32_t{30})
      .number("x.eps", 1e-5F);
  model.texts("x.tokens", {"a", "bc"})
      .array("x.types", std::vector<int32_t>{1, 3})
      .number("x.flag", true);
  model.floats("first", {8}, {0, 1, 2, 3, 4, 5, 6, 7});
  model.tensor("second", DType::kQ8_0, {32, 2}, Bytes(68));
  return model;
}

struct BadFile {
  const char* name;
  ErrorCode code;
  const char* words;  // which the message must hold, separated by |
  Bytes (*make)();
};

void PrintTo(const BadFile& bad, std::ostream* out) { *out << bad.name; }

Bytes changed(void (*change)(GgufBuilder&)) {
  GgufBuilder model = sound_model();
  change(model);
  return model.build();
}

Bytes text_file(std::string_view text) {
  Bytes bytes;
  for (const char letter : text) test::append(bytes, letter);
  return bytes;
}

Bytes array_header(uint32_t type, uint64_t count) {
  Bytes bytes;
  test::append(bytes, type);
  test::append(bytes, count);
  return bytes;
}

Bytes patched(size_t position, uint64_t value) {
  Bytes bytes = sound_model().build();
  std::memcpy(bytes.data() + position, &value, sizeof(value));
  return bytes;
}

constexpr uint64_t kHuge = uint64_t{1} << 60;

constexpr BadFile kBadFiles[] = {
    {"PlainText", ErrorCode::kCorruptFile, "magic|'hell'",
     [] { return text_file("hello world, this is no model\n"); }},
    {"GitLfsPointer", ErrorCode::kCorruptFile, "git-lfs",
     [] { return text_file("version https://git-lfs.github.com/spec/v1\n"); }},
    {"ZipArchive", ErrorCode::kCorruptFile, "zip",
     [] { return text_file("PK\3\4 and more bytes than a header has"); }},
    {"SafetensorsFile", ErrorCode::kCorruptFile, "magic",
     [] { return text_file(std::string("\x10\0\0\0\0\0\0\0{\"a\":1}        ", 23)); }},
    {"ControlCharactersInMagic", ErrorCode::kCorruptFile, "\\x1B[2",
     [] { return text_file("\x1B[2J and clear the screen of the user"); }},
    {"OneByte", ErrorCode::kCorruptFile, "magic|truncated", [] { return text_file("G"); }},
    {"Ggjt", ErrorCode::kCorruptFile, "before GGUF",
     [] { return text_file("tjgg\1\0\0\0 and so on"); }},
    {"BigEndian", ErrorCode::kUnsupported, "big-endian",
     [] { return changed([](GgufBuilder& m) { m.version = 0x03000000; }); }},
    {"Version0", ErrorCode::kUnsupported, "found 0",
     [] { return changed([](GgufBuilder& m) { m.version = 0; }); }},
    {"Version1", ErrorCode::kUnsupported, "found 1",
     [] { return changed([](GgufBuilder& m) { m.version = 1; }); }},
    {"Version4", ErrorCode::kUnsupported, "found 4",
     [] { return changed([](GgufBuilder& m) { m.version = 4; }); }},
    {"TensorCountHuge", ErrorCode::kCorruptFile, "number of tensors",
     [] { return patched(8, kHuge); }},
    {"TensorCountMax", ErrorCode::kCorruptFile, "18446744073709551615",
     [] { return patched(8, UINT64_MAX); }},
    {"TensorCountOneMore", ErrorCode::kCorruptFile, "tensor", [] { return patched(8, 3); }},
    {"OnlyTensorIsShort", ErrorCode::kCorruptFile, "'first'|truncated",
     [] {
       return changed([](GgufBuilder& m) {
         m.tensors.pop_back();
         m.tensors[0].data.resize(31);
       });
     }},
    {"KeyCountHuge", ErrorCode::kCorruptFile, "number of metadata keys",
     [] { return patched(16, kHuge); }},
    {"KeyCountMax", ErrorCode::kCorruptFile, "18446744073709551615",
     [] { return patched(16, UINT64_MAX); }},
    {"KeyCountOneMore", ErrorCode::kCorruptFile, "", [] { return patched(16, 7); }},
    {"KeyLengthHuge", ErrorCode::kCorruptFile, "metadata key 0", [] { return patched(24, kHuge); }},
    {"KeyEmpty", ErrorCode::kCorruptFile, "empty",
     [] { return changed([](GgufBuilder& m) { m.number("", 1); }); }},
    {"KeyTooLong", ErrorCode::kCorruptFile, "65535|65536",
     [] { return changed([](GgufBuilder& m) { m.number(std::string(65536, 'k'), 1); }); }},
    {"KeyTwice", ErrorCode::kCorruptFile, "'x.count'|twice",
     [] { return changed([](GgufBuilder& m) { m.entries.push_back(m.entries[1]); }); }},
    {"KeyWithEscapes", ErrorCode::kCorruptFile, "'\\x1B[31m\\n'",
     [] { return changed([](GgufBuilder& m) { m.raw("\x1B[31m\n", 99, {}); }); }},
    {"ValueType13", ErrorCode::kCorruptFile, "'x.bad'|found 13",
     [] { return changed([](GgufBuilder& m) { m.raw("x.bad", 13, Bytes(8)); }); }},
    {"ValueTypeMax", ErrorCode::kCorruptFile, "4294967295",
     [] { return changed([](GgufBuilder& m) { m.raw("x.bad", UINT32_MAX, Bytes(8)); }); }},
    {"ArrayOfUnknown", ErrorCode::kCorruptFile, "'x.bad'|found 13",
     [] { return changed([](GgufBuilder& m) { m.raw("x.bad", 9, array_header(13, 1)); }); }},
    {"ArrayOfArrays", ErrorCode::kCorruptFile, "array of arrays",
     [] { return changed([](GgufBuilder& m) { m.raw("x.bad", 9, array_header(9, 1)); }); }},
    {"ArrayOfBytesMax", ErrorCode::kCorruptFile, "'x.bad'",
     [] {
       return changed([](GgufBuilder& m) { m.raw("x.bad", 9, array_header(0, UINT64_MAX)); });
     }},
    {"ArrayWrapsToZero", ErrorCode::kCorruptFile, "'x.bad'",
     [] {
       return changed(
           [](GgufBuilder& m) { m.raw("x.bad", 9, array_header(10, uint64_t{1} << 61)); });
     }},
    {"ArrayOfNumbersAbove63Bits", ErrorCode::kCorruptFile, "2^63",
     [] {
       return changed([](GgufBuilder& m) { m.array("x.bad", std::vector<uint64_t>{UINT64_MAX}); });
     }},
    {"Alignment0", ErrorCode::kCorruptFile, "general.alignment|found 0",
     [] { return changed([](GgufBuilder& m) { m.number("general.alignment", uint32_t{0}); }); }},
    {"Alignment3", ErrorCode::kCorruptFile, "found 3",
     [] { return changed([](GgufBuilder& m) { m.number("general.alignment", uint32_t{3}); }); }},
    {"AlignmentNegative", ErrorCode::kCorruptFile, "found -32",
     [] { return changed([](GgufBuilder& m) { m.number("general.alignment", int32_t{-32}); }); }},
    {"AlignmentMax", ErrorCode::kCorruptFile, "general.alignment",
     [] { return changed([](GgufBuilder& m) { m.number("general.alignment", UINT64_MAX); }); }},
    {"AlignmentText", ErrorCode::kCorruptFile, "general.alignment",
     [] { return changed([](GgufBuilder& m) { m.text("general.alignment", "32"); }); }},
    {"AlignmentArray", ErrorCode::kCorruptFile, "general.alignment",
     [] {
       return changed(
           [](GgufBuilder& m) { m.array("general.alignment", std::vector<int32_t>{32}); });
     }},
    {"TensorNameEmpty", ErrorCode::kCorruptFile, "tensor 0|empty",
     [] { return changed([](GgufBuilder& m) { m.tensors[0].name = ""; }); }},
    {"TensorNameTooLong", ErrorCode::kCorruptFile, "65536",
     [] { return changed([](GgufBuilder& m) { m.tensors[0].name = std::string(65536, 't'); }); }},
    {"TensorTwice", ErrorCode::kCorruptFile, "'first'|twice",
     [] { return changed([](GgufBuilder& m) { m.tensors[1].name = "first"; }); }},
    {"NoDimensions", ErrorCode::kCorruptFile, "'first'|found 0",
     [] { return changed([](GgufBuilder& m) { m.tensors[0].dims = {}; }); }},
    {"FiveDimensions", ErrorCode::kCorruptFile, "'first'|found 5",
     [] { return changed([](GgufBuilder& m) {
            m.tensors[0].dims = {8, 1, 1, 1, 1};
          }); }},
    {"DimensionZero", ErrorCode::kCorruptFile, "'first'|dimension 0",
     [] { return changed([](GgufBuilder& m) { m.tensors[0].dims = {0}; }); }},
    {"DimensionNegative", ErrorCode::kCorruptFile, "'first'|dimension 1",
     [] { return changed([](GgufBuilder& m) {
            m.tensors[0].dims = {8, UINT64_MAX};
          }); }},
    {"ElementsOverflow", ErrorCode::kCorruptFile, "'first'|2^63",
     [] {
       return changed([](GgufBuilder& m) { m.tensors[0].dims = {1u << 31, 1u << 31, 1u << 31}; });
     }},
    {"ElementsWrapToFour", ErrorCode::kCorruptFile, "'first'",
     [] {
       return changed([](GgufBuilder& m) {
         m.tensors[0].dims = {4194305, 4194305, 211106198978564};
       });
     }},
    {"BytesOverflow", ErrorCode::kCorruptFile, "'first'",
     [] { return changed([](GgufBuilder& m) {
            m.tensors[0].dims = {kHuge, 4};
          }); }},
    {"LargerThanTheFile", ErrorCode::kCorruptFile, "'second'|truncated",
     [] { return changed([](GgufBuilder& m) {
            m.tensors[1].dims = {32, 3};
          }); }},
    {"RowNotWholeGroups", ErrorCode::kCorruptFile, "'second'|found 33|Q8_0",
     [] { return changed([](GgufBuilder& m) { m.tensors[1].dims = {33}; }); }},
    {"RemovedType4", ErrorCode::kUnsupported, "'first'|type number 4|Q4_K",
     [] { return changed([](GgufBuilder& m) { m.tensors[0].type = 4; }); }},
    {"RemovedType31", ErrorCode::kUnsupported, "type number 31",
     [] { return changed([](GgufBuilder& m) { m.tensors[0].type = 31; }); }},
    {"UnsupportedIq2", ErrorCode::kUnsupported, "type number 16",
     [] { return changed([](GgufBuilder& m) { m.tensors[0].type = 16; }); }},
    {"TypeMax", ErrorCode::kUnsupported, "4294967295",
     [] { return changed([](GgufBuilder& m) { m.tensors[0].type = UINT32_MAX; }); }},
    {"OffsetMisaligned", ErrorCode::kCorruptFile, "'second'|alignment 32|found 36",
     [] { return changed([](GgufBuilder& m) { m.tensors[1].offset = 36; }); }},
    {"OffsetBeyondTheFile", ErrorCode::kCorruptFile, "'second'|truncated",
     [] { return changed([](GgufBuilder& m) { m.tensors[1].offset = 1 << 20; }); }},
    {"OffsetWraps", ErrorCode::kCorruptFile, "'second'|2^64",
     [] { return changed([](GgufBuilder& m) { m.tensors[1].offset = UINT64_MAX - 31; }); }},
    {"SameBytes", ErrorCode::kCorruptFile, "shared",
     [] { return changed([](GgufBuilder& m) { m.tensors[1].offset = 0; }); }},
    {"FirstInsideSecond", ErrorCode::kCorruptFile, "'first'|shared",
     [] {
       return changed([](GgufBuilder& m) {
         m.tensors[0].offset = 32;
         m.tensors[1].offset = 0;
       });
     }},
    {"OfSplitPartTwo", ErrorCode::kInvalidArgument, "part 2 of 3|00001-of-00003",
     [] {
       return changed([](GgufBuilder& m) { m.number("split.no", 1).number("split.count", 3); });
     }},
    {"OfSplitWithoutItsName", ErrorCode::kCorruptFile, "split into 3|-00001-of-00003.gguf",
     [] { return changed([](GgufBuilder& m) { m.number("split.count", uint16_t{3}); }); }},
    {"SplitCountNegative", ErrorCode::kCorruptFile, "split.count|-3",
     [] { return changed([](GgufBuilder& m) { m.number("split.count", -3); }); }},
    {"SplitCountHuge", ErrorCode::kCorruptFile, "split.count",
     [] { return changed([](GgufBuilder& m) { m.number("split.count", UINT32_MAX); }); }},
    {"SplitCountText", ErrorCode::kCorruptFile, "split.count",
     [] { return changed([](GgufBuilder& m) { m.text("split.count", "3"); }); }},
};

class BadGgufFile : public testing::TestWithParam<BadFile> {};

TEST_P(BadGgufFile, IsRefusedByName) {
  const BadFile& bad = GetParam();
  const test::TempFolder folder;
  const std::string path = folder.write("bad.gguf", bad.make());
  const auto start = std::chrono::steady_clock::now();
  const auto file = GgufFile::open(path);
  const auto took = std::chrono::steady_clock::now() - start;
  ASSERT_FALSE(file.ok());
  const Error& error = file.error();
  EXPECT_EQ(error.code, bad.code) << error.message;
  EXPECT_NE(error.message.find("bad.gguf"), std::string::npos) << error.message;
  std::istringstream all_words(bad.words);
  for (std::string words; std::getline(all_words, words, '|');) {
    EXPECT_NE(error.message.find(words), std::string::npos)
        << "'" << words << "' is missing in: " << error.message;
  }
  EXPECT_LT(error.message.size(), 600u) << error.message;
  for (const char letter : error.message)
    EXPECT_GE(static_cast<unsigned char>(letter), 0x20) << error.message;
  EXPECT_LT(took, std::chrono::seconds(1));
}

INSTANTIATE_TEST_SUITE_P(All, BadGgufFile, testing::ValuesIn(kBadFiles),
                         [](const auto& test_info) { return std::string(test_info.param.name); });

TEST(GgufTruncation, EveryShorterFileIsRefused) {
  const Bytes whole = sound_model().build();
  ASSERT_TRUE(GgufFile::open_bytes(whole, "whole").ok());
  for (size_t size = 0; size < whole.size(); ++size) {
    // A fresh allocation of exactly this size lets the sanitizer see a read beyond it.
    const auto file = GgufFile::open_bytes(
        Bytes(whole.begin(), whole.begin() + static_cast<ptrdiff_t>(size)), "cut");
    ASSERT_FALSE(file.ok()) << "cut to " << size << " of " << whole.size();
    EXPECT_NE(file.error().message.find("cut: "), std::string::npos);
  }
}

TEST(GgufTruncation, TheMessageNamesTheSectionThatIsCut) {
  std::vector<std::pair<std::string, size_t>> edges;
  const Bytes whole = sound_model().build(&edges);
  for (const auto& [section, begin] : edges) {
    SCOPED_TRACE(section);
    const auto file = GgufFile::open_bytes(
        Bytes(whole.begin(), whole.begin() + static_cast<ptrdiff_t>(begin)), "cut");
    ASSERT_FALSE(file.ok());
    const std::string& message = file.error().message;
    const bool named = message.find("magic") != std::string::npos ||
                       message.find("version") != std::string::npos ||
                       message.find("number of") != std::string::npos ||
                       message.find("metadata key") != std::string::npos ||
                       message.find("tensor") != std::string::npos;
    EXPECT_TRUE(named) << message;
  }
}

TEST(GgufTruncation, SparseGiantsOfZeroesAreRefusedInLittleMemory) {
  const test::TempFolder folder;
  GgufBuilder model;
  model.raw("x.bytes", 9, array_header(0, uint64_t{1} << 34));
  const std::string path = folder.write("sparse.gguf", model.build());
  std::error_code error;
  std::filesystem::resize_file(path, uint64_t{1} << 35, error);
  if (error) GTEST_SKIP() << "the file system holds no sparse file of 32 GiB: " << error.message();
  rusage before = {};
  getrusage(RUSAGE_SELF, &before);
  const auto file = GgufFile::open(path);
  ASSERT_FALSE(file.ok());
  EXPECT_NE(file.error().message.find("'x.bytes'"), std::string::npos) << file.error().message;
  rusage after = {};
  getrusage(RUSAGE_SELF, &after);
  EXPECT_LT(after.ru_maxrss - before.ru_maxrss, 64 * 1024);
}

TEST(GgufPlaces, WhatIsNoFileIsRefusedByKind) {
  const test::TempFolder folder;
  const auto message = [](const std::string& path) { return GgufFile::open(path).error().message; };
  EXPECT_NE(message(folder.path("")).find("found a directory"), std::string::npos);
  EXPECT_NE(message("/dev/null").find("found a device"), std::string::npos);
  ASSERT_EQ(::mkfifo(folder.path("pipe").c_str(), 0600), 0);
  EXPECT_NE(message(folder.path("pipe")).find("found a pipe"), std::string::npos);
  EXPECT_EQ(GgufFile::open(folder.path("absent.gguf")).error().code, ErrorCode::kNotFound);
  EXPECT_NE(message(folder.path("absent.gguf")).find("absent.gguf: cannot open"),
            std::string::npos);
  EXPECT_NE(message(folder.write("empty.gguf", {})).find("empty file"), std::string::npos);
  EXPECT_EQ(GgufFile::open("").error().code, ErrorCode::kNotFound);
  EXPECT_FALSE(GgufFile::open(folder.path(std::string(5000, 'x'))).ok());
  EXPECT_FALSE(GgufFile::open(std::string("nul\0byte", 8)).ok());
  std::filesystem::create_symlink("loop", folder.path("loop"));
  EXPECT_FALSE(GgufFile::open(folder.path("loop")).ok());
}

TEST(GgufMutation, AnyFlippedByteOfTheHeaderIsReadOrRefusedWithAMessage) {
  const Bytes whole = sound_model().build();
  const size_t header_bytes = sound_model().build_header().size();
  for (size_t pos = 0; pos < header_bytes; ++pos) {
    for (const int mask : {0x01, 0x80, 0xFF}) {
      Bytes mutated = whole;
      mutated[pos] ^= static_cast<std::byte>(mask);
      const auto file = GgufFile::open_bytes(std::move(mutated), "flipped");
      EXPECT_TRUE(file.ok() || file.error().message.starts_with("flipped: "));
    }
  }
}

}  // namespace
}  // namespace winnow
