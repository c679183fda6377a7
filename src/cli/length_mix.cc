#include "cli/length_mix.h"

#include <algorithm>
#include <charconv>

#include "base/escape.h"

namespace winnow {
namespace {

template <class T>
bool parse_all(std::string_view text, T& value) {
  const char* end = text.data() + text.size();
  const auto [stopped, error] = std::from_chars(text.data(), end, value);
  return error == std::errc() && stopped == end;
}

constexpr double kMaxWeight = 1e9;

}  // namespace

Result<LengthMix> LengthMix::parse(std::string_view text, int64_t max_length,
                                   const std::string& name) {
  LengthMix mix;
  double total = 0;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    const std::string_view part = text.substr(begin, end - begin);
    begin = end + 1;
    const size_t colon = std::min(part.find(':'), part.size());
    int64_t length = 0;
    double weight = 1;
    const bool length_ok = parse_all(part.substr(0, colon), length) && length >= 1;
    const bool weight_ok = colon == part.size() || parse_all(part.substr(colon + 1), weight);
    if (!length_ok || length > max_length || !weight_ok || !(weight > 0 && weight <= kMaxWeight)) {
      return fail(ErrorCode::kInvalidArgument,
                  "%s: expected LENGTH[:WEIGHT],... with lengths from 1 to %lld and weights above "
                  "0, found '%s'",
                  name.c_str(), static_cast<long long>(max_length), escaped(part, 60).c_str());
    }
    total += weight;
    mix.parts_.push_back({length, total});
  }
  return mix;
}

int64_t LengthMix::draw(RandomStream& random) const {
  const double at = random.next_unit() * parts_.back().upto;
  for (const Part& part : parts_) {
    if (at < part.upto) return part.length;
  }
  return parts_.back().length;
}

int64_t LengthMix::longest() const {
  int64_t length = 0;
  for (const Part& part : parts_) length = std::max(length, part.length);
  return length;
}

}  // namespace winnow
