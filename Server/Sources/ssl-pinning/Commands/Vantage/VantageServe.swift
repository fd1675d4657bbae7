import Foundation
import RegistryServer
import SslPinningPlatform
import SslPinningRules
import TLSTools

/// `vantage`: another place from which registry servers probe, until it is told to stop.
enum VantageServe {
  private static let directory = Flag.text(
    "--dir", "DIR", "where its key is, made at the first start; vantage by default")
  private static let listen = Flag.text(
    "--listen", "ADDRESS:PORT", "listen here; :8443, every address, by default")
  private static let clients = Flag.texts(
    "--client", "PIN", "the key of a registry server that is let in")
  private static let hosts = Flag.texts(
    "--host", "HOST[:PORT]", "what it may be asked for; port 443 by default")
  private static let hostFile = Flag.text(
    "--hosts", "FILE", "more of them, one a line; read again at SIGHUP")
  private static let networks = Flag.texts(
    "--network", "NETWORK", "addresses to dial though they are private, such as 10.1.0.0/16")

  static let command = Command(
    "vantage", "be a second look-out: let registry servers probe their endpoints from here",
    flags: [
      clients.description, hosts.description, hostFile.description, networks.description,
      listen.description, directory.description,
    ],
    notes: [
      "Lets in nobody but the registry servers of --client, who prove their key over TLS 1.3, and dials nothing\n"
        + "but the hosts and ports named, at addresses of the open internet. ssl-pinning vantage join, on the\n"
        + "registry's machine, prints the whole command, and afterwards what the registry is to be told.",
      "Logs to standard error, a line for each event. SIGTERM and SIGINT stop it, with exit code 0; SIGHUP reads\n"
        + "--hosts again. See docs/vantage.md.",
    ],
    run: run)

  private static func run(_ invocation: Invocation) async throws(CommandFailure) -> ExitStatus {
    ServerProcess.prepare()
    let pins = try pins(invocation)
    let rules = try rules(invocation)
    let identity = try VantageKey.identity(
      in: invocation[directory] ?? "vantage", called: "vantage")
    let pin = try VantageKey.pin(of: identity)
    let log = ServerLog.standardError()
    defer { log.close() }
    let server: VantageServer
    do throws(VantageError) {
      server = try VantageServer(
        on: invocation[listen] ?? ":8443", showing: identity, to: pins, rules: rules, log: log)
    } catch {
      if case .invalid = error { throw .usage("\(error)") }
      throw .couldNotFindOut("\(error)")
    }
    let signal = await TerminationSignal { readAgain(invocation, server, log) }
    signal.catchUp()
    try Terminal.write(line: "listening on https://\(server.address)")
    try Terminal.write(
      line: "ssl-pinning vantage join https://HOST:\(server.port) --name NAME --pin \(pin)")
    log.event(
      .info, "vantage_started",
      ["address": "\(server.address)", "pin": "\(pin)", "hosts": "\(rules.count)"])
    let name = await signal.wait()
    log.event(.info, "vantage_stopped", ["signal": name])
    server.stop()
    return .yes
  }

  private static func readAgain(
    _ invocation: Invocation, _ server: VantageServer, _ log: ServerLog
  ) {
    do throws(CommandFailure) {
      let rules = try rules(invocation)
      server.change(rules)
      log.event(.info, "vantage_hosts", ["hosts": "\(rules.count)"])
    } catch {
      log.event(
        .error, "vantage_hosts_refused",
        ["reason": error.message, "message": "those before stay in force"])
    }
  }

  private static func pins(_ invocation: Invocation) throws(CommandFailure) -> Set<SPKIPin> {
    var pins: Set<SPKIPin> = []
    for text in invocation[clients] ?? [] {
      do throws(PinSyntaxError) { pins.insert(try SPKIPin(parsing: text)) } catch {
        throw .usage("--client \(text): \(error)")
      }
    }
    guard !pins.isEmpty else {
      throw .usage(
        "without --client nobody is let in; hint: ssl-pinning vantage join, on the registry's machine, prints it"
      )
    }
    return pins
  }

  private static func rules(_ invocation: Invocation) throws(CommandFailure) -> VantageRules {
    var texts = invocation[hosts] ?? []
    if let file = invocation[hostFile] {
      texts += String(decoding: try InputFile.read(file, limit: 1 << 20), as: UTF8.self)
        .split(whereSeparator: \.isNewline).map { $0.trimmingCharacters(in: .whitespaces) }
        .filter { !$0.isEmpty && !$0.hasPrefix("#") }
    }
    do throws(VantageError) {
      return try VantageRules(hosts: texts, networks: invocation[networks] ?? [])
    } catch { throw .usage("\(error)") }
  }
}

/// The key by which a vantage point, or a registry server at one, is known: a file of PEM, and a certificate that it
/// signed itself. Only the key counts.
enum VantageKey {
  /// Reads it, or makes it.
  static func identity(
    in directory: String, called name: String
  ) throws(CommandFailure) -> ServerIdentity {
    let (keyPath, path) = ("\(directory)/\(name).key", "\(directory)/\(name).pem")
    let key = InputFile.exists(keyPath) ? try KeyFiles.key(in: keyPath) : nil
    if key != nil, InputFile.exists(path) {
      return try KeyFiles.identity(certificates: path, key: keyPath)
    }
    try OutputFile.makePrivateDirectory(directory)
    let identity: ServerIdentity
    let secret: String
    do throws(CertificateError) {
      let used = if let key { key } else { try PrivateKey.generate(.p256) }
      identity = try ServerIdentity.selfSigned(
        names: [name], key: used, validity: .daysFromNow(36_500))
      secret = try identity.keyPEM
    } catch { throw .couldNotFindOut("\(error)") }
    var new = NewFiles()
    if key == nil { try new.write(keyPath, Array(secret.utf8), isSecret: true) }
    try new.write(path, Array(identity.certificateChainPEM.utf8))
    return identity
  }

  static func pin(of identity: ServerIdentity) throws(CommandFailure) -> SPKIPin {
    guard let pin = try? SPKIPin(certificateDER: identity.leaf.der) else {
      throw .no("the key cannot be read")
    }
    return pin
  }
}
