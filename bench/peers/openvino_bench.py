"""One measurement of OpenVINO GenAI in the form of llama-bench's JSON: a prompt of -p tokens, or -n tokens generated after -d.

Runs in the environment of requirements-openvino.txt. The model is a GGUF whose weights its reader knows (Q4_0, Q8_0, F16 ...).
`--xattention` turns its block-sparse prefill on, the whole prompt in one shot: fed in pieces it loses the text."""
import argparse
import json

import numpy
import openvino
import openvino_genai


def pipeline(options, tokens):
    scheduler = openvino_genai.SchedulerConfig()
    scheduler.cache_size = 4  # GB
    scheduler.max_num_batched_tokens = max(tokens, 256)
    scheduler.enable_prefix_caching = False
    if options.xattention:
        scheduler.use_sparse_attention = True
        scheduler.sparse_attention_config = openvino_genai.SparseAttentionConfig(
            mode=openvino_genai.SparseAttentionMode.XATTENTION, xattention_threshold=0.8)
    return openvino_genai.LLMPipeline(options.model, "CPU", scheduler_config=scheduler, INFERENCE_NUM_THREADS=options.threads)


def input_of(tokens, seed):
    ids = numpy.random.default_rng(seed).integers(1000, 30000, (1, tokens), dtype=numpy.int64)
    return openvino_genai.TokenizedInputs(openvino.Tensor(ids), openvino.Tensor(numpy.ones_like(ids)))


def generate(model, tokens, answer, seed):
    config = openvino_genai.GenerationConfig(max_new_tokens=answer, ignore_eos=True, do_sample=False)
    return model.generate(input_of(tokens, seed), config).perf_metrics


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-m", "--model", required=True)
    parser.add_argument("-t", "--threads", type=int, required=True)
    parser.add_argument("-p", "--prompt", type=int, default=0)
    parser.add_argument("-n", "--answer", type=int, default=0)
    parser.add_argument("-d", "--depth", type=int, default=0)
    parser.add_argument("--xattention", action="store_true")
    options = parser.parse_args()
    prompt = options.prompt or max(options.depth, 1)
    model = pipeline(options, prompt)
    generate(model, 64, 2, seed=0)
    metrics = generate(model, prompt, options.answer + 1, seed=1)
    if options.prompt:
        speed = 1000 * prompt / metrics.get_ttft().mean
    else:
        speed = 1000 / metrics.get_tpot().mean
    print(json.dumps([{"avg_ts": speed, "build_commit": openvino_genai.get_version()}]))


if __name__ == "__main__":
    main()
