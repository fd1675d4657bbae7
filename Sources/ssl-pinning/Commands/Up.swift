import Foundation
import RegistryServer

/// `up`: the registry server, until it is told to stop.
enum Up {
  private static let file = Flag.text(
    "--config-file", "FILE", "the configuration; config.yaml by default")
  private static let path = Flag.text(
    "--config-path", "DIR", "the directory that a relative FILE is in; this one by default")
  private static let listen = Flag<ListenAddress>(
    "--listen", "ADDR", "listen here, whatever the configuration says; 127.0.0.1:7500"
  ) { text throws(FlagValueError) in
    guard let address = ListenAddress(text) else {
      throw FlagValueError(wanted: "an IP address and a port, such as 127.0.0.1:7500 or [::1]:7500")
    }
    return address
  }

  static let command = Command(
    "up", "run the registry server: watch endpoints, sign their keys, publish them",
    flags: [file.description, path.description, listen.description],
    notes: [
      "Says on standard output where it listens, and logs to standard error, a line of JSON for each\n"
        + "event. SIGTERM and SIGINT stop it cleanly, with exit code 0; SIGHUP changes nothing. Paths\n"
        + "inside the configuration are relative to the working directory.",
      configurationKeys,
    ],
    run: run)

  private static let configurationKeys = """
    the configuration, in YAML; all but keys have the defaults shown:

      keys:                             # at least one
        - fqdn: www.example.com
          port: 443
          address: 192.0.2.1            # dialled instead of looking the name up
          domainName: "*.example.com"   # what it is published for; else fqdn and one label below it
          file: www.example.com.json    # the document it is in; else the fqdn's own
      server: {listen: "127.0.0.1:7500"}
      storage:
        type: sqlite                    # or memory
        dsn: FILE                       # else registry.db in $XDG_STATE_HOME/ssl-pinning,
                                        # or in ~/.local/state/ssl-pinning
      tls:
        dir: tls                        # where prv.pem is, and pub.pem
        anchors: FILE                   # trust only the certificates in it, not the system's
        dump_interval: 60s              # between looks at an endpoint
        timeout: 5s                     # for one look
        looks: 3                        # that must agree on a changed key
        look_interval: 2s               # between those
        grace: 7d                       # for which a key that is gone stays published
      log: {level: info}                # debug, info, warn or error
    """

  private static func run(_ invocation: Invocation) async throws(CommandFailure) -> ExitStatus {
    let path = configurationPath(invocation)
    var configuration: ServerConfiguration
    do throws(ConfigurationError) { configuration = try ServerConfiguration(file: path) } catch {
      if case .unreadable = error {
        throw .couldNotFindOut("\(error); hint: --config-file names the configuration")
      }
      throw .no("\(path): \(error)")
    }
    if let address = invocation[listen] { configuration.listen = address }
    do throws(RegistryServiceError) {
      try await RegistryService(configuration: configuration).run { address in
        // A server outlives whoever read its first line.
        Console.announce("listening on http://\(address)")
      }
    } catch { throw failure(error) }
    return .yes
  }

  private static func configurationPath(_ invocation: Invocation) -> String {
    let name = invocation[file] ?? "config.yaml"
    guard let directory = invocation[path], !name.hasPrefix("/") else { return name }
    return directory.hasSuffix("/") ? directory + name : "\(directory)/\(name)"
  }

  /// What was read and is no good is "no"; what the machine did not give is "could not".
  private static func failure(_ error: RegistryServiceError) -> CommandFailure {
    switch error {
    case .signer(.signingKey(_, .unreadable)): .couldNotFindOut("\(error)")
    case .signer: .no("\(error)")
    case .anchors, .store, .listening, .alreadyStarted: .couldNotFindOut("\(error)")
    }
  }
}
