// winnow inspect: what a model file holds, and what it would need in memory.
#include <boost/json/object.hpp>

#include "cli/commands.h"
#include "cli/json_output.h"
#include "cli/loaded_model.h"
#include "cli/progress_line.h"
#include "model/decoder.h"
#include "weights/inspect.h"

namespace winnow {
namespace {

// Memory of one run: the weights, which are mapped, and the KV cache, which grows by pages.
struct MemoryNeed {
  int64_t weights_bytes = 0;
  int64_t kv_bytes_per_token = 0;
  int64_t context_tokens = 0;

  int64_t full_context_bytes() const { return weights_bytes + kv_bytes_per_token * context_tokens; }
};

MemoryNeed memory_need(const FileSummary& summary, const ModelConfig& config) {
  MemoryNeed need{.weights_bytes = summary.tensor_bytes, .context_tokens = config.context_tokens};
  for (const KvLayout& layout : kv_layouts(config, KvDType::kBf16)) {
    need.kv_bytes_per_token += layout.page_bytes() / kPageTokens;
  }
  return need;
}

std::string memory_text(const MemoryNeed& need) {
  return "memory: " + binary_size(need.weights_bytes) + " weights + " +
         std::to_string(need.kv_bytes_per_token) + " bytes of KV per token; " +
         binary_size(need.full_context_bytes()) + " with the full context of " +
         grouped(need.context_tokens) + " tokens\n";
}

boost::json::object summary_json(const FileSummary& summary) {
  boost::json::object keys;
  for (const FileSummary::Key& key : summary.keys) {
    keys[key.name] = {{"type", key.type}, {"value", key.value}};
  }
  boost::json::array tensors;
  for (const FileSummary::Tensor& tensor : summary.tensors) {
    tensors.push_back({{"name", tensor.name},
                       {"type", tensor.type},
                       {"dims", boost::json::array(tensor.dims.begin(), tensor.dims.end())},
                       {"bytes", tensor.num_bytes}});
  }
  return {{"version", summary.version},       {"parts", summary.num_parts},
          {"file_bytes", summary.file_bytes}, {"tensor_bytes", summary.tensor_bytes},
          {"params", summary.num_elements},   {"metadata", std::move(keys)},
          {"tensors", std::move(tensors)}};
}

boost::json::object memory_json(const MemoryNeed& need) {
  return {{"weights_bytes", need.weights_bytes},
          {"kv_bytes_per_token", need.kv_bytes_per_token},
          {"context_tokens", need.context_tokens},
          {"full_context_bytes", need.full_context_bytes()}};
}

}  // namespace

Result<ExitCode> cmd_inspect(Arguments args, Console& console) {
  std::string path;
  bool json = false;
  FlagSet flags("inspect", "Prints metadata, tensors and memory needs of a GGUF file.",
                "Works on every well-formed file, whether or not this build can run it.\n");
  flags.text("FILE", path, "the model file, or the first part of one");
  flags.require_last();
  flags.toggle("--json", json, "print one JSON object");
  TRY(const bool go_on, parse_or_help(flags, args, console));
  if (!go_on) return ExitCode::kOk;
  TRY(const std::unique_ptr<GgufFile> file, open_model_file(path));
  const FileSummary summary = summarize(*file);
  const Result<ModelConfig> config = read_model_config(file->metadata());
  if (json) {
    boost::json::object object = summary_json(summary);
    object["supported"] = config.ok();
    if (config.ok()) object["memory"] = memory_json(memory_need(summary, *config));
    if (!config.ok()) object["unsupported_because"] = json_text(config.error().message);
    console.out.write(json_line(object));
    return ExitCode::kOk;
  }
  console.out.write(to_text(summary));
  console.out.write(config.ok() ? memory_text(memory_need(summary, *config))
                                : "cannot be run: " + config.error().message + "\n");
  return ExitCode::kOk;
}

}  // namespace winnow
