#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "polyhead/core/clock.h"

namespace polyhead {

/// What an op was doing.
enum class Pass { forward, backward, update };
const char* name(Pass pass);

/// Time and calls by op; one per worker thread.
class Profile {
 public:
  struct Row {
    std::string_view op;
    Pass pass;
    std::int64_t calls = 0;
    double seconds = 0;
  };
  /// Counts calls of `op`, a text that is never destroyed.
  void add(std::string_view op, Pass pass, std::int64_t calls, double seconds);
  /// Adds the rows of `other`.
  void add(const Profile& other);
  /// In the order in which they first came.
  const std::vector<Row>& rows() const { return rows_; }

 private:
  std::vector<Row> rows_;
};

/// Counts the time from its construction to its end as one call; does nothing where `profile` is null.
class ProfileTimer {
 public:
  ProfileTimer(Profile* profile, std::string_view op, Pass pass) : profile_(profile), op_(op), pass_(pass) {
    if (profile_) begin_ = Clock::now();
  }
  ~ProfileTimer() {
    if (profile_) profile_->add(op_, pass_, 1, seconds_since(begin_));
  }
  ProfileTimer(const ProfileTimer&) = delete;
  ProfileTimer& operator=(const ProfileTimer&) = delete;

 private:
  Profile* profile_;
  std::string_view op_;
  Pass pass_;
  Clock::time_point begin_{};
};

/// The name of a type without namespaces: "Linear" for polyhead::ops::Linear.
template <class T>
constexpr std::string_view type_name() {
  // "... [with T = const polyhead::ops::Linear; ...]", from clang "... [T = const polyhead::ops::Linear]"
  std::string_view text = __PRETTY_FUNCTION__;
  text.remove_prefix(text.find("T = ") + 4);
  text = text.substr(0, text.find_first_of(";]"));
  return text.substr(text.find_last_of(": ") + 1);
}

}  // namespace polyhead
