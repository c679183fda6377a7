#include "cli/needle_file.h"

#include <algorithm>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>

#include "base/escape.h"
#include "cli/json_output.h"

namespace winnow {
namespace {

using boost::json::object;

// Reads the objects of one array of a needle file.
class NeedleFile {
 public:
  NeedleFile(const object& file, int32_t vocab_size, const std::string& name)
      : file_(file), vocab_size_(vocab_size), name_(name) {}

  // Calls `take(element, its place in words)` for every element.
  template <class Take>
  Status each(const char* key, Take take) const {
    const boost::json::value* found = file_.if_contains(key);
    const boost::json::array* array = found == nullptr ? nullptr : found->if_array();
    if (array == nullptr) {
      return fail(ErrorCode::kInvalidArgument, "%s: expected an array under \"%s\", found %s",
                  escaped(name_).c_str(), key, shown(found).c_str());
    }
    for (size_t i = 0; i < array->size(); ++i) {
      const std::string place = name_ + ": " + key + "[" + std::to_string(i) + "]";
      const object* element = (*array)[i].if_object();
      if (element == nullptr) {
        return fail(ErrorCode::kInvalidArgument, "%s: expected an object, found %s",
                    escaped(place).c_str(), shown(&(*array)[i]).c_str());
      }
      TRY_STATUS(take(*element, place));
    }
    return Ok{};
  }

  Result<std::vector<TokenId>> some_ids(const object& element, const char* key,
                                        const std::string& place) const {
    TRY(std::vector<TokenId> ids, ids_from_object(element, key, vocab_size_, place));
    if (!ids.empty()) return ids;
    return fail(ErrorCode::kInvalidArgument, "%s: expected token ids under \"%s\", found none",
                escaped(place).c_str(), key);
  }

  static std::string shown(const boost::json::value* value) {
    return value == nullptr ? "nothing" : "'" + escaped(boost::json::serialize(*value), 60) + "'";
  }

 private:
  const object& file_;
  int32_t vocab_size_;
  const std::string& name_;
};

// Where `answer` stands first in the text before `end`.
Result<int64_t> find_needle(std::span<const TokenId> ids, int64_t end,
                            std::span<const TokenId> answer, const std::string& place) {
  const auto last = ids.begin() + end;
  const auto found = std::search(ids.begin(), last, answer.begin(), answer.end());
  if (found != last) return found - ids.begin();
  return fail(ErrorCode::kInvalidArgument,
              "%s: expected its answer among the %lld tokens before it, found it nowhere",
              escaped(place).c_str(), static_cast<long long>(end));
}

Result<int64_t> recall_position(const object& element, std::span<const TokenId> ids,
                                std::span<const TokenId> answer, const std::string& place) {
  const boost::json::value* value = element.if_contains("position");
  const int64_t* position = value == nullptr ? nullptr : value->if_int64();
  const int64_t last = std::ssize(ids) - std::ssize(answer);
  if (position != nullptr && *position >= 1 && *position <= last &&
      std::equal(answer.begin(), answer.end(), ids.begin() + *position)) {
    return *position;
  }
  return fail(ErrorCode::kInvalidArgument,
              "%s: expected under \"position\" where the answer stands in the ids, found %s",
              escaped(place).c_str(), NeedleFile::shown(value).c_str());
}

}  // namespace

Result<NeedlePrompt> needle_prompt_from_json(std::string_view text, int32_t vocab_size,
                                             const std::string& name) {
  NeedlePrompt prompt;
  TRY(prompt.ids, ids_from_json(text, "ids", vocab_size, name));
  const boost::json::value value = boost::json::parse(text);
  const NeedleFile file(value.as_object(), vocab_size, name);
  TRY_STATUS(
      file.each("asked_after", [&](const object& element, const std::string& place) -> Status {
        AskedNeedle asked;
        TRY(asked.question, file.some_ids(element, "question_ids", place));
        TRY(asked.answer, file.some_ids(element, "answer_ids", place));
        TRY(asked.needle, find_needle(prompt.ids, std::ssize(prompt.ids), asked.answer, place));
        prompt.asked_after.push_back(std::move(asked));
        return Ok{};
      }));
  TRY_STATUS(
      file.each("recalled_inside", [&](const object& element, const std::string& place) -> Status {
        RecalledNeedle recalled;
        TRY(recalled.answer, file.some_ids(element, "answer_ids", place));
        TRY(recalled.position, recall_position(element, prompt.ids, recalled.answer, place));
        TRY(recalled.needle, find_needle(prompt.ids, recalled.position, recalled.answer, place));
        prompt.recalled_inside.push_back(std::move(recalled));
        return Ok{};
      }));
  if (!prompt.ids.empty()) return prompt;
  return fail(ErrorCode::kInvalidArgument, "%s: expected token ids under \"ids\", found none",
              escaped(name).c_str());
}

}  // namespace winnow
