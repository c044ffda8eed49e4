#include "faults/faults.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <map>
#include <sstream>
#include <system_error>
#include <utility>

namespace polyhead::testing {
namespace {

namespace fs = std::filesystem;

void read_record(const std::string& path, FaultyOutcome& outcome) {
  std::istringstream lines(read_text(path));
  std::int64_t number = 0;
  for (Call call; lines >> number >> call.name && std::getline(lines >> std::ws, call.path);)
    if (number > 0)
      outcome.calls.push_back(call);
    else
      outcome.left_open.push_back(call.path);
}

/// What the faults of all tests come to.
class Totals : public ::testing::Environment {
 public:
  std::int64_t failed_calls = 0, kills = 0;
  void TearDown() override {
    std::cout << "faults: " << failed_calls << " calls failed, " << kills << " processes killed\n";
  }
};
Totals& totals = dynamic_cast<Totals&>(*::testing::AddGlobalTestEnvironment(new Totals));

void count(const Fault& fault, const FaultyOutcome& outcome) {
  if (fault.call == 0 || std::cmp_less(outcome.calls.size(), fault.call)) return;
  if (fault.what == "kill" || fault.what == "torn")
    ++totals.kills;
  else if (fault.what != "short")
    ++totals.failed_calls;
}

/// The file that the user knows.
std::string final_name(const std::string& path) {
  for (const char* mark : {".tmp-", ".partial", ".old"})
    if (const std::size_t at = path.find(mark); at != std::string::npos) return path.substr(0, at);
  return path;
}

}  // namespace

std::string reason(const std::string& fault) {
  const std::map<std::string, std::errc> errors{{"EIO", std::errc::io_error},
                                                {"ENOSPC", std::errc::no_space_on_device},
                                                {"full", std::errc::no_space_on_device},
                                                {"EACCES", std::errc::permission_denied},
                                                {"EROFS", std::errc::read_only_file_system},
                                                {"EDQUOT", static_cast<std::errc>(EDQUOT)},
                                                {"EMFILE", std::errc::too_many_files_open},
                                                {"ENOMEM", std::errc::not_enough_memory}};
  return std::make_error_code(errors.at(fault)).message();
}

FaultyOutcome run_with(const Fault& fault, const std::string& folder, const Arguments& arguments,
                       const std::string& input) {
  const std::string record = fresh_path("calls");
  const char* sanitizer = std::getenv("ASAN_OPTIONS");
  const Environment environment(
      {{"LD_PRELOAD", POLYHEAD_PRELOAD},
       {"POLYHEAD_FAULTS", record},
       {"POLYHEAD_FAULTS_IN", folder},
       {"POLYHEAD_FAULTS_CALL", std::to_string(fault.call)},
       {"POLYHEAD_FAULTS_WHAT", fault.what},
       // Its own functions come after those of the library here, which does not need them.
       {"ASAN_OPTIONS", std::string(sanitizer ? sanitizer : "") + ":verify_asan_link_order=0"}});
  FaultyOutcome outcome;
  static_cast<Outcome&>(outcome) = run(arguments, input);
  read_record(record, outcome);
  count(fault, outcome);
  return outcome;
}

void count_kill() { ++totals.kills; }

bool thorough() { return std::getenv("POLYHEAD_ALL_FAULTS") != nullptr; }

std::vector<std::int64_t> numbers_of(const std::vector<Call>& calls, std::size_t every) {
  std::map<std::string, std::int64_t> last;
  std::vector<std::int64_t> numbers;
  for (std::size_t i = 0; i < calls.size(); ++i) {
    const auto number = static_cast<std::int64_t>(i + 1);
    if (thorough()) numbers.push_back(number);
    std::string kind = calls[i].name + ' ' + fs::path(calls[i].path).filename().string();
    std::erase_if(kind, [](unsigned char c) { return std::isdigit(c) != 0; });
    last[kind] = number;
  }
  if (thorough()) return numbers;
  std::size_t i = 0;
  for (const auto& [kind, number] : last)
    if (i++ % every == 0) numbers.push_back(number);
  std::sort(numbers.begin(), numbers.end());
  return numbers;
}

std::vector<std::string> files_in(const std::string& folder) {
  std::vector<std::string> files;
  if (fs::exists(folder))
    for (const auto& entry : fs::recursive_directory_iterator(folder))
      if (!entry.is_directory()) files.push_back(fs::relative(entry.path(), folder).string());
  std::sort(files.begin(), files.end());
  return files;
}

void expect_file_error(const FaultyOutcome& outcome, const Call& call, const std::string& fault) {
  EXPECT_EQ(outcome.status, 4);
  std::istringstream lines(outcome.err);
  std::vector<std::string> errors;
  for (std::string line; std::getline(lines, line);)
    if (line.starts_with("polyhead: ") && line.find(reason(fault)) != std::string::npos)
      errors.push_back(line);
  EXPECT_EQ(errors.size(), 1U) << outcome.err;
  EXPECT_THAT(outcome.err, ::testing::HasSubstr(final_name(call.path)));
  EXPECT_THAT(outcome.left_open, ::testing::IsEmpty());
}

void expect_no_temporaries(const std::string& folder) {
  for (const std::string& file : files_in(folder))
    for (const char* mark : {".tmp-", ".partial", ".old"})
      EXPECT_EQ(file.find(mark), std::string::npos) << file << " was left in " << folder;
}

}  // namespace polyhead::testing
