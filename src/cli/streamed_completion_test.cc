#include "cli/streamed_completion.h"

#include <gtest/gtest.h>

namespace winnow {
namespace {

std::string chunk(const std::string& text, const std::string& reason = "null") {
  return R"(data: {"choices":[{"index":0,"text":")" + text + R"(","finish_reason":)" + reason +
         "}],\"usage\":null}\n\n";
}

TEST(StreamedCompletion, EveryTokenIsTimedAndTheLastChunksAreNot) {
  StreamedCompletion answer(5, 1);
  answer.on_head(200);
  answer.on_body(": ping\n\n" + chunk(""), 2);
  answer.on_body(chunk("a") + chunk("b"), 3);
  answer.on_body(chunk("", "\"length\""), 4);
  answer.on_body(
      "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":6,\"completion_tokens\":3,"
      "\"prompt_tokens_details\":{\"cached_tokens\":2}}}\n\ndata: [DONE]\n\n",
      5);
  answer.on_end({}, 6);
  const RequestRecord& record = answer.record();
  EXPECT_TRUE(record.completed());
  EXPECT_EQ(record.chunk_s, (std::vector<double>{2, 3, 3}));
  EXPECT_EQ(record.prompt_tokens, 6);
  EXPECT_EQ(record.cached_tokens, 2);
  EXPECT_EQ(record.completion_tokens, 3);
  EXPECT_EQ(record.ended_s, 6);
}

TEST(StreamedCompletion, BytesMayBeCutAnywhere) {
  StreamedCompletion answer(5, 0);
  answer.on_head(200);
  const std::string body = chunk("a") + "data:{\"choices\":[{\"text\":\"b\"}]}\r\n\r\n" +
                           chunk("c", "\"stop\"") + "data: [DONE]\n\n";
  double now = 0;
  for (const char c : body) answer.on_body(std::string(1, c), ++now);
  answer.on_end({}, ++now);
  EXPECT_TRUE(answer.record().completed());
  EXPECT_EQ(answer.num_chunks(), 3);
  EXPECT_EQ(answer.record().output_tokens(), 3);
}

RequestFailure failure_after(int status, const std::string& body,
                             const std::optional<RequestFailure>& end = {}) {
  StreamedCompletion answer(5, 0);
  if (status != 0) answer.on_head(status);
  answer.on_body(body, 1);
  answer.on_end(end, 2);
  EXPECT_FALSE(answer.record().completed());
  return answer.record().failure.value_or(RequestFailure{});
}

TEST(StreamedCompletion, FailuresTellTheirKindAndReason) {
  RequestFailure found = failure_after(429, R"({"error":{"message":"the queue is full"}})");
  EXPECT_EQ(found.kind, "HTTP 429");
  EXPECT_EQ(found.message, "the queue is full");
  EXPECT_EQ(failure_after(502, "<html>\n").message, "<html>\\n");
  EXPECT_EQ(failure_after(500, "").message, "no reason given");
  found = failure_after(200, chunk("a") + "data: {\"error\":{\"message\":\"lost\"}}\n\n");
  EXPECT_EQ(found.kind, "stream");
  EXPECT_EQ(found.message, "lost");
  EXPECT_EQ(failure_after(200, chunk("a")).kind, "cut off");
  EXPECT_EQ(failure_after(200, "data: {nonsense\n\n").kind, "stream");
  EXPECT_EQ(failure_after(200, "{\"choices\":[]}").kind, "stream");
  EXPECT_EQ(failure_after(200, "").kind, "stream");
  found = failure_after(0, "", RequestFailure{"connect", "refused"});
  EXPECT_EQ(found.kind + " " + found.message, "connect refused");
  EXPECT_EQ(failure_after(200, chunk("a"), RequestFailure{"timeout", "x"}).kind, "timeout");
}

TEST(StreamedCompletion, OddChunksAreNoTokens) {
  StreamedCompletion answer(5, 0);
  answer.on_head(200);
  for (const char* text : {"{}", R"({"choices":7})", R"({"choices":[7]})", R"({"usage":7})",
                           R"({"usage":{"prompt_tokens":-1,"completion_tokens":"x"}})"}) {
    answer.on_body(std::string("data: ") + text + "\n\n", 1);
  }
  EXPECT_EQ(answer.num_chunks(), 0);
  EXPECT_FALSE(answer.record().prompt_tokens);
  EXPECT_FALSE(answer.record().completion_tokens);
  EXPECT_FALSE(answer.record().failure);
}

}  // namespace
}  // namespace winnow
