#include "server/selection_maps.h"

#include <gtest/gtest.h>

#include "support/test_server.h"

namespace winnow {
namespace {

namespace json = boost::json;
using test::chat_body;
using test::ClientReply;
using test::TestServer;

const std::string kLongText(2000, 'a');

json::object map_body(const std::string& attention = "sparse") {
  json::object body = chat_body(kLongText);
  body["attention"] = attention;
  body["record_map"] = true;
  return body;
}

std::string answer_id(const ClientReply& reply) {
  EXPECT_EQ(reply.status, 200) << reply.body;
  return std::string(reply.json().at("id").as_string());
}

ClientReply get_map(TestServer& server, const std::string& id, const std::string& headers = {}) {
  return server.get("/winnow/map?request=" + id, headers);
}

// A record of 256 tokens in cells of 32, whose last tile kept block 3 of candidates 2 to 5.
std::shared_ptr<SelectionRecord> filled_record(SelectionMaps& maps, const std::string& id,
                                               const std::string& tenant = "") {
  auto record = maps.begin(id, tenant, std::vector<TokenId>(256, 5), ModelConfig{});
  if (record == nullptr) return record;
  const int32_t kept[] = {3};
  record->map.on_tile({.layer_idx = 1,
                       .head = 2,
                       .first_position = 224,
                       .num_positions = 32,
                       .block_tokens = 32,
                       .kept = kept,
                       .first_candidate = 2,
                       .end_candidate = 6});
  return record;
}

TEST(SelectionMaps, TheLastFewAreKept) {
  SelectionMaps maps;
  for (int i = 0; i < 10; ++i) maps.end(filled_record(maps, std::to_string(i)), {});
  for (int i = 0; i < 10; ++i) {
    const bool kept = i >= 10 - static_cast<int>(SelectionMaps::kMaxKept);
    EXPECT_EQ(maps.find(std::to_string(i), "") != nullptr, kept) << i;
  }
}

TEST(SelectionMaps, OnlySoManyAreFilledAtOnce) {
  SelectionMaps maps;
  std::vector<std::shared_ptr<SelectionRecord>> records;
  for (size_t i = 0; i < SelectionMaps::kMaxRecording; ++i) {
    records.push_back(filled_record(maps, std::to_string(i)));
    ASSERT_NE(records.back(), nullptr);
  }
  EXPECT_EQ(filled_record(maps, "more"), nullptr);
  records.pop_back();  // its request never ran
  records.push_back(filled_record(maps, "another"));
  EXPECT_NE(records.back(), nullptr);
  maps.end(records.front(), {});
  EXPECT_NE(filled_record(maps, "yet another"), nullptr);
}

TEST(SelectionMaps, BrokenAndDenseAnswersAreNotKept) {
  SelectionMaps maps;
  maps.end(filled_record(maps, "failed"), {.error = fail(ErrorCode::kIo, "broken")});
  maps.end(filled_record(maps, "cancelled"), {.finish = FinishReason::kCancelled});
  maps.end(maps.begin("dense", "", {1, 2, 3}, ModelConfig{}), {});
  for (const char* id : {"failed", "cancelled", "dense"}) EXPECT_EQ(maps.find(id, ""), nullptr);
}

TEST(SelectionMaps, BelongToTheirTenant) {
  SelectionMaps maps;
  maps.end(filled_record(maps, "a", "ours"), {});
  EXPECT_NE(maps.find("a", "ours"), nullptr);
  EXPECT_EQ(maps.find("a", "theirs"), nullptr);
}

TEST(SelectionMaps, ModelsWithManyHeadsHaveSmallerMaps) {
  ModelConfig config;
  config.layers.resize(2);
  EXPECT_EQ(selection_map_side(config), 64);
  config.layers.resize(128);
  for (LayerConfig& layer : config.layers) layer.heads = 128;
  const int side = selection_map_side(config);
  EXPECT_LE(128 * 128 * side * side * 8, 16 << 20);
  EXPECT_GE(side, 8);
}

TEST(SelectionMaps, CellsAreSharesOrDenseOrUnread) {
  TestServer server;
  SelectionMaps maps;
  const auto record = filled_record(maps, "a");
  maps.end(record, {.cached_tokens = 70});
  const json::value map = json::parse(selection_json(*record, server.tokenizer()));
  EXPECT_EQ(map.at("side"), 8);
  EXPECT_EQ(map.at("cell_tokens"), 32);
  EXPECT_EQ(map.at("texts").as_array().size(), 8U);
  ASSERT_EQ(map.at("heads").as_array().size(), 1U);
  const json::value& head = map.at("heads").at(0);
  EXPECT_EQ(head.at("layer"), 1);
  EXPECT_EQ(head.at("head"), 2);
  const auto cell = [&](size_t row, size_t column) {
    return head.at("cells").as_array().at(8 * row + column);
  };
  EXPECT_EQ(head.at("cells").as_array().size(), 64U);
  for (const size_t column : {0, 1, 3, 6, 7}) EXPECT_EQ(cell(7, column), 1) << column;
  for (const size_t column : {2, 4, 5}) EXPECT_EQ(cell(7, column), 0) << column;
  EXPECT_EQ(cell(6, 6), -1);
  EXPECT_TRUE(cell(6, 7).is_null()) << "later than the queries";
  EXPECT_TRUE(cell(1, 0).is_null()) << "cached";
  EXPECT_EQ(cell(2, 0), -1) << "cached in part";
}

TEST(SelectionMaps, AreAnsweredByTheIdOfTheAnswer) {
  TestServer server;
  const ClientReply map =
      get_map(server, answer_id(server.post("/v1/chat/completions", map_body())));
  ASSERT_EQ(map.status, 200) << map.body;
  const json::value seen = map.json();
  std::string text;
  for (const json::value& part : seen.at("texts").as_array()) text += part.as_string();
  EXPECT_NE(text.find(kLongText), std::string::npos);
  EXPECT_EQ(seen.at("heads").as_array().size(), 1U);
}

TEST(SelectionMaps, AreRecordedForSparseRequestsThatAskOnly) {
  TestServer server;
  json::object silent = map_body();
  silent.erase("record_map");
  for (const json::object& body : {map_body("dense"), silent}) {
    const std::string id = answer_id(server.post("/v1/chat/completions", body));
    EXPECT_EQ(get_map(server, id).status, 404);
  }
  for (const char* query : {"", "?", "?request=", "?request=%00", "?other=1"}) {
    EXPECT_EQ(server.get(std::string("/winnow/map") + query).status, 404) << query;
  }
}

TEST(SelectionMaps, NeedTheKeyOfTheirAnswer) {
  TestServer server({.keys = {"ours", "theirs"}});
  const std::string ours = "Authorization: Bearer ours\r\n";
  const std::string id = answer_id(server.post("/v1/chat/completions", map_body(), ours));
  EXPECT_EQ(get_map(server, id).status, 401);
  EXPECT_EQ(get_map(server, id, "Authorization: Bearer theirs\r\n").status, 404);
  EXPECT_EQ(get_map(server, id, ours).status, 200);
}

}  // namespace
}  // namespace winnow
