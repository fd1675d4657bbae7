import CanonicalJSON
import Foundation

extension Browser {
  /// The texts on the page whose contrast with what is behind them is below 4.5 (WCAG 2.2 §1.4.3),
  /// computed from the colours in force.
  public func textsOfLowContrast() async throws -> [String] {
    let found = try await run(
      """
      const numbers = (color) => color.match(/[\\d.]+/g).map(Number);
      const rgba = (color) => {
        const parts = numbers(color);
        const scale = color.startsWith("color(") ? 255 : 1;
        return [...parts.slice(0, 3).map((part) => part * scale), parts[3] ?? 1];
      };
      const over = ([r, g, b, a], below) => [
        ...[r, g, b].map((part, index) => part * a + below[index] * (1 - a)), 1];
      const behind = (node) => {
        const layers = [];
        for (let at = node; at; at = at.parentElement) {
          layers.push(rgba(getComputedStyle(at).backgroundColor));
          if (layers.at(-1)[3] === 1) break;
        }
        return layers.reverse().reduce((below, layer) => over(layer, below), [255, 255, 255, 1]);
      };
      const luminance = (color) => {
        const [r, g, b] = color.slice(0, 3).map((part) => part / 255)
          .map((part) => (part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4));
        return 0.2126 * r + 0.7152 * g + 0.0722 * b;
      };
      const poor = new Set();
      let judged = 0;
      const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
      while (walker.nextNode()) {
        const text = walker.currentNode.nodeValue.trim();
        const holder = walker.currentNode.parentElement;
        if (text === "" || !holder.checkVisibility() || holder.closest("option, title")) continue;
        const style = getComputedStyle(holder);
        const ground = behind(holder);
        const color = over(rgba(holder.closest("svg") ? style.fill : style.color), ground);
        const [light, dark] = [luminance(color), luminance(ground)].sort((a, b) => b - a);
        const contrast = (light + 0.05) / (dark + 0.05);
        judged += 1;
        if (contrast < 4.5) poor.add(`${contrast.toFixed(2)}: ${text.slice(0, 60)}`);
      }
      return judged === 0 ? ["no text at all"] : [...poor];
      """)
    return (found.arrayValue ?? []).compactMap(\.stringValue)
  }

  /// What can be used, or groups what is on the page, and has no name for assistive technology; and
  /// tables that are none to it, however they are laid out.
  public func unnamedControls() async throws -> [String] {
    let tree = try await sendToDevTools("Accessibility.getFullAXTree", [:])
    var found: [String] = []
    var counts: [String: Int] = [:]
    for node in tree.objectValue?["nodes"]?.arrayValue ?? [] {
      guard let node = node.objectValue, node["ignored"]?.boolValue != true else { continue }
      let role = node["role"]?.objectValue?["value"]?.stringValue ?? ""
      let name = node["name"]?.objectValue?["value"]?.stringValue ?? ""
      counts[role, default: 0] += 1
      guard Self.namedRoles.contains(role) || Self.isFocusable(node) else { continue }
      if name.trimmingCharacters(in: .whitespaces).isEmpty { found.append("a \(role)") }
    }
    for (selector, role) in Self.keptRoles {
      let shown = try await run(
        """
        return document.querySelector("dialog:modal") ? 0
          : [...document.querySelectorAll(arguments[0])].filter((it) => it.checkVisibility()).length
        """, [.string(selector)])
      let expected = Int(shown.integerValue ?? 0)
      if counts[role, default: 0] < expected {
        found.append("\(counts[role, default: 0]) of \(expected) are a \(role)")
      }
    }
    return counts["button", default: 0] == 0 ? ["no button at all"] : found
  }

  /// What axe-core finds on the page: the rule, how bad it is, and where.
  public func axeViolations() async throws -> [String] {
    let lib = Vectors.package.appending(path: ".build/tools/mitmproxy/lib")
    let folders = try FileManager.default.contentsOfDirectory(
      at: lib, includingPropertiesForKeys: nil)
    let scripts = folders.map {
      $0.appending(path: "site-packages/axe_playwright_python/axe.min.js")
    }
    guard
      let script = scripts.lazy.compactMap({ try? String(contentsOf: $0, encoding: .utf8) }).first
    else {
      return ["no axe.min.js below \(lib.path()); hint: make deps-test installs it"]
    }
    let found = try await run(
      """
      \(script)
      return window.axe.run({ resultTypes: ["violations"] }).then(({ violations, passes }) =>
        passes.length === 0 ? ["nothing was looked at"] : violations.map(({ id, impact, nodes }) =>
          `${id} (${impact}): ${nodes.map(({ target }) => target.join(" ")).join(", ")}`));
      """)
    return (found.arrayValue ?? [.string("no answer")]).compactMap(\.stringValue)
  }

  private static let namedRoles: Set<String> = [
    "link", "button", "combobox", "textbox", "searchbox", "radio", "dialog", "table", "image",
    "navigation", "region", "columnheader", "rowheader", "DisclosureTriangle",
  ]
  private static let keptRoles = [
    ("table", "table"), ("tbody td", "cell"), ("thead th", "columnheader"),
    ("tbody th", "rowheader"),
  ]

  private static func isFocusable(_ node: JSONObject) -> Bool {
    (node["properties"]?.arrayValue ?? []).contains { property in
      property.objectValue?["name"]?.stringValue == "focusable"
        && property.objectValue?["value"]?.objectValue?["value"]?.boolValue == true
    }
  }
}

extension Browser {
  /// The words on the page that are broken over two lines though they would fit into one. Pins and what else is code may
  /// break anywhere.
  public func brokenWords() async throws -> [String] {
    let found = try await run(
      """
      const broken = new Set();
      const range = document.createRange();
      const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
      while (walker.nextNode()) {
        const node = walker.currentNode;
        const holder = node.parentElement;
        if (!holder.checkVisibility() || holder.closest("code, pre, svg, option, textarea")) continue;
        for (const match of node.nodeValue.matchAll(/[\\p{L}\\p{N}]+/gu)) {
          range.setStart(node, match.index);
          range.setEnd(node, match.index + match[0].length);
          const rects = [...range.getClientRects()].filter(({ width }) => width > 0);
          const lines = new Set(rects.map(({ top }) => Math.round(top)));
          const width = rects.reduce((sum, rect) => sum + rect.width, 0);
          if (lines.size > 1 && width < window.innerWidth * 0.6) broken.add(`${match[0]} in ${holder.textContent.slice(0, 80)}`);
        }
      }
      return [...broken];
      """)
    return (found.arrayValue ?? []).compactMap(\.stringValue)
  }

  /// What time zone the browser is in.
  public func setTimeZone(_ name: String) async throws {
    try await sendToDevTools("Emulation.setTimezoneOverride", ["timezoneId": .string(name)])
  }
}
