import CanonicalJSON
import SslPinningPlatform
import SslPinningRules
import TLSTools

/// `pin`: which pins a file or a server has.
enum PinCommand {
  private static let json = Flag("--json", "one line of JSON: an array with an object per target")
  private static let timeout = Flag.seconds("--timeout", "for each server, in all; 10 by default")
  private static let all = Flag(
    "--all", "of a server: each address and each kind of key, side by side")

  static let command = Command(
    "pin", "show the pins (SPKI-SHA256-BASE64) of certificates, keys and servers",
    argument: Argument(
      placeholder: "FILE|HOST[:PORT]",
      help:
        "PEM, DER or .p12, every certificate, CSR and key in it; or a server, port 443 by default; [::1]:443",
      count: .some),
    flags: [
      json.description, all.description, timeout.description, TrustArguments.ca.description,
      PasswordArgument.flag.description,
    ],
    notes: [
      "Prints a line for each certificate: pin, role, subject. A name that is an existing file is a\n"
        + "file. Of a server it shows the validated path, or what was sent where none is valid.",
      "A server whose certificate is not trusted still has pins: they are shown, what is wrong with it\n"
        + "is told on standard error (--json: \"trusted\", \"complaint\"), and the exit code is 0, because\n"
        + "the question was which pins. With several targets the exit code is the worst of theirs.",
      "With --all a line for each address and kind of key: what each shows to a client that takes this kind\n"
        + "alone. Addresses with other keys than the first are told of. An address that cannot be asked is exit\n"
        + "code 3.",
    ],
    run: run)

  private static func run(_ invocation: Invocation) async throws(CommandFailure) -> ExitStatus {
    let authorities = try TrustArguments.authorities(invocation)
    var status = ExitStatus.yes
    var reports: [JSONValue] = []
    for target in invocation.arguments {
      do throws(CommandFailure) {
        let report = try await report(on: target, trusting: authorities, invocation)
        Terminal.warn(report.warnings)
        if invocation[json] {
          reports.append(report.json)
        } else {
          try Terminal.write(line: report.text)
        }
        status = status.worse(report.status)
      } catch {
        Terminal.say(error.message)
        reports.append(
          .members([
            "target": .string(Secrets.hidden(in: target)),
            "error": .string(Secrets.hidden(in: error.message)),
          ]))
        status = status.worse(error.status)
      }
    }
    if invocation[json] { try Terminal.write(.array(reports)) }
    return status
  }

  private static func report(
    on target: String, trusting authorities: ChainValidator?, _ invocation: Invocation
  ) async throws(CommandFailure) -> any TargetReport {
    if target == InputFile.standardInput || InputFile.exists(target) || looksLikeFile(target) {
      guard !invocation[all] else { throw .usage("\(target): --all is for servers") }
      let keys = try PinFile.pins(inFile: target) { () throws(CommandFailure) in
        try PasswordArgument.read(for: target, invocation)
      }
      return PinReport(file: target, keys: keys)
    }
    let milliseconds = Int64((invocation[timeout] ?? 10) * 1000)
    let server: ProbeTarget
    do throws(ProbeError) { server = try ProbeTarget(parsing: target) } catch {
      // `invalidTarget` quotes what was parsed, with the port added: the user's own words are better.
      if case .invalidTarget = error {
        let told = "no file of this name, and \(ProbeError.invalidTarget(target.shortened))"
        let isASCII = target.utf8.allSatisfy { $0 < 0x80 }
        throw .usage(isASCII ? told : told.addingHint("names with other letters begin with xn--"))
      }
      throw .usage("no file of this name, and \(error)")
    }
    do throws(ProbeError) {
      if invocation[all] {
        return try await AddressReport(of: server, trusting: authorities, milliseconds)
      }
      let probe = try TLSProbe(anchors: authorities)
      return PinReport(
        target: target, try await probe.probe(server, milliseconds: milliseconds))
    } catch { throw .couldNotFindOut("\(target): \(error)") }
  }

  /// `cert.pem` could be a host, and never is: a slip in a file's name must not become a dial.
  private static func looksLikeFile(_ target: String) -> Bool {
    let endings = [
      ".pem", ".crt", ".cer", ".der", ".cert", ".csr", ".req", ".key", ".p12", ".pfx", ".txt",
      ".json",
    ]
    return !target.contains("://")
      && (target.contains("/") || endings.contains { target.lowercased().hasSuffix($0) })
  }
}

/// What `pin` says of one target.
protocol TargetReport: Sendable {
  var text: String { get }
  var json: JSONValue { get }
  /// What a reader of the pins has to know before using them.
  var warnings: [String] { get }
  var status: ExitStatus { get }
}

extension PinReport: TargetReport {
  var warnings: [String] { [warning].compactMap { $0 } }
  var status: ExitStatus { .yes }
}

/// What each address of a server shows, for each kind of key that a client may take.
struct AddressReport: TargetReport {
  /// One of the keys of one address.
  private struct Shown {
    let kind: CertificateKeyKind
    /// The leaf's.
    let pin: SPKIPin?
    let complaint: String?
  }

  /// An address with its keys, or why it has none.
  private struct Row {
    let name: String
    var keys: [Shown] = []
    var failure: String?

    var pins: Set<SPKIPin> { Set(keys.compactMap(\.pin)) }
  }

  private let target: String
  private let rows: [Row]
  /// Addresses that were not asked.
  private let leftOut: Set<Endpoint>

  /// Asks all addresses for all kinds at the same time.
  init(
    of server: ProbeTarget, trusting anchors: ChainValidator?, _ milliseconds: Int64
  ) async throws(ProbeError) {
    let judge: ChainValidator
    do throws(CertificateError) {
      judge = if let anchors { anchors } else { try ChainValidator.system() }
    } catch { throw .local(reason: "\(error)") }
    guard let host = try? HostName(server.host) else { throw .invalidTarget("\(server)") }
    let kinds = CertificateKeyKind.allCases
    var probes: [TLSProbe] = []
    for kind in kinds { probes.append(try TLSProbe(anchors: judge, showing: kind)) }
    let surveys = await withTaskGroup(of: (Int, [ProbeFinding]).self) { group in
      for (index, probe) in probes.enumerated() {
        group.addTask {
          let findings = await probe.survey(
            host, port: server.port, addresses: server.connectTo, from: [.direct],
            limits: ProbeLimits(total: milliseconds),
            trusting: judge, cache: VerdictCache())
          return (index, findings)
        }
      }
      return await group.reduce(into: [Int: [ProbeFinding]]()) { $0[$1.0] = $1.1 }
    }
    var order: [String] = []
    var rows: [String: Row] = [:]
    for (index, kind) in kinds.enumerated() {
      for finding in surveys[index] ?? [] {
        // Without an address its name could not be looked up.
        let name = finding.address.map { "\($0)" } ?? "\(server)"
        if rows[name] == nil { order.append(name) }
        var row = rows[name] ?? Row(name: name)
        switch finding.outcome {
        case .success(.trusted(let path)):
          row.keys.append(Shown(kind: kind, pin: path.first?.pin, complaint: nil))
        case .success(.untrusted(let reason, let leaf, _)):
          row.keys.append(Shown(kind: kind, pin: leaf, complaint: reason))
        case .failure(let error): row.failure = row.failure ?? "\(error)"
        }
        rows[name] = row
      }
    }
    target = "\(server)"
    self.rows = order.compactMap { rows[$0] }
    leftOut = surveys.values.joined().reduce(into: []) { $0.formUnion($1.leftOut) }
  }

  var text: String {
    var table = TextTable()
    for row in rows {
      for key in row.keys {
        table.add([
          row.name, key.kind.rawValue, key.pin?.base64 ?? "(no pin)",
          key.complaint.map { "not trusted: \($0)" } ?? "trusted",
        ])
      }
      // An address that shows one kind of key refuses a client that takes the other alone.
      if row.keys.isEmpty { table.add([row.name, "-", row.failure ?? "no key"]) }
    }
    return table.text
  }

  var json: JSONValue {
    .members([
      "target": .string(target), "kind": .string("addresses"),
      "addresses": .array(
        rows.map { row in
          .members([
            "address": .string(row.name),
            "keys": .array(
              row.keys.map { key in
                .members([
                  "kind": .string(key.kind.rawValue), "pin": .optional(key.pin?.base64),
                  "trusted": .bool(key.complaint == nil), "complaint": .optional(key.complaint),
                ])
              }),
            "error": .optional(row.keys.isEmpty ? row.failure : nil),
          ])
        }),
      "alike": .bool(unlike.isEmpty),
    ])
  }

  /// Addresses that were asked and have other keys than the first.
  private var unlike: [Row] {
    let asked = rows.filter { !$0.keys.isEmpty }
    return asked.filter { $0.pins != asked.first?.pins }
  }

  var warnings: [String] {
    unlike.map { "\($0.name) has other keys than \(rows.first { !$0.keys.isEmpty }?.name ?? "")" }
      + [leftOut.passedOver].compactMap { $0.map { "\(target): \($0)" } }
  }

  var status: ExitStatus { rows.contains(where: \.keys.isEmpty) ? .couldNotFindOut : .yes }
}
