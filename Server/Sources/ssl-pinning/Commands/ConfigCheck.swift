import CanonicalJSON
import Foundation
import RegistryServer

/// `config check`: what the server would go by, and where each of its values was set.
enum ConfigCheck {
  private static let json = Flag("--json", "one line of JSON instead: file, settings, warnings")
  private static let offline = Flag(
    "--offline", "read the configuration alone: open no key, no anchors, no store, no port")
  private static let probe = Flag(
    "--probe", "and probe every endpoint once: the keys that it proves; none is published")

  static let command = Command(
    "config check", "check the registry server's configuration, and print what is in effect",
    flags: ServerArguments.descriptions + [
      offline.description, probe.description, json.description,
    ],
    notes: [
      "Reads what up reads, with the same flags, and starts nothing. Secrets are printed as ***. Then it\n"
        + "opens what up would open: keys, key sets, anchors, the listener's certificate and address, the\n"
        + "store; what up would refuse is refused with the same words. Nothing is made and nothing changed.\n"
        + "Run it as the user that up runs as. --offline leaves that out, for a machine that is another one.",
      "--probe exits 1 if an endpoint proves no key, or shows one under none of the CAs that ca asks for. A\n"
        + "server starts all the same, and publishes the others.",
      ConfigurationHelp.keys,
    ],
    run: run)

  private static func run(_ invocation: Invocation) async throws(CommandFailure) -> ExitStatus {
    guard !(invocation[offline] && invocation[probe]) else {
      throw .usage("--offline probes nothing; hint: leave out --probe")
    }
    let effective = try ServerArguments.configuration(ServerArguments.sources(invocation))
    var warnings = effective.warnings
    var failure: CommandFailure?
    if !invocation[offline] {
      do throws(RegistryServiceError) {
        warnings += try await ConfigurationTrial(
          effective.configuration, at: Int64(Date().timeIntervalSince1970)
        ).warnings
      } catch { failure = Up.failure(error) }
    }
    var findings: [ProbeTrial.Finding]?
    if failure == nil, invocation[probe] {
      do throws(RegistryServiceError) {
        findings = try await ProbeTrial(effective.configuration).findings
      } catch { failure = Up.failure(error) }
    }
    if invocation[json] {
      try Terminal.write(document(effective, warnings, findings))
    } else {
      try Terminal.write(line: table(effective))
      if let findings { try Terminal.write(line: table(findings)) }
    }
    for warning in warnings { Terminal.say("warning: \(warning)") }
    if let failure { throw failure }
    return findings?.allSatisfy { $0.isProved && !$0.lacksCA } == false ? .no : .yes
  }

  private static func table(_ findings: [ProbeTrial.Finding]) -> String {
    var table = TextTable(header: ["endpoint", "key", "issuer"])
    for finding in findings {
      for key in finding.keys { table.add([finding.endpoint, key.pin, key.issuer]) }
      for trouble in finding.troubles { table.add([finding.endpoint, "none", trouble]) }
    }
    return table.text
  }

  private static func json(_ finding: ProbeTrial.Finding) -> JSONValue {
    .members([
      "file": .string(finding.file), "endpoint": .string(finding.endpoint),
      "keys": .array(
        finding.keys.map { .members(["pin": .string($0.pin), "issuer": .string($0.issuer)]) }),
      "troubles": .array(finding.troubles.map(JSONValue.string)),
    ])
  }

  private static func document(
    _ effective: EffectiveConfiguration, _ warnings: [String],
    _ findings: [ProbeTrial.Finding]?
  ) -> JSONValue {
    var document: JSONObject = [
      "file": .optional(effective.file),
      "settings": .array(
        effective.values.map { value in
          .members([
            "key": .string(value.setting.rawValue), "value": value.value ?? .null,
            "used": .bool(value.value != nil), "from": origin(value.origin),
          ])
        }),
      "warnings": .array(warnings.map(JSONValue.string)),
    ]
    document["endpoints"] = findings.map { .array($0.map(json)) }
    return .object(document)
  }

  private static func origin(_ origin: ConfigurationOrigin) -> JSONValue {
    switch origin {
    case .standard: .members(["source": .string("default")])
    case .file(let line): .members(["source": .string("file"), "line": .integer(Int64(line))])
    case .keysFile(let path, let line):
      .members([
        "source": .string("file"), "file": .string(path), "line": .integer(Int64(line)),
      ])
    case .environment(let name):
      .members(["source": .string("environment"), "name": .string(name)])
    case .flag(let name): .members(["source": .string("flag"), "name": .string(name)])
    }
  }

  private static func table(_ effective: EffectiveConfiguration) -> String {
    var table = TextTable(header: ["key", "value", "from"])
    for value in effective.values {
      let from = Self.text(value.origin, effective.file)
      guard case .array(let elements)? = value.value, !elements.isEmpty else {
        let isEmptyList = value.value?.arrayValue != nil
        table.add([value.setting.rawValue, isEmptyList ? "none" : value.text, from])
        continue
      }
      for (index, element) in elements.enumerated() {
        // An entry of `keys` is shown once for each pattern, under the number that errors call it by.
        let written = value.elements.indices.contains(index) ? value.elements[index] : nil
        table.add([
          "\(value.setting.rawValue)[\(written?.index ?? index)]", text(element),
          written.map { Self.text($0.origin, effective.file) } ?? from,
        ])
      }
    }
    return table.text
  }

  private static func text(_ origin: ConfigurationOrigin, _ file: String?) -> String {
    switch origin {
    case .file(let line): file.map { "\($0):\(line)" } ?? "\(origin)"
    case .keysFile(let path, let line): "\(path):\(line)"
    case .standard, .environment, .flag: "\(origin)"
    }
  }

  /// An element of a list: a text, or the members of an entry.
  private static func text(_ element: JSONValue) -> String {
    switch element {
    case .string(let text): text
    case .object(let object):
      object.map { "\($0.key)=\(text($0.value))" }.joined(separator: " ")
    default: String(decoding: element.canonicalBytes, as: UTF8.self)
    }
  }
}

/// The configuration of the server, as its commands explain it.
enum ConfigurationHelp {
  /// The keys.
  static let keys = """
    the configuration, in YAML; all but keys have the defaults shown:

    \(ConfigurationReference.yaml.split(separator: "\n").map { "  \($0)" }.joined(separator: "\n"))

    A variable SSL_PINNING_ and a key, as in SSL_PINNING_TLS_DUMP_INTERVAL, wins over the file, and a
    flag over both. Lists are JSON: SSL_PINNING_KEYS='[{"fqdn": "www.example.com"}]'. With keys there,
    config.yaml need not exist. Paths are relative to the working directory. State is kept in
    $XDG_STATE_HOME/ssl-pinning, or in ~/.local/state/ssl-pinning, unless storage says where. The URL of
    a database is redis://user:password@host:6379/0 or postgres://user:password@host:5432/database.
    """
}
