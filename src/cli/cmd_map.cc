// winnow map: pictures of the blocks that each layer and head kept for a prompt.
#include <algorithm>
#include <filesystem>
#include <limits>
#include <optional>

#include "cli/attention_flags.h"
#include "cli/commands.h"
#include "cli/eval_text.h"
#include "cli/formatted.h"
#include "cli/output_file.h"
#include "cli/progress_line.h"
#include "cli/prompt_reading.h"
#include "cli/selection_html.h"
#include "cli/selection_svg.h"
#include "server/selection_maps.h"

namespace winnow {
namespace {

// Cells on a side of each picture: of many, and of one alone.
constexpr int kSmallSide = 64;
constexpr int kLargeSide = 256;

struct MapFlags {
  ModelFlags model;
  EvalTextFlags text;
  AttentionFlags attention{.attention = "sparse"};
  int64_t layer_idx = kAll;
  int64_t head = kAll;
  std::optional<std::string> svg_file;
  std::optional<std::string> html_file;

  static constexpr int64_t kAll = -1;
};

constexpr const char* kMapFooter =
    "Reads the text as a prompt. A picture's rows are queries, its columns keys. The page of "
    "--html\n"
    "shows the text under the pointer and needs no other file.\n\n"
    "Example:\n"
    "  winnow map -m model.gguf -f book.txt --tokens 8192 --html map.html\n";

void add_flags(FlagSet& set, MapFlags& flags, bool& quiet) {
  constexpr int64_t kMax = std::numeric_limits<int32_t>::max();
  add_model_flag(set, flags.model);
  add_eval_text_flags(set, flags.text);
  set.integer("--layer", flags.layer_idx, {0, kMax}, "draw this layer only [all]");
  set.integer("--head", flags.head, {0, kMax}, "draw this query head only [all]");
  set.text("--svg", flags.svg_file, "file for one picture");
  set.text("--html", flags.html_file, "file for a page with the text");
  add_engine_flags(set, flags.model);
  add_attention_flags(set, flags.attention);
  set.toggle("-q,--quiet", quiet, "no progress on stderr");
}

Status check(const MapFlags& flags) {
  if (!flags.svg_file && !flags.html_file) {
    return fail(ErrorCode::kInvalidArgument,
                "--svg, --html: expected a file to draw to, found none");
  }
  return Ok{};
}

std::optional<int64_t> given(int64_t number) {
  return number == MapFlags::kAll ? std::nullopt : std::optional(number);
}

Status check_heads(const MapFlags& flags, const ModelConfig& config) {
  const int64_t num_layers = std::ssize(config.layers);
  int64_t num_heads = 0;
  for (const LayerConfig& layer : config.layers) {
    num_heads = std::max<int64_t>(num_heads, layer.heads);
  }
  const auto check_one = [](const char* flag, int64_t number, int64_t count) -> Status {
    if (number < count) return Ok{};
    return fail(ErrorCode::kInvalidArgument, "%s: expected a number from 0 to %lld, found %lld",
                flag, static_cast<long long>(count - 1), static_cast<long long>(number));
  };
  TRY_STATUS(check_one("--layer", flags.layer_idx, num_layers));
  return check_one("--head", flags.head, num_heads);
}

}  // namespace

Result<ExitCode> cmd_map(Arguments args, Console& console) {
  MapFlags flags;
  FlagSet set("map", "Draws which blocks of keys each layer and head kept for a prompt.",
              kMapFooter);
  add_flags(set, flags, console.quiet);
  TRY(const bool go_on, parse_or_help(set, args, console));
  if (!go_on) return ExitCode::kOk;
  TRY_STATUS(check(flags));
  TRY(const SparseRule rule, sparse_only(flags.attention));
  TRY(const std::string text, read_eval_text(flags.text, console));
  TRY(const LoadedModel loaded, load_model(flags.model, console));
  TRY_STATUS(check_heads(flags, loaded.model->config()));
  TRY(const std::vector<TokenId> ids, encode_eval_text(flags.text, text, loaded, 1));

  const std::optional<int64_t> layer = given(flags.layer_idx);
  const std::optional<int64_t> head = given(flags.head);
  SelectionMap map(std::ssize(ids), layer && head ? kLargeSide : kSmallSide, layer, head);
  TRY(const AttentionStats stats, read_sparsely(loaded, ids, rule, map, console));
  if (map.heads().empty()) {
    return fail(ErrorCode::kInvalidArgument,
                "--layer, --head: expected one that has sparse rows, found none");
  }
  const std::string source = flags.text.ids_file.value_or(flags.text.file.value_or(""));
  const std::string title = std::filesystem::path(flags.model.path).filename().string() + ", " +
                            std::filesystem::path(source).filename().string() + ", " +
                            grouped(std::ssize(ids)) + " tokens, " + prompt_attention_name(rule);
  if (flags.svg_file) {
    TRY_STATUS(write_file(*flags.svg_file, selection_svg(map, title)));
  }
  if (flags.html_file) {
    TRY_STATUS(write_file(*flags.html_file,
                          selection_html(map, title, cell_texts(map, *loaded.tokenizer, ids))));
  }
  console.out.write(formatted("%zu heads, density %.4f, effective density %.4f\n",
                              map.heads().size(), stats.density(), stats.effective_density()));
  return ExitCode::kOk;
}

}  // namespace winnow
