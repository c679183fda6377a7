#include "cli/progress_line.h"

#include <gtest/gtest.h>

namespace winnow {
namespace {

const PrefillState kState{
    .progress = {.done = 41984, .reused = 2048, .total = 102400, .elapsed_s = 68, .eta_s = 112},
    .tokens_per_second = 587.3,
    .tokens_per_second_now = 540.2,
    .memory_bytes = int64_t{1945} << 20};

TEST(ProgressLine, TellsHowFarHowFastAndHowLong) {
  EXPECT_EQ(prefill_line(kState, 200),
            "prefill 41% of 102 400  587 tok/s  ETA 1:52  memory 1.9 GiB  Ctrl+C cancels  "
            "elapsed 1:08  now 540 tok/s  cached 2 048");
}

TEST(ProgressLine, EightyColumnsHoldSpeedTimeMemoryAndTheWayOut) {
  const PrefillState state{
      .progress = {.done = 127999, .total = 128000, .elapsed_s = 9000, .eta_s = 35999},
      .tokens_per_second = 1234,
      .tokens_per_second_now = 1234,
      .memory_bytes = int64_t{7} << 30};
  EXPECT_EQ(prefill_line(state, 79),
            "prefill 99% of 128 000  1234 tok/s  ETA 9:59:59  memory 7.0 GiB  Ctrl+C cancels");
}

TEST(ProgressLine, ANarrowTerminalGetsTheMostImportantParts) {
  EXPECT_EQ(prefill_line(kState, 46), "prefill 41% of 102 400  587 tok/s  ETA 1:52");
  for (size_t width = 1; width < 130; ++width) EXPECT_LE(prefill_line(kState, width).size(), width);
}

TEST(ProgressLine, TellsTheDensityWhereSomeRowsAreSparse) {
  PrefillState state = kState;
  state.progress.attention = {.causal_pairs = 100, .kept_pairs = 21, .selection_pairs = 5};
  EXPECT_EQ(prefill_line(state, 100),
            "prefill 41% of 102 400  587 tok/s  ETA 1:52  memory 1.9 GiB  Ctrl+C cancels  "
            "density 0.21");
}

TEST(ProgressLine, BeforeTheFirstChunkThereIsNoSpeed) {
  const PrefillState state{.progress = {.total = 900, .elapsed_s = 2}, .memory_bytes = 5 << 20};
  EXPECT_EQ(prefill_line(state, 200),
            "prefill 0% of 900  elapsed 0:02  memory 5 MiB  Ctrl+C cancels");
}

TEST(ProgressLine, NumbersReadWell) {
  EXPECT_EQ(grouped(0), "0");
  EXPECT_EQ(grouped(999), "999");
  EXPECT_EQ(grouped(1000), "1 000");
  EXPECT_EQ(grouped(1234567), "1 234 567");
  EXPECT_EQ(clock_time(59.6), "1:00");
  EXPECT_EQ(clock_time(3725), "1:02:05");
  EXPECT_EQ(clock_time(-1), "0:00");
  EXPECT_EQ(clock_time(1e300), "100:00:00");
  EXPECT_EQ(binary_size(int64_t{3} << 29), "1.5 GiB");
}

}  // namespace
}  // namespace winnow
