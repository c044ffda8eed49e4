#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tools/program.h"

/// The program on a disk that fails, by faults/preload.cpp.
namespace polyhead::testing {

/// What becomes of one of the calls that a program and its children make to the system about the files of a folder.
struct Fault {
  std::int64_t call = 0;  ///< from 1; 0: they are recorded, and that is all
  /// The name of an error (EIO, ENOSPC, EACCES, EROFS, EDQUOT, EMFILE, ENOMEM); "short": half of a write; "full": half of a write, and no
  /// room any more from then on; "kill": SIGKILL instead; "torn": SIGKILL after half of a write.
  std::string what = {};
};

struct Call {
  std::string name;  ///< of the function
  std::string path;
};

/// The text of the error that a fault is, as messages tell it.
std::string reason(const std::string& fault);

struct FaultyOutcome : Outcome {
  std::vector<Call> calls;
  std::vector<std::string> left_open;  ///< files that a process which was not killed had open at its end
};

/// The program with a fault in what it does to `folder`. Faults are counted; how many there were is printed at the end.
FaultyOutcome run_with(const Fault& fault, const std::string& folder, const Arguments& arguments,
                       const std::string& input = "");

/// Counts a kill that run_with() did not do.
void count_kill();

/// Whether tests are to try everything, not what takes seconds: POLYHEAD_ALL_FAULTS is set.
bool thorough();

/// Numbers of the calls to try: the last of each kind (name, and file without digits), and of these one in `every`; all of
/// them when thorough().
std::vector<std::int64_t> numbers_of(const std::vector<Call>& calls, std::size_t every = 1);

/// Paths of the files below `folder`, relative to it, sorted.
std::vector<std::string> files_in(const std::string& folder);

/// That an error has been said in one line, of the file of `call`, with the reason, that the status is 4, and that no file was
/// left open.
void expect_file_error(const FaultyOutcome& outcome, const Call& call, const std::string& fault);

/// That no file below `folder` is half of something.
void expect_no_temporaries(const std::string& folder);

}  // namespace polyhead::testing
