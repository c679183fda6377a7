#include "cli/needle_report.h"

#include <algorithm>
#include <boost/json/array.hpp>
#include <map>

#include "cli/formatted.h"
#include "cli/heat_map.h"
#include "cli/json_output.h"

namespace winnow {
namespace {

constexpr int64_t kNumDepths = 10;

// All prompts of one length.
struct LengthResult {
  int64_t num_prompts = 0;
  std::vector<NeedleCell> cells = {};
  AttentionStats dense = {};
  AttentionStats sparse = {};
};

std::map<int64_t, LengthResult> by_length(std::span<const NeedleResult> results) {
  std::map<int64_t, LengthResult> lengths;
  for (const NeedleResult& result : results) {
    LengthResult& length = lengths[result.num_tokens];
    ++length.num_prompts;
    length.cells.insert(length.cells.end(), result.cells.begin(), result.cells.end());
    length.dense.add(result.dense);
    length.sparse.add(result.sparse);
  }
  return lengths;
}

double share(int64_t part, int64_t whole) {
  return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
}

boost::json::object tally_json(const NeedleTally& sum) {
  return {{"needles", sum.num_needles},
          {"exact", sum.num_exact},
          {"digits", sum.num_digits},
          {"digits_right", sum.num_digits_right}};
}

boost::json::object attention_json(const LengthResult& length, bool sparse) {
  const AttentionStats& stats = sparse ? length.sparse : length.dense;
  return {{"after", tally_json(tally(length.cells, NeedleKind::kAskedAfter, sparse))},
          {"inside", tally_json(tally(length.cells, NeedleKind::kRecalledInside, sparse))},
          {"density", stats.density()},
          {"effective_density", stats.effective_density()}};
}

std::string_view kind_name(NeedleKind kind) {
  return kind == NeedleKind::kAskedAfter ? "after" : "inside";
}

std::string table_row(int64_t num_tokens, const LengthResult& length, bool sparse) {
  const AttentionStats& stats = sparse ? length.sparse : length.dense;
  std::string row =
      formatted("%8lld  %7lld  %-9s", static_cast<long long>(num_tokens),
                static_cast<long long>(length.num_prompts), sparse ? "sparse" : "dense");
  for (const NeedleKind kind : {NeedleKind::kAskedAfter, NeedleKind::kRecalledInside}) {
    const NeedleTally sum = tally(length.cells, kind, sparse);
    row += formatted("  %4lld/%-4lld  %6.1f %%", static_cast<long long>(sum.num_exact),
                     static_cast<long long>(sum.num_needles),
                     100 * share(sum.num_digits_right, sum.num_digits));
  }
  return row + formatted("  %7.3f  %9.3f\n", stats.density(), stats.effective_density());
}

HeatMap heat_map(const std::map<int64_t, LengthResult>& lengths, NeedleKind kind, bool sparse) {
  HeatMap map;
  map.title = std::string(kind == NeedleKind::kAskedAfter ? "asked after" : "recalled inside") +
              (sparse ? ", sparse" : ", dense");
  for (int64_t depth = 0; depth < kNumDepths; ++depth) {
    map.row_names.push_back(formatted("%lld %%", static_cast<long long>(depth * 100 / kNumDepths)));
  }
  map.values.resize(kNumDepths);
  for (const auto& [num_tokens, length] : lengths) {
    map.column_names.push_back(std::to_string(num_tokens));
    std::vector<std::vector<NeedleCell>> by_depth(kNumDepths);
    for (const NeedleCell& cell : length.cells) {
      const auto depth = static_cast<int64_t>(cell.depth * kNumDepths);
      by_depth[static_cast<size_t>(std::clamp<int64_t>(depth, 0, kNumDepths - 1))].push_back(cell);
    }
    for (size_t depth = 0; depth < by_depth.size(); ++depth) {
      const NeedleTally sum = tally(by_depth[depth], kind, sparse);
      map.values[depth].push_back(sum.num_digits == 0
                                      ? std::nullopt
                                      : std::optional(share(sum.num_digits_right, sum.num_digits)));
    }
  }
  return map;
}

}  // namespace

NeedleTally tally(std::span<const NeedleCell> cells, NeedleKind kind, bool sparse) {
  NeedleTally sum;
  for (const NeedleCell& cell : cells) {
    if (cell.kind != kind) continue;
    const int64_t right = sparse ? cell.sparse_right : cell.dense_right;
    ++sum.num_needles;
    sum.num_exact += right == cell.num_digits;
    sum.num_digits += cell.num_digits;
    sum.num_digits_right += right;
  }
  return sum;
}

boost::json::object needle_json(std::span<const NeedleResult> results) {
  boost::json::array lengths;
  for (const auto& [num_tokens, length] : by_length(results)) {
    lengths.push_back(boost::json::object{{"length", num_tokens},
                                          {"prompts", length.num_prompts},
                                          {"dense", attention_json(length, false)},
                                          {"sparse", attention_json(length, true)}});
  }
  boost::json::array cells;
  for (const NeedleResult& result : results) {
    for (const NeedleCell& cell : result.cells) {
      cells.push_back(boost::json::object{{"length", result.num_tokens},
                                          {"prompt", json_text(result.name)},
                                          {"kind", kind_name(cell.kind)},
                                          {"depth", cell.depth},
                                          {"digits", cell.num_digits},
                                          {"dense", cell.dense_right},
                                          {"sparse", cell.sparse_right}});
    }
  }
  return {{"lengths", lengths}, {"cells", cells}};
}

std::string needle_table(std::span<const NeedleResult> results) {
  std::string table =
      "                               asked after          recalled inside\n"
      "  length  prompts  attention   exact      digits    exact      digits  density  effective\n";
  for (const auto& [num_tokens, length] : by_length(results)) {
    table += table_row(num_tokens, length, false) + table_row(num_tokens, length, true);
  }
  return table;
}

std::string needle_svg(std::span<const NeedleResult> results) {
  const std::map<int64_t, LengthResult> lengths = by_length(results);
  std::vector<HeatMap> maps;
  for (const NeedleKind kind : {NeedleKind::kAskedAfter, NeedleKind::kRecalledInside}) {
    for (const bool sparse : {false, true}) maps.push_back(heat_map(lengths, kind, sparse));
  }
  return heat_maps_svg("digits right by prompt length and depth of the needle", maps);
}

}  // namespace winnow
