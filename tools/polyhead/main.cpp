#include <malloc.h>
#include <signal.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <charconv>
#include <csignal>
#include <exception>
#include <filesystem>
#include <limits>
#include <new>
#include <sstream>
#include <stdexcept>
#include <system_error>
#include <thread>

#include "child.h"
#include "commands.h"
#include "files.h"
#include "polyhead/core/error.h"
#include "polyhead/core/memory.h"
#include "polyhead/core/parallel.h"
#include "polyhead/core/version.h"

namespace polyhead::tools {
namespace {

/// The status where no polyhead::Status fits: memory or another means of the system has run out.
constexpr int system_failure = 1;

std::atomic<int> received = 0;
std::atomic<bool> asked = false;

/// Both signals are blocked here. The first is kept where somebody asks for it; else, and the second, they take their default
/// action.
void wait_for_signals(const sigset_t& signals) {
  int number = 0;
  sigwait(&signals, &number);
  received = number;
  if (asked) sigwait(&signals, &number);
  pthread_sigmask(SIG_UNBLOCK, &signals, nullptr);
  std::signal(number, SIG_DFL);
  std::raise(number);
}

}  // namespace

void watch_signals() {
  // No handler may run on the threads that compute: oneDNN's kernels point the stack register into the heap, and the
  // frame of a handler would overwrite what lies there. Threads started later inherit the mask.
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGINT);
  sigaddset(&signals, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  try {
    std::thread([signals] { wait_for_signals(signals); }).detach();
  } catch (const std::system_error& error) {
    throw std::runtime_error(
        concat("cannot start the thread that waits for signals: ", error.code().message()));
  }
}

int signal_received() {
  asked = true;
  return received;
}

void add_threads(CLI::App& command, int& threads) {
  constexpr int most = 1024;
  threads = std::min(default_threads(), most);
  command
      .add_option("--threads", threads,
                  "threads; results do not depend on it. By default OMP_NUM_THREADS, else one a core")
      ->check(CLI::Range(1, most))
      ->capture_default_str();
}

CLI::Option* add_seed(CLI::App& command, std::uint64_t& seed, const std::string& description) {
  const auto check = [](const std::string& text) -> std::string {
    std::uint64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error == std::errc() && end == text.data() + text.size()) return "";
    return concat('"', text, "\", expected an integer from 0 to ", std::numeric_limits<std::uint64_t>::max());
  };
  return command.add_option("--seed", seed, description)
      ->check(CLI::Validator(check, "UINT"))
      ->capture_default_str();
}

void add_overrides(CLI::App& command, std::vector<std::string>& overrides) {
  command.add_option("--set", overrides, "a setting in place of the configuration's, key.path=value")
      ->type_name("KEY=VALUE")
      ->allow_extra_args(false);
}

namespace {

std::string command_names(const CLI::App& program) {
  std::string names;
  for (const CLI::App* command : program.get_subcommands({}))
    names += (names.empty() ? "" : ", ") + command->get_name();
  return names;
}

/// "polyhead", or with the sub-commands that were given.
std::string parsed_name(const CLI::App& program) {
  const auto parsed = program.get_subcommands();
  return program.get_name() + (parsed.empty() ? "" : ' ' + parsed_name(*parsed.front()));
}

/// Exit status 2 is for wrong usage, whatever CLI11 counts its errors as.
int parse_failed(const CLI::App& program, const CLI::ParseError& error, const std::string& first) {
  if (error.get_exit_code() == 0) {  // --help, --version
    std::ostringstream out;
    program.exit(error, out, out);
    write_output("", out.str());
    return 0;
  }
  const bool given = !program.get_subcommands().empty();
  if (!given && !first.empty() && first[0] != '-')
    complain(concat("no command \"", first, "\", expected one of ", command_names(program)));
  else
    complain(concat(error.what(), "; see ", parsed_name(program), " --help"));
  return static_cast<int>(Status::usage);
}

/// Takes no empty argument, of any option: mostly it comes of a variable of the shell that is not set.
void refuse_empty(CLI::App& command) {
  const auto check = [](const std::string& text) { return text.empty() ? "empty, expected a value" : ""; };
  for (CLI::Option* option : command.get_options())
    option->transform(CLI::Validator(check, ""));  // which comes before the option's own checks
  for (CLI::App* below : command.get_subcommands({})) refuse_empty(*below);
}

int run(int argc, char** argv) {
  CLI::App program("polyhead: small Transformers on CPUs, and what their attention heads do", "polyhead");
  program.set_version_flag("--version", std::string("polyhead ") + version);
  program.require_subcommand(1);
  program.set_help_all_flag("--help-all", "help of all commands");
  program.footer(
      "Exit status: 0 done; 1 out of memory or another failure of the system; 2 wrong usage or "
      "configuration; 3 data;\n"
      "4 checkpoint or other file; 5 a loss or gradient that is not finite; 130, 143 stopped by SIGINT, "
      "SIGTERM.");
  const Command commands[] = {add_train(program),   add_translate(program), add_evaluate(program),
                              add_score(program),   add_heads(program),     add_average(program),
                              add_metrics(program), add_inspect(program),   add_config(program),
                              add_data(program),    add_bench(program),     add_ablate(program),
                              add_report(program)};
  refuse_empty(program);
  try {
    program.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return parse_failed(program, error, argc > 1 ? argv[1] : "");
  }
  for (const Command& command : commands)
    if (command.app->parsed()) return command.run();
  return static_cast<int>(Status::usage);
}

}  // namespace
}  // namespace polyhead::tools

int main(int argc, char** argv) {
  using polyhead::Status;
  using polyhead::tools::complain;
  polyhead::tools::hold_standard_streams();
  polyhead::tools::end_with_parent();
  // Else malloc reserves 64 MiB for every thread.
  if (polyhead::address_space_limit() != std::numeric_limits<std::int64_t>::max()) mallopt(M_ARENA_MAX, 1);
  // Then it is an error of the call that writes.
  for (const int number : {SIGPIPE, SIGXFSZ}) std::signal(number, SIG_IGN);
  try {
    return polyhead::tools::run(argc, argv);
  } catch (const polyhead::Error& error) {
    complain(error.what());
    return static_cast<int>(error.status());
  } catch (const polyhead::tools::ReaderGone&) {
    return 128 + SIGPIPE;
  } catch (const std::filesystem::filesystem_error& error) {
    complain(polyhead::concat(error.path1().string(), ": ", error.code().message()));
    return static_cast<int>(Status::file);
  } catch (const polyhead::MemoryError& error) {
    complain(error.what());
    return polyhead::tools::system_failure;
  } catch (const std::bad_alloc&) {
    complain(polyhead::MemoryError("what was asked for").what());
    return polyhead::tools::system_failure;
  } catch (const std::exception& error) {
    complain(error.what());
    return polyhead::tools::system_failure;
  }
}
