// The endless products behind peak.h, plain enough for isa/ files.
#pragma once

#include <cstdint>

namespace winnow {

// Endless products of one kind of number, as a level's instructions make them.
struct PeakLoop {
  const char* number;               // "f32", "bf16", "int16", "int8"
  int64_t multiply_adds_per_round;  // on one thread
  void (*run)(int64_t rounds);
};
// Every loop of a level, ended by one whose `run` is null.
const PeakLoop* peak_loops_scalar();
const PeakLoop* peak_loops_avx2();
const PeakLoop* peak_loops_avx512();
const PeakLoop* peak_loops_avx512bf16();
const PeakLoop* peak_loops_amx();
const PeakLoop* peak_loops_neon();

}  // namespace winnow
