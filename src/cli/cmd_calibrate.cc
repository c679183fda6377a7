// winnow calibrate: profiles a model's attention, and finds how much may be left out.
#include <cmath>
#include <optional>
#include <string>
#include <vector>

#include "base/escape.h"
#include "cli/attention_comparison.h"
#include "cli/commands.h"
#include "cli/formatted.h"
#include "cli/json_output.h"
#include "cli/profile_setup.h"
#include "cli/profile_text.h"
#include "cli/text_input.h"
#include "engine/profile_file.h"

namespace winnow {
namespace {

struct CalibrateFlags {
  ModelFlags model;
  std::vector<std::string> files;
  std::optional<std::string> output;
  float target_kl = 0.01F;
  bool json = false;
};

// Halvings of the interval of log(tau): the factor is found to within 6 %.
constexpr int kSteps = 6;
constexpr float kLeastFactor = 0.1F;
constexpr float kMostFactor = 10;
constexpr int64_t kPositions = 512;

constexpr const char* kCalibrateFooter =
    "The profile holds second moments of keys and queries, in which the sketches of keys are\n"
    "fitted, and the factor of --sparse-tau at which the mean divergence on the text reaches\n"
    "--target-kl. Without -f a built-in text of prose, code, tables and conversation is read.\n"
    "Every verb uses the profile kept for the model; --sparse-profile names another.\n";

void add_flags(FlagSet& set, CalibrateFlags& flags, bool& quiet) {
  add_model_flag(set, flags.model);
  set.texts("-f,--file", flags.files, "text to profile on; may be repeated [a built-in text]");
  set.number("--target-kl", flags.target_kl, {1e-6F, 10}, "mean divergence to reach [0.01]");
  set.text("-o,--output", flags.output, "file to write [where the model's profile is kept]");
  add_engine_flags(set, flags.model);
  set.toggle("--json", flags.json, "print one JSON object");
  set.toggle("-q,--quiet", quiet, "no progress on stderr");
}

Result<std::string> read_texts(const CalibrateFlags& flags, Console& console) {
  if (flags.files.empty()) return std::string(profile_text());
  std::string all;
  for (const std::string& file : flags.files) {
    TRY(const std::string bytes, read_text_file(file, console.in));
    TRY(const DecodedText text, decode_text(bytes, input_name(file)));
    all += text.text + "\n";
  }
  return all;
}

struct Calibration {
  float factor = 1;
  double mean_kl = 0;
  AttentionStats attention = {};
};

Result<Calibration> try_factor(const LoadedModel& loaded, std::span<const TokenId> ids,
                               const SparseProfile& profile, float factor, Console& console) {
  SparseProfile scaled = profile;
  scaled.tau_factor = factor;
  loaded.engine->set_profile_source([&scaled](Engine&) -> Result<SparseProfile> { return scaled; });
  const SparseRule rule;
  TRY(const AttentionComparison found,
      compare_attention(loaded, ids, compared_positions(rule, std::ssize(ids), kPositions), rule,
                        console));
  return Calibration{factor, found.report.mean_kl, found.stats.other};
}

// The largest factor whose divergence stays within the target, by bisection: divergence grows with
// tau but for noise.
Result<Calibration> find_factor(const LoadedModel& loaded, std::span<const TokenId> ids,
                                const SparseProfile& profile, float target_kl, Console& console) {
  float low = kLeastFactor;
  float high = kMostFactor;
  std::optional<Calibration> best;
  for (int step = 0; step < kSteps; ++step) {
    const float factor = std::sqrt(low * high);
    TRY(const Calibration tried, try_factor(loaded, ids, profile, factor, console));
    console.note(formatted("tau factor %.3f: ", static_cast<double>(factor)) +
                 formatted("mean KL %.5f", tried.mean_kl));
    if (tried.mean_kl <= target_kl) {
      low = factor;
      best = tried;
    } else {
      high = factor;
    }
  }
  if (best) return *best;
  return try_factor(loaded, ids, profile, kLeastFactor, console);
}

Result<std::string> output_path(const CalibrateFlags& flags, const Model& model) {
  if (flags.output) return *flags.output;
  const std::optional<std::string> kept = profile_path(model);
  if (kept) return *kept;
  return fail(ErrorCode::kInvalidArgument,
              "--output: expected a file, since there is no home folder, found none");
}

}  // namespace

Result<ExitCode> cmd_calibrate(Arguments args, Console& console) {
  CalibrateFlags flags;
  FlagSet set("calibrate", "Profiles a model's attention for sparse prompts.", kCalibrateFooter);
  add_flags(set, flags, console.quiet);
  TRY(const bool go_on, parse_or_help(set, args, console));
  if (!go_on) return ExitCode::kOk;
  TRY(const std::string text, read_texts(flags, console));
  flags.model.num_contexts = 2;
  TRY(const LoadedModel loaded, load_model(flags.model, console));
  TRY(const std::string path, output_path(flags, *loaded.model));
  const std::vector<TokenId> ids = profile_ids(*loaded.engine, *loaded.tokenizer, text);
  TRY(SparseProfile profile, make_profile(*loaded.engine, ids, console));
  const SparseRule rule;
  Calibration found;
  if (rule.sparse_end(std::ssize(ids)) > rule.dense_tokens) {
    TRY(found, find_factor(loaded, ids, profile, flags.target_kl, console));
  }
  profile.tau_factor = found.factor;
  TRY_STATUS(keep_profile(profile, *loaded.model, path));
  if (flags.json) {
    console.out.write(
        json_line(boost::json::object{{"path", json_text(path)},
                                      {"tokens", ids.size()},
                                      {"tau_factor", found.factor},
                                      {"tau", rule.tau * found.factor},
                                      {"mean_kl", found.mean_kl},
                                      {"density", found.attention.density()},
                                      {"effective_density", found.attention.effective_density()}}));
  } else {
    console.out.write(escaped(path) + formatted("\ntau %.5f", rule.tau * found.factor) +
                      formatted(", mean KL %.5f", found.mean_kl) +
                      formatted(", effective density %.4f\n", found.attention.effective_density()));
  }
  return ExitCode::kOk;
}

}  // namespace winnow
