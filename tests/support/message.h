#pragma once

#include <string>

namespace polyhead::testing {

/// What `action` says when it throws E.
template <class E, class Action>
std::string message_of(const Action& action) {
  try {
    action();
  } catch (const E& error) {
    return error.what();
  }
  return "nothing thrown";
}

}  // namespace polyhead::testing
