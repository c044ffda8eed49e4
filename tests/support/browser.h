#pragma once

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>
#include <string>

/// A page in headless Chromium.
namespace polyhead::testing {

/// The browser's command, if there is one.
inline std::optional<std::string> browser() {
  for (const char* name : {"chromium-headless-shell", "chromium", "chromium-browser", "google-chrome"}) {
    std::istringstream folders(std::getenv("PATH"));
    for (std::string folder; std::getline(folders, folder, ':');)
      if (std::filesystem::exists(folder + "/" + name)) return folder + "/" + name;
  }
  return {};
}

/// What `script`, the body of a JavaScript function, returns in a page once that is drawn, as
/// {"value": ..., "errors": [uncaught errors, console.error, refused requests], "requests": number}.
/// A member "failure" instead when the browser did not get there.
inline nlohmann::json in_browser(const std::string& page, const std::string& script,
                                 const std::string& folder) {
  std::ifstream in(page, std::ios::binary);
  std::string html{std::istreambuf_iterator<char>(in), {}};
  const std::string before = R"(<script>
const testErrors = [];
addEventListener("error", (e) => testErrors.push(String(e.message)));
addEventListener("securitypolicyviolation", (e) => testErrors.push("refused: " + e.blockedURI));
console.error = (...parts) => testErrors.push(parts.join(" "));
</script>)";
  const std::string after =
      "<script>addEventListener('load', () => { let value = null; try { value = (() => {" + script +
      R"(})(); } catch (e) { testErrors.push("test: " + e.stack); }
const outcome = JSON.stringify({ value, errors: testErrors, requests: performance.getEntriesByType("resource").length });
document.body.textContent = "BEGIN" + btoa(encodeURIComponent(outcome)) + "END"; });</script>)";
  html.insert(html.find("<meta name"), before);
  html.insert(html.rfind("</body>"), after);
  const std::string copy = folder + "/in-browser.html", dump = folder + "/in-browser.txt";
  std::ofstream(copy, std::ios::binary) << html;
  const std::string command =
      "HOME=" + folder + " " + *browser() +
      " --headless --no-sandbox --disable-gpu --window-size=1000,800 --dump-dom file://" + copy + " >" +
      dump + " 2>/dev/null";
  const int status = std::system(command.c_str());
  std::ifstream out(dump, std::ios::binary);
  const std::string dom{std::istreambuf_iterator<char>(out), {}};
  const auto begin = dom.find("BEGIN"), end = dom.rfind("END");
  if (begin == dom.npos || end == dom.npos || end < begin)
    return {{"failure", "status " + std::to_string(status) + ": " + dom.substr(0, 300)}};
  // btoa(encodeURIComponent(x)) has no character that HTML would change; both are undone here.
  std::string text, decoded;
  std::uint32_t bits = 0;
  int count = 0;
  for (const char c : dom.substr(begin + 5, end - begin - 5)) {
    const auto digit =
        std::string_view("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/").find(c);
    if (digit == std::string_view::npos) continue;
    bits = bits << 6 | static_cast<std::uint32_t>(digit);
    if ((count += 6) >= 8) text += static_cast<char>(bits >> (count -= 8) & 255);
  }
  for (std::size_t i = 0; i < text.size(); ++i)
    if (text[i] == '%') {
      decoded += static_cast<char>(std::stoi(text.substr(i + 1, 2), nullptr, 16));
      i += 2;
    } else {
      decoded += text[i];
    }
  return nlohmann::json::parse(decoded);
}

}  // namespace polyhead::testing
