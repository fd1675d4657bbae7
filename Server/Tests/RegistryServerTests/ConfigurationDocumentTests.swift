import Foundation
import RegistryServer
import TestSupport
import Testing

@Suite("docs/configuration.md") struct ConfigurationDocumentTests {
  private static let file = Vectors.package.appending(path: "docs/configuration.md")

  /// The cells of the table, by key.
  private static func rows() throws -> [String: [String]] {
    var rows: [String: [String]] = [:]
    for line in try String(contentsOf: file, encoding: .utf8).split(separator: "\n")
    where line.hasPrefix("| `") {
      let cells = line.split(separator: "|", omittingEmptySubsequences: false).dropFirst().map {
        $0.trimmingCharacters(in: .whitespaces).replacing("`", with: "")
      }
      rows[try #require(cells.first)] = cells
    }
    return rows
  }

  @Test("has every key with its default, its flag, and whether it is live")
  func table() throws {
    let rows = try Self.rows()
    #expect(Set(rows.keys) == Set(Setting.allCases.map(\.rawValue)))
    let directory = try TemporaryDirectory()
    try directory.write("keys: [{fqdn: a.b}]", to: "config.yaml")
    let sources = ConfigurationSources(
      file: directory.path("config.yaml"), directory: ".", environment: ["XDG_STATE_HOME": "/s"])
    let values = try sources.effective().values
    for setting in Setting.allCases {
      let row = try #require(rows[setting.rawValue])
      let flag = row[2].split(separator: ",").first.map(String.init) ?? ""
      #expect(flag == setting.flag ?? "", "\(setting)")
      // The keys and the place of the state have no default that fits a cell.
      if setting == .keys || setting == .storageDSN { continue }
      let standard = values.first { $0.setting == setting }?.text
      // Those of a database are listed where there is one.
      let isOfDatabases = setting.rawValue.contains("conn") || setting == .storageInsecure
      #expect(isOfDatabases || row[1] == standard ?? "", "\(setting)")
    }
  }

  @Test("says of a change what is said when it is read", arguments: ConfigurationChangeTests.rows)
  func live(old: String, new: String, now: [Setting], later: [Setting]) throws {
    let rows = try Self.rows()
    // To https or from it is told in the row's text.
    let exceptions: [Setting] = [.serverCertificate, .serverPrivateKey]
    for setting in now { #expect(rows[setting.rawValue]?[3] == "yes", "\(setting)") }
    for setting in later where !exceptions.contains(setting) {
      #expect(rows[setting.rawValue]?[3] == "no", "\(setting)")
    }
  }

  @Test("has the table that the settings make; with WRITE_DOCS=1 in the environment it is written")
  func generated() throws {
    let text = try String(contentsOf: Self.file, encoding: .utf8)
    let lines = text.split(separator: "\n", omittingEmptySubsequences: false)
    let isRow = { (line: Substring) in line.hasPrefix("| `") }
    let first = try #require(lines.firstIndex(where: isRow))
    let last = try #require(lines.lastIndex(where: isRow))
    let table = ConfigurationReference.table.split(separator: "\n")
    if ProcessInfo.processInfo.environment["WRITE_DOCS"] != nil {
      try Data((lines[..<first] + table + lines[(last + 1)...]).joined(separator: "\n").utf8)
        .write(to: Self.file)
    } else {
      #expect(Array(lines[first...last]) == table)
    }
  }

  @Test("the help has every key with its default, and no line that a terminal breaks")
  func help() {
    let lines = ConfigurationReference.yaml.split(separator: "\n")
    #expect(lines.allSatisfy { $0.utf8.count <= 100 })
    var section = ""
    var found: [String: Substring] = [:]
    for line in lines where !line.hasPrefix("   ") {
      let parts = line.split(separator: " ", omittingEmptySubsequences: true)
      guard let key = parts.first, key.hasSuffix(":") else { continue }
      if line.hasPrefix(" ") {
        found["\(section).\(key.dropLast())"] = parts.dropFirst().first
      } else {
        section = String(key.dropLast())
        found[section] = ""
      }
    }
    #expect(Set(found.keys).isSuperset(of: Setting.allCases.map(\.rawValue)))
    #expect(found["tls.dump_interval"] == "1m" && found["storage.max_open_conns"] == "5")
    #expect(found["tls.anchors"] == "FILE" && found["publish.mirrors"] == "[]")
  }
}
