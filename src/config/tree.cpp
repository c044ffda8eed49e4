#include "tree.h"

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

#include <sstream>
#include <unordered_map>

#include "polyhead/core/unicode.h"
#include "shorten.h"

namespace polyhead::config {
namespace {

/// Ends the parse; the reason is among the problems.
struct Stop {};

/// Builds Nodes from yaml-cpp's events. The parser recurses only as deep as the events nest, so the limit on
/// depth also bounds its stack.
class Builder : public YAML::EventHandler {
 public:
  Builder(std::string_view text, std::string name, const std::optional<Place>& fixed_place,
          std::vector<Problem>& problems)
      : text_(text), name_(std::move(name)), fixed_place_(fixed_place), problems_(problems) {
    if (text_.starts_with("\xEF\xBB\xBF"))
      text_.remove_prefix(3);  // as yaml-cpp does, which counts from there
  }

  Node take_root() { return std::move(root_); }

  Place place(int line) const {
    if (fixed_place_) return *fixed_place_;
    return line < 1 ? Place{name_, 0} : Place{concat(name_, ":", line), line};
  }
  void report(const Place& place, std::string_view message) {
    const std::string path = current_path();
    problems_.push_back({place.order, concat(place.text, ": ", path, path.empty() ? "" : ": ", message)});
  }

  void OnDocumentStart(const YAML::Mark& mark) override {
    if (++documents_ == 1) return;
    report(place(mark), "a second document, expected one");
    throw Stop{};
  }
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    Node node{.kind = Node::Kind::null, .place = place(mark)};
    add(checked(std::move(node), "?", anchor));
  }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    Node node{.kind = Node::Kind::refused, .place = place(mark)};
    add(checked(std::move(node), "?", anchor));
  }
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    Node node{.kind = Node::Kind::scalar, .place = place(mark), .text = value, .quoted = tag == "!"};
    if (!is_closed(mark)) {
      report(node.place, "a quote that is never closed");
      throw Stop{};
    }
    add(checked(std::move(node), tag == "!" ? "?" : tag, anchor));
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    open(Node::Kind::sequence, mark, tag, anchor);
  }
  void OnSequenceEnd() override { close(); }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    open(Node::Kind::mapping, mark, tag, anchor);
  }
  void OnMapEnd() override { close(); }

 private:
  struct Key {
    std::string text;
    Place place;
    bool dropped = false;  ///< refused, and so is its value
  };
  struct Frame {
    Node node;
    std::optional<Key> key;  ///< of a mapping, while its value is awaited
    std::unordered_map<std::string, Place> keys;
    bool refused = false;
  };

  Place place(const YAML::Mark& mark) const { return place(mark.line + 1); }

  std::string current_path() const {
    std::string path;
    for (const Frame& frame : frames_) {
      if (frame.node.kind == Node::Kind::sequence) path += concat("[", frame.node.items.size(), "]");
      if (frame.key) path = join(path, frame.key->text);
    }
    return path;
  }

  /// Whether the scalar at `mark`, if in quotes, has its second one: yaml-cpp 0.7 takes the end of the text
  /// for it.
  bool is_closed(const YAML::Mark& mark) const {
    const std::string_view rest = text_.substr(std::min(static_cast<std::size_t>(mark.pos), text_.size()));
    if (rest.empty() || (rest[0] != '"' && rest[0] != '\'')) return true;
    for (std::size_t i = 1; i < rest.size(); ++i) {
      const bool quote = rest[i] == rest[0], escape = rest[i] == '\\' && rest[0] == '"';
      if (quote && (rest[0] == '"' || !rest.substr(i + 1).starts_with('\''))) return true;
      if (quote || escape) ++i;  // what follows is part of the text
    }
    return false;
  }

  Node checked(Node node, const std::string& tag, YAML::anchor_t anchor) {
    const bool tagged = tag != "?" && !tag.empty();
    if (anchor != 0) report(node.place, "anchors and aliases are not supported: write the value out");
    if (tagged) report(node.place, "tags are not supported: write the value alone");
    if (anchor != 0 || tagged) node.kind = Node::Kind::refused;
    return node;
  }

  void open(Node::Kind kind, const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor) {
    if (frames_.size() == max_depth) {
      problems_.push_back(
          {place(mark).order, concat(place(mark).text, ": nested more than ", max_depth, " levels deep")});
      throw Stop{};
    }
    Node node{.kind = kind, .place = place(mark)};
    const bool refused = checked(node, tag, anchor).kind == Node::Kind::refused;
    frames_.push_back({.node = std::move(node), .key = {}, .keys = {}, .refused = refused});
  }

  void close() {
    Node node = std::move(frames_.back().node);
    if (frames_.back().refused) node.kind = Node::Kind::refused;
    frames_.pop_back();
    add(std::move(node));
  }

  void add(Node node) {
    if (frames_.empty()) {
      root_ = std::move(node);
      return;
    }
    Frame& frame = frames_.back();
    if (frame.node.kind == Node::Kind::sequence) {
      frame.node.items.push_back(std::move(node));
    } else if (!frame.key) {
      add_key(frame, node);
    } else {
      node.place = frame.key->place;
      if (!frame.key->dropped) frame.node.members.emplace_back(std::move(frame.key->text), std::move(node));
      frame.key.reset();
    }
  }

  void add_key(Frame& frame, Node& node) {
    Key key{.text = node.text, .place = node.place};
    if (node.kind != Node::Kind::scalar) {
      if (node.kind != Node::Kind::refused) report(node.place, given(node) + " as a key, expected a name");
      key.dropped = true;
    } else if (node.text == "<<" && !node.quoted) {
      report(node.place, "merge keys (<<) are not supported: write the values out");
      key.dropped = true;
    } else if (const auto [first, is_new] = frame.keys.emplace(node.text, node.place); !is_new) {
      frame.key = key;
      report(node.place, "given twice, first at " + first->second.text);
      key.dropped = true;
    }
    frame.key = std::move(key);
  }

  std::string_view text_;
  std::string name_;
  std::optional<Place> fixed_place_;
  std::vector<Problem>& problems_;
  Node root_;
  std::vector<Frame> frames_;
  int documents_ = 0;
};

/// What keeps `line` from being text, or "".
std::string defect(std::string_view line) {
  if (!unicode::is_valid(line)) return "not UTF-8 text";
  for (const char c : line)
    if (static_cast<unsigned char>(c) < 0x20 && c != '\t' && c != '\r')
      return c == 0 ? "a NUL byte, expected text" : concat("control character ", int{c}, ", expected text");
  return "";
}

/// What a YAML parser's own words do not say of a line that it refuses, or "".
std::string hint(std::string_view text, int line) {
  for (; line > 1 && !text.empty(); --line)
    text.remove_prefix(std::min(text.find('\n'), text.size() - 1) + 1);
  const std::string_view indentation = text.substr(0, std::min(text.find_first_not_of(" \t"), text.size()));
  return indentation.find('\t') == text.npos ? "" : " (the line begins with a tab, expected spaces)";
}

bool check_text(std::string_view text, Builder& builder) {
  int line = 1;
  for (std::size_t begin = 0; begin < text.size(); ++line) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    if (const std::string problem = defect(text.substr(begin, end - begin)); !problem.empty()) {
      builder.report(builder.place(line), problem);
      return false;
    }
    begin = end + 1;
  }
  return true;
}

}  // namespace

std::string join(const std::string& path, std::string_view key) {
  return concat(path, path.empty() ? "" : ".", scalar_text(shortened(key, 60)));
}

std::optional<Node> read_tree(std::string_view text, const std::string& name,
                              const std::optional<Place>& fixed_place, std::vector<Problem>& problems) {
  Builder builder(text, name, fixed_place, problems);
  if (text.size() > max_bytes) {
    builder.report(builder.place(0),
                   concat("larger than ", max_bytes, " bytes, too large for a configuration"));
    return std::nullopt;
  }
  if (!check_text(text, builder)) return std::nullopt;
  try {
    std::istringstream stream{std::string(text)};
    YAML::Parser parser(stream);
    while (parser.HandleNextDocument(builder)) {
    }
    return builder.take_root();
  } catch (const YAML::Exception& error) {
    const Place place = builder.place(error.mark.line + 1);
    problems.push_back({place.order, concat(place.text, ": not valid YAML: ", one_line(error.msg, 200),
                                            hint(text, error.mark.line + 1))});
  } catch (const Stop&) {
  }
  return std::nullopt;
}

}  // namespace polyhead::config
