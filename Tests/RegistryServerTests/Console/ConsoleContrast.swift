import CanonicalJSON
import TestSupport

extension ConsolePage {
  /// The texts on the page whose contrast with what is behind them is below 4.5 (WCAG 2.2 §1.4.3),
  /// computed from the colours in force.
  func textsOfLowContrast() async throws -> [String] {
    let found = try await browser.run(
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

  /// What can be used, or tells something by being seen, and has no name or another role than it
  /// should for assistive technology.
  func unnamedControls(in scope: String = "") async throws -> [String] {
    var found: [String] = []
    let roles: [(selector: String, roles: Set<String>)] = [
      ("a[href]", ["link"]), ("button", ["button"]), ("select", ["combobox"]),
      ("input, textarea", ["textbox", "searchbox", "radio", "button"]),
      ("summary", ["DisclosureTriangle", "button", "Summary"]), ("dialog", ["dialog"]),
      ("table", ["table"]), ("main svg[role]", ["img", "image"]), ("nav", ["navigation"]),
      ("section", ["region"]), ("th[scope=col]", ["columnheader"]),
      ("th[scope=row]", ["rowheader"]),
    ]
    for (selector, expected) in roles {
      // A page has hundreds of cells that are made alike; some of each tell as much.
      let all = selector.split(separator: ", ").map { "\(scope) \($0)" }.joined(separator: ", ")
      for element in try await browser.elements(all).prefix(12)
      where try await element.isDisplayed() {
        let (role, label) = (try await element.role(), try await element.label())
        if !expected.contains(role) { found.append("\(selector) has the role \(role)") }
        if label.isEmpty { found.append("\(selector) without a name: \(try await element.text())") }
      }
    }
    return found
  }
}
