import CanonicalJSON
import Foundation
import SslPinning
import SslPinningPlatform
import SslPinningRules

#if canImport(FoundationNetworking)
  import FoundationNetworking
#endif

/// `get`: one pinned request, through the SDK as an app uses it.
enum Get {
  private static let registry = Flag.text(
    "--registry", "URL|FILE",
    "the registry: https, http to this machine, or a document at hand;"
      + " --key or --root-key goes with it", isRequired: true)
  private static let include = Flag("--include", "print the status and the headers as well")
  private static let fail = Flag("--fail", "exit 1 where the server answers with 400 or above")
  private static let json = Flag("--json", "one line of JSON: the answer, or the verdict")
  private static let timeout = Flag.seconds(
    "--timeout", "for the registry and for the request, each in all; 30 by default")
  private static let at = Flag.unixTime(
    "--at", "judge certificates, pins and the registry at this moment")

  static let command = Command(
    "get", "make one pinned request and print the answer's body",
    argument: Argument(placeholder: "URL", help: "what to get; https", count: .one),
    flags: [
      registry.description
    ] + RegistryTrustArguments.flags + [
      TrustArguments.ca.description, TrustArguments.pinnedKeysOnly.description, include.description,
      fail.description,
      json.description, timeout.description, at.description,
    ],
    notes: [
      "A refused connection ends with exit code 1 and the verdict on standard error: host, rule,\n"
        + "presented and expected pins, registry and its age. Not a byte of the request has left then.",
      "Proxies are taken from https_proxy and no_proxy, as by curl.",
    ],
    run: run)

  private static func run(_ invocation: Invocation) async throws(CommandFailure) -> ExitStatus {
    let url = try url(of: invocation)
    let seconds = invocation[timeout] ?? 30
    let moment = invocation[at]
    let clocks = Clocks(wall: { moment ?? Clocks.system.wall() }, steady: Clocks.system.steady)
    let client = try await client(invocation, timeout: seconds, clocks: clocks)
    for problem in client.registryProblems { Terminal.say("warning: \(problem)") }

    let form: PinnedRequest.Form =
      invocation[json] ? .json : invocation[include] ? .headersAndBody : .body
    let request = PinnedRequest(client: client, form: form, timeout: seconds)
    switch try await request.get(url) {
    case .answered(let status):
      return invocation[fail] && status >= 400 ? .no : .yes
    case .refused(let verdict):
      let report = VerdictReport(verdict, at: clocks.wall())
      if invocation[json] { try Terminal.write(report.json) }
      throw .no(report.text)
    }
  }

  private static func url(of invocation: Invocation) throws(CommandFailure) -> URL {
    let text = invocation.arguments.first ?? ""
    guard let url = URL(string: text), let scheme = url.scheme?.lowercased(),
      url.host?.isEmpty == false
    else { throw .usage("\"\(text)\" is no URL; hint: https://host/path") }
    // Clear text goes on to the SDK, whose verdict on it is the answer.
    guard ["https", "http", "ws", "ftp"].contains(scheme) else {
      throw .usage("\(scheme) cannot be pinned; hint: use https")
    }
    return url
  }

  private static func client(
    _ invocation: Invocation, timeout: Double, clocks: Clocks
  ) async throws(CommandFailure) -> SslPinningClient {
    let place = try invocation.require(registry)
    let trust = try TrustArguments.read(invocation)
    let config = try RegistryTrustArguments(invocation, place: place)
      .config(endpoint: place, trust: trust, timeout: timeout)
    let document: [UInt8]? =
      place.contains("://")
      ? nil : try InputFile.read(place, limit: config.maximumRegistryBytes)
    do throws(SslPinningError) {
      guard let document else { return try await SslPinningClient(config: config, clocks: clocks) }
      return try await SslPinningClient(config: config, document: document, clocks: clocks)
    } catch {
      switch error {
      case .badURL, .clearTextURL, .badConfiguration, .badReporting: throw .usage("\(error)")
      case .unreachable(let reason, _):
        throw .couldNotFindOut(
          "the registry cannot be reached: \(TransportReason.text(reason, at: place))")
      case .cancelled, .clockBehind, .httpStatus, .tooLarge, .platformCannotPin:
        throw .couldNotFindOut("\(error)")
      case .registryRefused(let error):
        throw .no("no request was made: the registry is refused: \(error.toldToOperators)")
      case .malformed, .payloadMissing, .badBundledRegistry, .badRootKeys, .badSigningKey,
        .badSignature, .noUsableKey, .badAnchor:
        throw .no("no request was made: \(error)")
      }
    }
  }
}
