import CanonicalJSON
import Foundation
import RegistryServer
import SslPinningRules

/// `up`: the registry server, until it is told to stop.
enum Up {
  static let command = Command(
    "up", "run the registry server: watch endpoints, sign their keys, publish them",
    flags: ServerArguments.descriptions,
    notes: [
      "Says on standard output where it listens, and logs to standard error, a line for each event, as\n"
        + "the configuration has it. SIGTERM and SIGINT stop it cleanly, with exit code 0; SIGHUP reads\n"
        + "the configuration, the keys and the key sets again.",
      "Under a service manager (NOTIFY_SOCKET) it tells when it is ready, and gives signs of life while it\n"
        + "watches: see sd_notify(3), and docs/install.md.",
      ConfigurationHelp.keys,
    ],
    run: run)

  private static func run(_ invocation: Invocation) async throws(CommandFailure) -> ExitStatus {
    ServerProcess.prepare()
    let sources = ServerArguments.sources(invocation)
    let effective = try ServerArguments.configuration(sources)
    let configuration = effective.configuration
    let log = ServerLog.standardError(
      level: configuration.logLevel, format: configuration.logFormat,
      isPretty: configuration.logPretty)
    // What is logged last says why the server ended.
    defer { log.close() }
    log.event(effective)
    // A server outlives whoever read its first line, and does not wait for him either.
    let announcements = LogWriter(to: STDOUT_FILENO) { _ in [] }
    defer { announcements.close(within: 0.1) }
    do throws(RegistryServiceError) {
      let service = try RegistryService(configuration: configuration, log: log)
      try await service.run(reading: sources.read, manager: ServiceManager()) { address in
        let scheme = configuration.server.certificate == nil ? "http" : "https"
        announcements.append(Array("listening on \(scheme)://\(address)\n".utf8))
      }
    } catch {
      let failure = failure(error)
      // Whoever reads the log by machine reads this, too.
      guard configuration.logFormat == .json else { throw failure }
      log.event(.error, "up_failed", ["reason": failure.message])
      return failure.status
    }
    return .yes
  }

  /// What was read and is no good is "no"; what the machine did not give is "could not".
  static func failure(_ error: RegistryServiceError) -> CommandFailure {
    switch error {
    case .signer(.signingKey(_, .unreadable)): .couldNotFindOut("\(error)")
    case .signer(.signingKey(_, .command(.file))): .no("\(error)")
    // A device may be there in a moment.
    case .signer(.signingKey(_, .command)): .couldNotFindOut("\(error)")
    // It was read, and no database can be there.
    case .signer, .store(.invalidDSN), .store(.seal), .terms: .no("\(error)")
    case .anchors, .receiver, .store, .listening, .alreadyStarted: .couldNotFindOut("\(error)")
    }
  }
}

/// `token`: lets an administrator in.
enum TokenCommand {
  private static let name = Flag.text(
    "--name", "NAME", "who it is for, as the history will say; admin by default")
  private static let ttl = Flag<Int64>(
    "--ttl", "TIME", "for how long it is valid, such as 8h; ui.token_ttl by default"
  ) { text throws(FlagValueError) in
    guard let milliseconds = GoDuration.milliseconds(text), milliseconds >= 1000 else {
      throw FlagValueError(wanted: "a time such as 30m, 8h or 7d")
    }
    return milliseconds
  }
  private static let scope = Flag<String>(
    "--scope", "SCOPE", "read, stage or decide: what it lets its bearer do; decide by default"
  ) { text throws(FlagValueError) in
    guard ["read", "stage", "decide"].contains(text) else {
      throw FlagValueError(wanted: "read, stage or decide")
    }
    return text
  }
  private static let hosts = Flag.texts(
    "--host", "HOST", "with --scope stage, a host whose keys its bearer may announce")
  private static let json = Flag(
    "--json", "one line of JSON instead: token, id, name, scope, issued, expires")

  static let command = Command(
    "token", "print a token for the console and the administration of the registry server",
    flags: [
      name.description, ttl.description, scope.description, hosts.description, json.description,
    ] + ServerArguments.descriptions,
    notes: [
      "Reads what up reads, with the same flags, and asks no server: whoever can read server.key, or\n"
        + "prv.pem where that is not set, is an administrator. Sent as Authorization: Bearer TOKEN.",
      "With --scope read its bearer sees everything and changes nothing. With --scope stage, and --host, it\n"
        + "announces keys of these hosts by their certificate requests, and sees nothing: for a renewal's script.",
      "A token is all that its bearer needs, until it expires. To end one before that, put its id into\n"
        + "ui.revoked_tokens; to end all, set server.key to another text, such as openssl rand -base64 32 prints.",
    ],
    run: run)

  private static func run(_ invocation: Invocation) throws(CommandFailure) -> ExitStatus {
    let configuration = try ServerArguments.configuration(ServerArguments.sources(invocation))
      .configuration
    let issuer: AdminTokenIssuer
    do throws(DocumentSignerError) { issuer = try AdminTokenIssuer(configuration) } catch {
      if case .signingKey(_, .unreadable) = error { throw .couldNotFindOut("\(error)") }
      throw .no("\(error)")
    }
    let (name, now) = (invocation[name] ?? "admin", Int64(Date().timeIntervalSince1970))
    let seconds = (invocation[ttl] ?? configuration.administration.tokenTTL) / 1000
    let permitted = try scope(invocation)
    let token: String
    do throws(AdminTokenError) {
      token = try issuer.token(for: name, at: now, ttl: seconds, scope: permitted)
    } catch {
      switch error {
      case .scope: throw .usage("--host: \(error)")
      case .name: throw .usage("--name \(name): \(error)")
      case .times: throw .usage("--ttl: \(error)")
      default: throw .couldNotFindOut("\(error)")
      }
    }
    if invocation[json] {
      try Terminal.write(
        .members([
          "token": .string(token), "id": .string(AdminTokenIssuer.id(of: token)),
          "name": .string(name), "scope": .string("\(permitted)"), "issued": .integer(now),
          "expires": .integer(now + seconds),
        ]))
    } else {
      try Terminal.write(line: token)
    }
    if !configuration.administration.isEnabled {
      Terminal.say(
        "warning: ui.enabled is false, and a server with this configuration takes no token")
    }
    return .yes
  }

  private static func scope(_ invocation: Invocation) throws(CommandFailure) -> AdminScope {
    var names: [HostName] = []
    for text in invocation[hosts] ?? [] {
      do throws(HostNameError) { names.append(try HostName(text)) } catch {
        throw .usage("--host \(text): \(error)")
      }
    }
    let word = invocation[scope] ?? "decide"
    guard (word == "stage") == !names.isEmpty else {
      throw .usage(
        word == "stage"
          ? "--scope stage is for hosts; hint: --host api.example.com"
          : "--host is for --scope stage alone")
    }
    return word == "stage" ? .stage(hosts: names) : word == "read" ? .read : .decide
  }
}
