import Foundation
import RegistryServer
import TestSupport
import Testing

@Suite("docs/configuration.md") struct ConfigurationDocumentTests {
  /// The cells of the table, by key.
  private static func rows() throws -> [String: [String]] {
    let file = Vectors.package.appending(path: "docs/configuration.md")
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
}
