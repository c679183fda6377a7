// Encodes samples from stdin for tools/compare_tokenizers.py: tokenize_samples MODEL.gguf
// [REPEATS]. In: per sample a 32-bit length and the bytes. Out: per sample a 32-bit count and the
// ids; on stderr the CPU seconds of the fastest repeat.
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <string>
#include <vector>

#include "tokenizer/tokenizer.h"
#include "weights/gguf.h"

namespace winnow {
namespace {

std::vector<std::string> read_samples() {
  std::vector<std::string> samples;
  uint32_t size = 0;
  while (std::fread(&size, sizeof(size), 1, stdin) == 1) {
    std::string sample(size, '\0');
    if (std::fread(sample.data(), 1, size, stdin) != size) break;
    samples.push_back(std::move(sample));
  }
  return samples;
}

int run(const char* path, int num_repeats) {
  const auto file = GgufFile::open(path);
  if (!file.ok()) return std::fprintf(stderr, "%s\n", file.error().message.c_str()), 1;
  const auto tokenizer = Tokenizer::create((*file)->metadata());
  if (!tokenizer.ok()) return std::fprintf(stderr, "%s\n", tokenizer.error().message.c_str()), 1;
  const std::vector<std::string> samples = read_samples();
  std::vector<std::vector<TokenId>> ids(samples.size());
  double fastest = 1e30;
  for (int repeat = 0; repeat < num_repeats; ++repeat) {
    const std::clock_t begin = std::clock();
    for (size_t i = 0; i < samples.size(); ++i) ids[i] = (*tokenizer)->encode(samples[i]);
    fastest = std::min(fastest, static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC);
  }
  for (const std::vector<TokenId>& sample : ids) {
    const auto count = static_cast<uint32_t>(sample.size());
    std::fwrite(&count, sizeof(count), 1, stdout);
    std::fwrite(sample.data(), sizeof(TokenId), sample.size(), stdout);
  }
  std::fprintf(stderr, "%.6f\n", fastest);
  return 0;
}

}  // namespace
}  // namespace winnow

int main(int argc, char** argv) {
  if (argc < 2) return std::fputs("tokenize_samples MODEL.gguf [REPEATS]\n", stderr), 2;
  return winnow::run(argv[1], argc > 2 ? std::max(1, std::atoi(argv[2])) : 1);
}
