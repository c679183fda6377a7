// One prompt answered with dense and with sparse attention.
#pragma once

#include <boost/json/object.hpp>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "cli/answer.h"

namespace winnow {

struct AnswerPair {
  Answer dense = {};
  Answer sparse = {};
  // Of the first tokens, KL(dense || sparse) of what each is drawn from, as long as the answers
  // before it are the same.
  std::vector<double> kls = {};

  // The first token that is not the same in both; none if the answers are equal.
  std::optional<size_t> first_difference() const;
};

// Answers `request` with dense attention, then as request.sparse says, each from an empty cache and
// without printing. Its own on_logits is not called. kInterrupted after Ctrl+C.
Result<AnswerPair> compare_answers(const LoadedModel& loaded, const AnswerRequest& request,
                                   Console& console);

boost::json::object pair_json(const AnswerPair& pair);
std::string pair_text(const AnswerPair& pair);

}  // namespace winnow
