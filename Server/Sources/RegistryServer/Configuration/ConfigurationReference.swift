import RegistryStores

/// What the table of settings says, for people: as a file of YAML, and as the table of `docs/configuration.md`.
package enum ConfigurationReference {
  /// A configuration with every key, its default or what stands for a value, and what it is for.
  package static var yaml: String {
    var lines = [line("keys:", "at least one")]
    for (index, member) in ServerConfiguration.entryMembers.enumerated() {
      let key = "\(index == 0 ? "  - " : "    ")\(member.name): \(member.example)"
      lines.append(line(key, member.help))
    }
    for setting in Setting.allCases where setting.section.isEmpty && setting != .keys {
      lines.append(line("\(setting.name): \(setting.row.placeholder)", setting.row.plainHelp))
    }
    for section in Setting.sections {
      lines.append("\(section):")
      for setting in Setting.allCases where setting.section == section {
        let standard = setting.standard
        let value = standard.isEmpty ? setting.row.placeholder : standard
        lines.append(line("  \(setting.name): \(value)", setting.row.plainHelp))
      }
    }
    return lines.joined(separator: "\n")
  }

  /// The rows of the table in `docs/configuration.md`: key, default, flag, whether a running server takes it, what it
  /// is for.
  package static var table: String {
    Setting.allCases.map { setting in
      let row = setting.row
      let flags = [setting.flag, row.flag?.other, row.flag?.short].compactMap(\.self)
      let cells = [
        code([setting.rawValue]), code([setting.standard]), code(flags),
        row.reload == .restart ? "no" : "yes",
        row.help + (row.details.isEmpty ? "" : "; \(row.details)"),
      ]
      return "|" + cells.map { $0.isEmpty ? " |" : " \($0) |" }.joined()
    }.joined(separator: "\n")
  }

  private static func code(_ texts: [String]) -> String {
    texts.filter { !$0.isEmpty }.map { "`\($0)`" }.joined(separator: ", ")
  }

  /// Where comments begin, and how long a line may be.
  private static let (column, width) = (36, 100)

  /// A line with its comment, which goes on below where it is too long.
  private static func line(_ text: String, _ comment: String) -> String {
    var (out, rest) = (text, comment.split(separator: " ")[...])
    var last = text.utf8.count
    while !rest.isEmpty {
      let pad = max(1, column - last)
      var words = "#"
      let room = width - last - pad
      while let word = rest.first, words == "#" || words.utf8.count + 1 + word.utf8.count <= room {
        words += " \(word)"
        rest = rest.dropFirst()
      }
      out += String(repeating: " ", count: pad) + words
      if !rest.isEmpty { (out, last) = (out + "\n", 0) }
    }
    return out
  }
}

extension Setting {
  /// The default, as it would be written; empty for none, and for one that depends on the machine.
  package var standard: String {
    if let standard = row.standard { return standard }
    let shipped = ServerConfiguration(documents: [])
    var ofDatabase = shipped
    ofDatabase.storage = .postgres(dsn: "", pool: ConnectionPoolConfiguration())
    let value =
      shipped.value(of: self, isMasked: true) ?? ofDatabase.value(of: self, isMasked: true)
    return value?.settingText ?? ""
  }
}
