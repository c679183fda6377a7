// Choices drawn from a random stream.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include "sampling/random_stream.h"

namespace winnow {

// A number in [0, limit). Requires limit >= 1.
inline size_t below(RandomStream& random, size_t limit) {
  return static_cast<size_t>(random.next_u64() % limit);
}

template <class T>
void shuffle(std::vector<T>& items, RandomStream& random) {
  for (size_t left = items.size(); left > 1; --left) {
    std::swap(items[left - 1], items[below(random, left)]);
  }
}

// `count` of the numbers [0, limit), each at most once, in the order drawn. Requires count <=
// limit.
inline std::vector<size_t> distinct_below(RandomStream& random, size_t count, size_t limit) {
  std::vector<size_t> numbers(limit);
  for (size_t i = 0; i < limit; ++i) numbers[i] = i;
  shuffle(numbers, random);
  numbers.resize(count);
  return numbers;
}

}  // namespace winnow
