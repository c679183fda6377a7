#include "cli/eval_text.h"

#include "base/escape.h"
#include "cli/json_output.h"
#include "cli/text_input.h"

namespace winnow {

void add_eval_text_flags(FlagSet& set, EvalTextFlags& flags) {
  set.text("-f,--file", flags.file, "text to read; - reads stdin");
  set.text("--ids", flags.ids_file, "JSON file {\"ids\": [...]} with token ids to read");
  set.integer("--tokens", flags.max_tokens, {2, std::numeric_limits<int64_t>::max()},
              "read the first N tokens only [all]");
}

Result<std::string> read_eval_text(const EvalTextFlags& flags, Console& console) {
  if (flags.file.has_value() == flags.ids_file.has_value()) {
    return fail(ErrorCode::kInvalidArgument, "text: expected either -f or --ids, found %s",
                flags.file ? "both" : "neither");
  }
  return read_text_file(flags.ids_file ? *flags.ids_file : *flags.file, console.in);
}

Result<std::vector<TokenId>> encode_eval_text(const EvalTextFlags& flags, const std::string& text,
                                              const LoadedModel& loaded, size_t least) {
  std::vector<TokenId> ids;
  if (flags.ids_file) {
    TRY(ids,
        ids_from_json(text, "ids", loaded.model->config().vocab_size, input_name(*flags.ids_file)));
  } else {
    ids = loaded.tokenizer->encode_raw_prompt(text);
  }
  if (static_cast<int64_t>(ids.size()) > flags.max_tokens) {
    ids.resize(static_cast<size_t>(flags.max_tokens));
  }
  if (ids.size() < least) {
    return fail(ErrorCode::kInvalidArgument, "%s: expected at least %zu tokens, found %zu",
                escaped(input_name(flags.ids_file.value_or(flags.file.value_or("")))).c_str(),
                least, ids.size());
  }
  return ids;
}

}  // namespace winnow
