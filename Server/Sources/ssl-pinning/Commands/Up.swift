import Foundation
import RegistryServer

/// `up`: the registry server, until it is told to stop.
enum Up {
  static let command = Command(
    "up", "run the registry server: watch endpoints, sign their keys, publish them",
    flags: ServerArguments.descriptions,
    notes: [
      "Says on standard output where it listens, and logs to standard error, a line for each event, as\n"
        + "the configuration has it. SIGTERM and SIGINT stop it cleanly, with exit code 0; SIGHUP reads\n"
        + "the configuration, the keys and the key sets again.",
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
      try await RegistryService(configuration: configuration, log: log).run(reading: sources.read) {
        address in
        let scheme = configuration.server.certificate == nil ? "http" : "https"
        announcements.append(Array("listening on \(scheme)://\(address)\n".utf8))
      }
    } catch { throw failure(error) }
    return .yes
  }

  /// What was read and is no good is "no"; what the machine did not give is "could not".
  static func failure(_ error: RegistryServiceError) -> CommandFailure {
    switch error {
    case .signer(.signingKey(_, .unreadable)): .couldNotFindOut("\(error)")
    // It was read, and no database can be there.
    case .signer, .store(.invalidDSN), .store(.seal): .no("\(error)")
    case .anchors, .store, .listening, .alreadyStarted: .couldNotFindOut("\(error)")
    }
  }
}
