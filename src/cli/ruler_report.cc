#include "cli/ruler_report.h"

#include <algorithm>
#include <boost/json/array.hpp>
#include <cmath>
#include <numeric>

#include "base/check.h"
#include "base/lower_case.h"
#include "cli/formatted.h"
#include "cli/json_output.h"
#include "cli/random_choice.h"
#include "cli/statistics.h"

namespace winnow {
namespace {

// Scores of a task, or of several with equal weight; from 0 to 100.
struct Summary {
  std::string name;
  size_t num_tasks = 0;
  size_t num_samples = 0;
  double dense = 0;
  double sparse = 0;
  Interval difference = {};
};

struct TaskScores {
  std::string name;
  std::vector<double> dense;
  std::vector<double> difference;  // sparse minus dense, sample by sample
};

std::vector<TaskScores> by_task(std::span<const RulerResult> results) {
  std::vector<TaskScores> tasks;
  for (const RulerResult& result : results) {
    auto task = std::find_if(tasks.begin(), tasks.end(),
                             [&](const TaskScores& seen) { return seen.name == result.task; });
    if (task == tasks.end())
      task = tasks.insert(task, TaskScores{std::string(result.task), {}, {}});
    task->dense.push_back(100 * result.dense_score);
    task->difference.push_back(100 * (result.sparse_score - result.dense_score));
  }
  return tasks;
}

Summary summary(const std::string& name, std::span<const TaskScores> tasks) {
  Summary sum{.name = name, .num_tasks = tasks.size()};
  if (tasks.empty()) return sum;
  std::vector<std::vector<double>> differences;
  double difference = 0;
  for (const TaskScores& task : tasks) {
    sum.num_samples += task.dense.size();
    sum.dense += mean(task.dense) / static_cast<double>(tasks.size());
    difference += mean(task.difference) / static_cast<double>(tasks.size());
    differences.push_back(task.difference);
  }
  sum.sparse = sum.dense + difference;
  sum.difference = bootstrap_interval(differences);
  return sum;
}

struct Summaries {
  std::vector<Summary> tasks;
  Summary all;
  Summary solved;
};

Summaries summaries(std::span<const RulerResult> results) {
  const std::vector<TaskScores> tasks = by_task(results);
  std::vector<TaskScores> solved;
  Summaries sums;
  for (const TaskScores& task : tasks) {
    sums.tasks.push_back(summary(task.name, {&task, 1}));
    if (mean(task.dense) > 50) solved.push_back(task);
  }
  sums.all = summary("all", tasks);
  sums.solved = summary("dense > 50", solved);
  return sums;
}

boost::json::object summary_json(const Summary& sum) {
  return {{"samples", sum.num_samples}, {"dense", sum.dense},
          {"sparse", sum.sparse},       {"difference", sum.sparse - sum.dense},
          {"low", sum.difference.low},  {"high", sum.difference.high}};
}

boost::json::object several_json(const Summary& sum) {
  boost::json::object json = summary_json(sum);
  json["tasks"] = sum.num_tasks;
  return json;
}

boost::json::object sample_json(const RulerResult& result) {
  boost::json::array references;
  for (const std::string& reference : result.references) references.push_back(json_text(reference));
  return {{"task", result.task},
          {"tokens", result.num_tokens},
          {"references", references},
          {"dense_answer", json_text(result.dense_answer)},
          {"sparse_answer", json_text(result.sparse_answer)},
          {"dense", 100 * result.dense_score},
          {"sparse", 100 * result.sparse_score},
          {"density", result.sparse.density()},
          {"effective_density", result.sparse.effective_density()}};
}

AttentionStats total_attention(std::span<const RulerResult> results) {
  AttentionStats total;
  for (const RulerResult& result : results) total.add(result.sparse);
  return total;
}

std::string table_row(const Summary& sum) {
  if (sum.num_tasks == 0) return "";
  return formatted("%-16s  %7zu  %6.1f  %6.1f  %+10.1f  (%+.1f to %+.1f)\n", sum.name.c_str(),
                   sum.num_samples, sum.dense, sum.sparse, sum.sparse - sum.dense,
                   sum.difference.low, sum.difference.high);
}

}  // namespace

double ruler_score(std::string_view answer, std::span<const std::string> references) {
  CHECK(!references.empty());
  const std::string lowered = lower_case(answer);
  int64_t found = 0;
  for (const std::string& reference : references) {
    found += lowered.find(lower_case(reference)) != std::string::npos;
  }
  return static_cast<double>(found) / static_cast<double>(references.size());
}

Interval bootstrap_interval(std::span<const std::vector<double>> groups) {
  constexpr size_t kNumDraws = 4000;
  constexpr uint64_t kSeed = 1;
  RandomStream random(kSeed);
  std::vector<double> means(kNumDraws);
  for (double& drawn : means) {
    for (const std::vector<double>& group : groups) {
      CHECK(!group.empty());
      double sum = 0;
      for (size_t i = 0; i < group.size(); ++i) sum += group[below(random, group.size())];
      drawn += sum / static_cast<double>(group.size() * groups.size());
    }
  }
  std::sort(means.begin(), means.end());
  return {means[kNumDraws / 40], means[kNumDraws - 1 - kNumDraws / 40]};
}

boost::json::object ruler_json(std::span<const RulerResult> results) {
  const Summaries sums = summaries(results);
  boost::json::array tasks;
  for (const Summary& sum : sums.tasks) {
    boost::json::object task{{"task", sum.name}};
    for (const auto& member : summary_json(sum)) task.insert(member);
    tasks.push_back(std::move(task));
  }
  boost::json::array samples;
  for (const RulerResult& result : results) samples.push_back(sample_json(result));
  const AttentionStats attention = total_attention(results);
  return {{"tasks", tasks},
          {"all", several_json(sums.all)},
          {"solved", several_json(sums.solved)},
          {"density", attention.density()},
          {"effective_density", attention.effective_density()},
          {"samples", samples}};
}

std::string ruler_table(std::span<const RulerResult> results) {
  const Summaries sums = summaries(results);
  std::string table = "task              samples   dense  sparse  difference  (95 %)\n";
  for (const Summary& sum : sums.tasks) table += table_row(sum);
  const AttentionStats attention = total_attention(results);
  return table + table_row(sums.all) + table_row(sums.solved) +
         formatted("density %.3f, effective %.3f\n", attention.density(),
                   attention.effective_density());
}

}  // namespace winnow
