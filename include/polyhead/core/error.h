#pragma once

#include <sstream>
#include <stdexcept>
#include <string>

namespace polyhead {

/// What went wrong, as the program's exit status tells it.
enum class Status { usage = 2, data = 3, file = 4, numbers = 5 };

/// An error whose message a user can act on: what was given, what was expected, and where.
/// Only main catches; everything else lets it pass.
class Error : public std::runtime_error {
 public:
  explicit Error(const std::string& message, Status status = Status::usage)
      : std::runtime_error(message), status_(status) {}
  Status status() const { return status_; }

 private:
  Status status_;
};

/// Corpora, tokenizers and other text that cannot be used.
struct DataError : Error {
  explicit DataError(const std::string& message) : Error(message, Status::data) {}
};
/// Checkpoints and other files that cannot be read or written.
struct FileError : Error {
  explicit FileError(const std::string& message) : Error(message, Status::file) {}
};
/// A loss or gradient that is not finite.
struct NumbersError : Error {
  explicit NumbersError(const std::string& message) : Error(message, Status::numbers) {}
};

/// `parts` streamed one after the other.
template <class... Parts>
std::string concat(const Parts&... parts) {
  std::ostringstream out;
  (out << ... << parts);
  return out.str();
}

/// Throws E with the concatenation of `parts` unless `condition` holds.
template <class E = Error, class... Parts>
void require(bool condition, const Parts&... parts) {
  if (!condition) [[unlikely]]
    throw E(concat(parts...));
}

}  // namespace polyhead
