import CanonicalJSON
import Foundation
import RegistryCore
import RegistryServer
import SslPinningRules
import TLSTools

/// `vantage join`: a registry server and a vantage point learn each other's keys. Only public halves are shown, for
/// a person who is logged in at both.
enum VantageJoin {
  private static let name = Flag.text(
    "--name", "NAME", "the vantage point's name, in logs, alerts and the console")
  private static let pin = Flag.text("--pin", "PIN", "the vantage point's key, as it prints it")

  static let command = Command(
    "vantage join", "introduce this registry server to a vantage point, and the other way round",
    argument: Argument(
      placeholder: "https://HOST:PORT",
      help: "where the vantage point listens; none: the first half",
      count: .optional),
    flags: [name.description, pin.description] + ServerArguments.descriptions,
    notes: [
      "Without an argument it prints the command for the other machine: with the key by which this registry\n"
        + "server is known, made in tls.dir at the first call (vantage-client.key), and the hosts of its configuration.\n"
        + "The vantage point prints the second half: with its address, --name and --pin every endpoint is probed\n"
        + "through it, and the entry for tls.vantage_points goes to standard output.",
      "Run it as the user that up runs as, with the same flags. Nothing that it prints is a secret.",
    ],
    run: run)

  private static func run(_ invocation: Invocation) async throws(CommandFailure) -> ExitStatus {
    let effective = try ServerArguments.configuration(ServerArguments.sources(invocation))
    let configuration = effective.configuration
    let directory = configuration.tls.directory
    guard InputFile.exists(directory) else {
      throw .couldNotFindOut(
        "\(directory) is not there; hint: ssl-pinning keys generate --out \(directory)")
    }
    let identity = try VantageKey.identity(in: directory, called: "vantage-client")
    guard let text = invocation.arguments.first else {
      guard invocation[name] == nil, invocation[pin] == nil else {
        throw .usage("--name and --pin belong to a vantage point; hint: https://HOST:PORT")
      }
      try Terminal.write(line: commandLine(for: configuration, VantageKey.pin(of: identity)))
      Terminal.say(
        "these are the endpoints of the configuration; hint: one that was added while the server ran (admin add,"
          + " or the console) needs a --host, too")
      return .yes
    }
    let point = try point(text, directory, invocation)
    if let other = configuration.tls.vantagePoints.first(where: {
      $0.name != point.name && $0.isSameMachine(as: point)
    }) {
      throw .no(
        "\(point.name) would be \(other.name) under another name; hint: one machine, or one key, is one"
          + " voice in a quorum: a copied machine needs a --dir of its own")
    }
    var trial = configuration
    trial.tls.vantagePoints = [point]
    let findings: [ProbeTrial.Finding]
    do throws(RegistryServiceError) { findings = try await ProbeTrial(trial).findings } catch {
      throw Up.failure(error)
    }
    let unseen = findings.filter { !$0.provedFrom.contains(point.name) }
    let troubles = unseen.flatMap { finding in
      finding.troubles.filter { $0.hasPrefix(point.name) }.map { "\(finding.endpoint), \($0)" }
    }
    guard unseen.count < findings.count else {
      throw .no(
        "nothing was seen through \(point.name): \(troubles.first ?? "no endpoint is watched")")
    }
    try Terminal.write(line: entry(of: point))
    Terminal.warn(troubles)
    Terminal.say(
      "\(findings.count - unseen.count) of \(findings.count) endpoints were seen through it; hint: the lines"
        + " above go below tls.vantage_points, and then SIGHUP")
    return unseen.isEmpty ? .yes : .no
  }

  private static func point(
    _ text: String, _ directory: String, _ invocation: Invocation
  ) throws(CommandFailure) -> VantagePoint {
    guard text.hasPrefix("https://"),
      let place = VantageTarget(String(text.dropFirst("https://".count)), port: nil)
    else {
      throw .usage("\"\(text)\" is no vantage point; hint: https://HOST:PORT")
    }
    guard let name = invocation[name], let pinText = invocation[pin] else {
      throw .usage("--name and --pin are needed; hint: the vantage point prints its pin")
    }
    guard name != ProbeObservation.direct,
      name.unicodeScalars.allSatisfy({ $0.value > 0x20 && $0.value < 0x7f })
    else { throw .usage("--name \(name) cannot be one; hint: letters and digits") }
    let proof: SPKIPin
    do throws(PinSyntaxError) { proof = try SPKIPin(parsing: pinText) } catch {
      throw .usage("--pin \(pinText): \(error)")
    }
    return VantagePoint(
      name: name, host: "\(place.host)", port: place.port,
      security: .init(
        pins: [proof], certificate: "\(directory)/vantage-client.pem",
        privateKey: "\(directory)/vantage-client.key"))
  }

  /// What to run on the other machine.
  private static func commandLine(
    for configuration: ServerConfiguration, _ pin: SPKIPin
  ) -> String {
    let hosts = Set(
      configuration.documents.flatMap(\.endpoints).map { "\(VantageTarget(of: $0))" }
    ).sorted()
    return (["ssl-pinning vantage --client \(pin)"] + hosts.map { "  --host \($0)" })
      .joined(separator: " \\\n")
  }

  /// As it stands below `vantage_points:` in the file.
  private static func entry(of point: VantagePoint) -> String {
    let members = point.entry.objectValue?.map { key, value in
      "\(key): \(String(decoding: value.canonicalBytes, as: UTF8.self))"
    }
    return "    - " + (members ?? []).joined(separator: "\n      ")
  }
}
