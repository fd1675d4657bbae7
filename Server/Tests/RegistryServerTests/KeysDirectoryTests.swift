import Foundation
import RegistryServer
import TestSupport
import Testing

@Suite("keys_dir") struct KeysDirectoryTests {
  private let directory: TemporaryDirectory

  init() throws { directory = try TemporaryDirectory() }

  /// A configuration that names a directory with these files.
  private func sources(
    _ files: [String: String], configuration: String? = "keys: [{fqdn: own.test}]",
    in place: String = "one"
  ) throws -> ConfigurationSources {
    for (name, text) in files { try directory.write(text, to: "\(place)/keys/\(name)") }
    let path = directory.path("\(place)/keys")
    if let configuration {
      try directory.write("keys_dir: '\(path)'\n\(configuration)\n", to: "\(place)/config.yaml")
    }
    let environment = configuration == nil ? ["SSL_PINNING_KEYS_DIR": path] : [:]
    let file = configuration == nil ? nil : "config.yaml"
    return ConfigurationSources(
      file: file, directory: directory.path(place), environment: environment)
  }

  @Test("adds the entries of all its files, in the order of their names, and reads them again")
  func merged() throws {
    let sources = try sources([
      "b.yaml":
        "keys:\n  - fqdn: b.test\n  - fqdn: own.test\n    port: 8443\n    file: own.test.json\n",
      "a.json": #"{"keys": [{"fqdn": "a.test"}]}"#, "C.yml": "keys: [{fqdn: c.test}]",
      "empty.yaml": "keys: []", ".hidden.yaml": "no: [", "README.md": "no: [",
    ])
    let read = try sources.read()
    #expect(
      read.documents.map(\.file) == [
        "own.test.json", "c.test.json", "a.test.json", "b.test.json",
      ])
    #expect(read.documents.first?.endpoints.map(\.id) == ["own.test:443", "own.test:8443"])
    try directory.write("keys: [{fqdn: d.test}]", to: "one/keys/d.yaml")
    try FileManager.default.removeItem(at: directory.file("one/keys/b.yaml"))
    let again = try sources.read()
    let changes = again.changes(from: read)
    #expect(changes.map(\.setting) == [.keys] && changes.map(\.effect) == [.whileRunning])
    #expect(again.documents.map(\.file).suffix(2) == ["a.test.json", "d.test.json"])
  }

  @Test("is enough alone, named by the environment")
  func alone() throws {
    let sources = try sources(["a.yaml": "keys: [{fqdn: a.test}]"], configuration: nil)
    #expect(try sources.read().documents.map(\.file) == ["a.test.json"])
    let none = try self.sources(["a.yaml": "keys: []"], configuration: nil, in: "other")
    #expect(throws: ConfigurationError.self) { try none.read() }
  }

  @Test(
    "is refused as a whole for one file, whose name and line are told",
    arguments: [
      ("keys:\n  - fqdn: a.test\n  - port: 1\n", "b.yaml: line 3: keys[2].fqdn is missing"),
      ("keys:\n  - fqdn: a.test\n    prot: 1\n", "b.yaml: line 3: unknown key keys[1].prot"),
      ("keys: [{fqdn: a.test}]\ntls: {dir: /}\n", "b.yaml: line 2: unknown key tls"),
      ("keys:\n  - fqdn: [\n", "keys_dir: not YAML"),
      ("keys: 7\n", "b.yaml: line 1: keys is a number"),
      ("", "b.yaml: line 1: keys is missing"), ("# later\n", "b.yaml: line 1: keys is missing"),
      ("keys:\n", "b.yaml: line 1: keys is missing"),
      ("- fqdn: a.test\n", "b.yaml: line 1: the configuration is a list"),
      ("\nkeys:\n  - fqdn: own.test\n", "b.yaml: line 3: keys[1].fqdn: own.test of own.test:443"),
      (
        "keys: []\nkeys: []\n",
        "b.yaml: line 2: keys stands twice; hint: it was first set on line 1"
      ),
    ])
  func refused(_ text: String, _ told: String) throws {
    let sources = try sources(["a.yaml": "keys: []", "b.yaml": text])
    let error = #expect(throws: ConfigurationError.self) { try sources.read() }
    let message = try #require(error).description(file: "config.yaml")
    #expect(message.contains(told) && !message.contains("config.yaml"), "\(message)")
  }

  @Test("must be there, and is read within the size of one configuration")
  func limits() throws {
    let missing = try sources([:])
    let error = #expect(throws: ConfigurationError.self) { try missing.read() }
    #expect(
      error == .unreadable(path: directory.path("one/keys"), reason: "no such file or directory"))
    let half =
      "keys: []" + String(repeating: " ", count: ServerConfiguration.maximumBytes / 2 + 1)
    let tooLarge = try sources(["a.yaml": half, "b.yaml": half], in: "two")
    #expect(throws: ConfigurationError.tooLarge(limit: ServerConfiguration.maximumBytes)) {
      try tooLarge.read()
    }
    // 100 000 entries in two files: what thousands of hosts need.
    let list = { (name: String) in
      "keys:\n" + (0..<50_000).map { "  - {fqdn: \(name)\($0).test}\n" }.joined()
    }
    let large = try sources(["a.yaml": list("a"), "b.yaml": list("b")], in: "three")
    #expect(try large.read().documents.count == 100_001)
  }
}
