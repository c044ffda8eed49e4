#include "page_template.h"
#include "polyhead/core/error.h"
#include "polyhead/experiment/report.h"

namespace polyhead::experiment {
namespace {

/// JSON text that may stand in HTML and in a script: '<' could end the element or begin a comment, and U+2028 and U+2029
/// end lines in older scripts. All three occur in JSON's strings alone.
std::string escape(std::string_view json) {
  std::string text;
  text.reserve(json.size());
  for (std::size_t i = 0; i < json.size(); ++i) {
    const std::string_view rest = json.substr(i, 3);
    if (json[i] == '<') {
      text += "\\u003c";
    } else if (rest == "\u2028" || rest == "\u2029") {
      text += rest == "\u2028" ? "\\u2028" : "\\u2029";
      i += 2;
    } else {
      text += json[i];
    }
  }
  return text;
}

}  // namespace

std::string report_page(std::string_view data) {
  constexpr std::string_view place = "{{data}}";
  const std::string_view page(page_template, sizeof page_template);
  const std::size_t begin = page.find(place);
  return concat(page.substr(0, begin), escape(data), page.substr(begin + place.size()));
}

}  // namespace polyhead::experiment
