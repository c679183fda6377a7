// LengthMix: prompt lengths and how often each comes.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "sampling/random_stream.h"

namespace winnow {

class LengthMix {
 public:
  // "LENGTH[:WEIGHT],...": a weight counts relative to the others and is 1 if it is left out.
  // kInvalidArgument naming `name`; lengths lie in [1, max_length], weights are above 0.
  static Result<LengthMix> parse(std::string_view text, int64_t max_length,
                                 const std::string& name);

  int64_t draw(RandomStream& random) const;
  int64_t longest() const;

 private:
  struct Part {
    int64_t length = 0;
    double upto = 0;  // weights of this part and of those before it
  };
  std::vector<Part> parts_;  // at least one
};

}  // namespace winnow
