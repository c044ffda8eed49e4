"""The programs that are compared: how each is run, and with which settings."""
import json
import os
import re
import shutil
import statistics
import subprocess
import tempfile
from pathlib import Path

PEER = Path(__file__).with_name("torch_peer.py")
HUGE_PAGES_FROM = 512  # d_model from which PyTorch is faster with transparent huge pages in malloc


def fail(message):
    raise SystemExit(f"compare: {message}")


def run(command, environment=None):
    result = subprocess.run([str(c) for c in command], env=environment, stdout=subprocess.PIPE, text=True, check=False)
    if result.returncode:
        fail(f"status {result.returncode} of {' '.join(map(str, command))}")
    return result.stdout


def last_json(text):
    return json.loads(text.strip().splitlines()[-1])


def peer_settings(d_model):
    """Environment variables for the peer, and what they do in words."""
    folder = next(Path("/usr/lib").glob("*/openblas-openmp"), None)
    if folder is None:
        fail("the OpenMP build of OpenBLAS is not installed, and PyTorch is slower without it: "
             "tools/install-dependencies.sh bench")
    variables = {"LD_LIBRARY_PATH": str(folder)}
    if d_model >= HUGE_PAGES_FROM:
        variables["GLIBC_TUNABLES"] = "glibc.malloc.hugetlb=1"
    return variables


def peer_environment(variables):
    unset = ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE")
    return {**{k: v for k, v in os.environ.items() if k not in unset}, **variables}


def run_peer(command, variables):
    return last_json(run(["/usr/bin/python3", PEER, *command], peer_environment(variables)))


def describe_peer(report, variables):
    return (f"PyTorch {report['torch']}, {report.get('openblas', report['blas'])}, "
            f"{report.get('openblas_kernels', '?')} kernels; OPENBLAS_* unset; malloc keeps its blocks (mallopt); "
            + " ".join(f"{k}={v}" for k, v in variables.items()))


class MarianTrainer:
    """Training of the same shape from text: Marian cuts its own batches, of about as many target tokens."""

    def __init__(self, a, resolved):
        self.program, self.text, self.config = shutil.which("marian"), a.marian_text, resolved
        self.missing = None
        if not self.program:
            self.missing = "no marian on the PATH"
        elif not self.text:
            self.missing = "marian needs --marian-text SOURCE TARGET VOCABULARY"

    def train(self, threads, steps, target_tokens):
        model, training = self.config["model"], self.config["training"]
        source, target, vocabulary = self.text
        post = "dan" if model["norm"] == "post" else "da"
        with tempfile.TemporaryDirectory() as folder:
            command = [self.program, "--type", "transformer", "--model", f"{folder}/model.npz",
                       "--train-sets", source, target, "--vocabs", vocabulary, vocabulary,
                       "--cpu-threads", threads, "--dim-emb", model["d_model"],
                       "--enc-depth", model["encoder_layers"], "--dec-depth", model["decoder_layers"],
                       "--transformer-heads", model["heads"], "--transformer-dim-ffn", model["d_ff"],
                       "--transformer-ffn-activation", model["activation"], "--transformer-postprocess", post,
                       "--transformer-preprocess", "" if post == "dan" else "n", "--transformer-dropout", model["dropout"],
                       "--tied-embeddings-all", "--label-smoothing", training["label_smoothing"],
                       "--optimizer-params", 0.9, 0.98, "1e-09", "--learn-rate", training["learning_rate"],
                       "--mini-batch", 10000, "--mini-batch-words", round(target_tokens), "--maxi-batch", 100,
                       "--workspace", 2000, "--sync-sgd", "--after-batches", steps + 5, "--disp-freq", 1]
            log = subprocess.run([str(c) for c in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                 check=False)
        rates = [float(rate) for rate in re.findall(r"([0-9.]+) words/s", log.stdout)][5:]
        if log.returncode or not rates:
            fail(f"status {log.returncode} of marian: {log.stdout.strip().splitlines()[-1:]}")
        return {"target_tokens_per_second": statistics.median(rates)}


class MarianDecoder:
    """Translation with a model of Marian's own, of the same shape."""

    def __init__(self, files):
        self.program, self.files = shutil.which("marian-decoder"), files
        self.missing = None
        if not self.program:
            self.missing = "no marian-decoder on the PATH"
        elif not files:
            self.missing = "marian-decoder needs --marian MODEL VOCABULARY SOURCE"

    def decode(self, threads, beam):
        model, vocabulary, source = self.files
        with tempfile.TemporaryDirectory() as folder:
            output = Path(folder, "output")
            command = [self.program, "--models", model, "--vocabs", vocabulary, vocabulary, "--input", source,
                       "--output", output, "--beam-size", beam, "--normalize", 0.6, "--cpu-threads", threads,
                       "--mini-batch", 64, "--maxi-batch", 1000, "--maxi-batch-sort", "src", "--workspace", 1000]
            if vocabulary.endswith(".spm"):
                command.append("--no-spm-decode")
            log = subprocess.run([str(c) for c in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                 check=False)
            seconds = re.search(r"Total time: ([0-9.]+)s", log.stdout)
            if log.returncode or not seconds:
                fail(f"status {log.returncode} of marian-decoder: {log.stdout.strip().splitlines()[-1:]}")
            lines = output.read_text(encoding="utf-8").splitlines()
        tokens = sum(len(line.split()) + 1 for line in lines)  # an end token each
        return {"output_tokens": tokens, "sentences": len(lines),
                "output_tokens_per_second": tokens / float(seconds[1])}
