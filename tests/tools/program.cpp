#include "tools/program.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

extern char** environ;

namespace polyhead::testing {
namespace {

namespace fs = std::filesystem;

struct Folder {
  std::string path = (fs::temp_directory_path() / "polyhead-tools-XXXXXX").string();
  Folder() { ::mkdtemp(path.data()); }
  ~Folder() { fs::remove_all(path); }
};

/// What starts the program; empty: it is started by itself.
Arguments& launcher() {
  static Arguments words;
  return words;
}

}  // namespace

const std::string& scratch_folder() {
  static const Folder folder;
  return folder.path;
}

std::string fresh_path(const std::string& name) {
  static int count = 0;
  return scratch_folder() + "/" + std::to_string(++count) + "-" + name;
}

std::string read_text(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

std::int64_t count_lines(const std::string& text) { return std::count(text.begin(), text.end(), '\n'); }

std::vector<nlohmann::json> read_json_lines(const std::string& path) {
  std::vector<nlohmann::json> lines;
  for (const std::string& line : lines_of(read_text(path))) lines.push_back(nlohmann::json::parse(line));
  return lines;
}

std::string write_text(const std::string& name, const std::string& text) {
  const std::string path = fresh_path(name);
  std::ofstream(path, std::ios::binary) << text;
  return path;
}

Limit::Limit(const std::string& option) { launcher() = {"prlimit", option}; }

Limit::~Limit() { launcher().clear(); }

Process::Process(const Arguments& arguments, const std::string& input, const std::string& out)
    : out_(out.empty() ? fresh_path("out") : out), err_(fresh_path("err")) {
  std::vector<std::string> words = launcher();
  words.emplace_back(POLYHEAD_PROGRAM);
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  const std::string in = write_text("in", input);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 0, in.c_str(), O_RDONLY, 0);
  if (out_ == closed)
    posix_spawn_file_actions_addclose(&actions, 1);
  else
    posix_spawn_file_actions_addopen(&actions, 1, out_.c_str(), O_WRONLY | O_CREAT, 0600);
  posix_spawn_file_actions_addopen(&actions, 2, err_.c_str(), O_WRONLY | O_CREAT, 0600);
  const int error = posix_spawnp(&id_, pointers[0], &actions, nullptr, pointers.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) throw std::runtime_error("cannot start " POLYHEAD_PROGRAM);
}

Process::~Process() {
  if (id_ < 0) return;
  signal(SIGKILL);
  ::waitpid(id_, nullptr, 0);
}

void Process::signal(int number) const {
  if (id_ >= 0) ::kill(id_, number);
}

bool Process::running() {
  collect(WNOHANG);
  return id_ >= 0;
}

void Process::collect(int options) {
  rusage usage{};
  if (id_ < 0 || ::wait4(id_, &raw_status_, options, &usage) != id_) return;
  id_ = -1;
  peak_bytes_ = std::int64_t{usage.ru_maxrss} * 1024;
}

Outcome Process::wait() {
  collect(0);
  const int status = WIFEXITED(raw_status_) ? WEXITSTATUS(raw_status_) : 128 + WTERMSIG(raw_status_);
  return {status, fs::is_regular_file(out_) ? read_text(out_) : "", read_text(err_), peak_bytes_};
}

Outcome run(const Arguments& arguments, const std::string& input) { return Process(arguments, input).wait(); }

Environment::Environment(std::vector<std::pair<std::string, std::string>> variables) {
  for (const auto& [name, value] : variables) {
    const char* before = std::getenv(name.c_str());
    before_.emplace_back(name, before ? std::optional<std::string>(before) : std::nullopt);
    ::setenv(name.c_str(), value.c_str(), 1);
  }
}

Environment::~Environment() {
  for (const auto& [name, value] : before_)
    value ? ::setenv(name.c_str(), value->c_str(), 1) : ::unsetenv(name.c_str());
}

std::string tiny_config() {
  static const std::string path = write_text("tiny.yaml", R"(name: tiny
data: {task: copy, train_size: 300, valid_size: 20, test_size: 30}
tokenizer: {kind: word}
model: {encoder_layers: 1, decoder_layers: 1, d_model: 16, heads: 2, d_ff: 32, dropout: 0.1, max_length: 40}
training: {batch_tokens: 256, max_steps: 40, learning_rate: 0.02, warmup_steps: 10, validate_every: 10, checkpoint_every: 10, keep_last: 4}
decoding: {beam_size: 3}
)");
  return path;
}

namespace {

std::string train(const std::string& config) {
  const std::string folder = fresh_path("run");
  const Outcome outcome = run({"train", config, "--out", folder, "--threads", "2"});
  if (outcome.status != 0) throw std::runtime_error("training failed: " + outcome.err);
  return folder;
}

}  // namespace

const std::string& trained_run() {
  static const std::string folder = train(tiny_config());
  return folder;
}

const std::string& grammar_run() {
  static const std::string folder = train(write_text("grammar.yaml", R"(name: grammar
data: {task: grammar, train_size: 400, valid_size: 20, test_size: 30}
tokenizer: {kind: word, shared: false}
model: {encoder_layers: 1, decoder_layers: 1, d_model: 16, heads: 2, d_ff: 32, norm: pre, max_length: 64}
training: {batch_tokens: 512, max_steps: 60, learning_rate: 0.02, warmup_steps: 10}
decoding: {beam_size: 1, max_length_ratio: 1, max_length_extra: 5}
)"));
  return folder;
}

}  // namespace polyhead::testing
