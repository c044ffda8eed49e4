#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

/// The built program, run from outside.
namespace polyhead::testing {

using Arguments = std::vector<std::string>;

struct Outcome {
  int status = 0;  ///< the exit status, or 128 + the signal that ended it
  std::string out, err;
  std::int64_t peak_bytes = 0;  ///< the most memory that it had resident
};

/// A folder that is removed when the test program ends.
const std::string& scratch_folder();
/// A path in scratch_folder() that no other call gave.
std::string fresh_path(const std::string& name);

std::string read_text(const std::string& path);
std::vector<std::string> lines_of(const std::string& text);
/// Line ends.
std::int64_t count_lines(const std::string& text);
/// A value a line.
std::vector<nlohmann::json> read_json_lines(const std::string& path);
/// Writes a file of its own and gives its path.
std::string write_text(const std::string& name, const std::string& text);

/// The program with a file of its own for each stream; stdout may be a path instead, or `closed`.
class Process {
 public:
  static constexpr const char* closed = "-";
  explicit Process(const Arguments& arguments, const std::string& input = "", const std::string& out = "");
  ~Process();
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;
  pid_t id() const { return id_; }
  void signal(int number) const;
  bool running();
  Outcome wait();

 private:
  void collect(int options);
  std::string out_, err_;
  pid_t id_ = -1;
  int raw_status_ = 0;
  std::int64_t peak_bytes_ = 0;
};

/// Waits until `done` holds or the process has ended; whether it holds.
template <class Condition>
bool wait_for(Process& process, const Condition& done) {
  while (!done()) {
    if (!process.running()) return done();
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return true;
}

Outcome run(const Arguments& arguments, const std::string& input = "");

/// A limit of the system that the program is started with while this lives, an option of prlimit(1): "--as=100000000". The
/// tests do without it themselves: a process that is larger already can start no other.
class Limit {
 public:
  explicit Limit(const std::string& option);
  ~Limit();
  Limit(const Limit&) = delete;
  Limit& operator=(const Limit&) = delete;
};

/// Variables of the environment that the program is started with while this lives.
class Environment {
 public:
  explicit Environment(std::vector<std::pair<std::string, std::string>> variables);
  ~Environment();
  Environment(const Environment&) = delete;
  Environment& operator=(const Environment&) = delete;

 private:
  std::vector<std::pair<std::string, std::optional<std::string>>> before_;
};

/// A configuration of a small copy task that trains in seconds, written to a file.
std::string tiny_config();
/// A run of tiny_config() that ended; trained once.
const std::string& trained_run();
/// A run on the toy language, hardly trained.
const std::string& grammar_run();

}  // namespace polyhead::testing
