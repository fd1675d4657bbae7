import CanonicalJSON
import RegistryCore
import SslPinningRules

extension AdministrationRoutes {
  /// Changes what clients ask of the hosts of an endpoint. What the body leaves out stays as it is when the change is made.
  func setTerms(_ call: APIRequest) async throws(APIError) -> APIResponse {
    _ = try call.query([])
    let body = try call.body(["ca", "match", "enforce", "why", "force"])
    guard body.has("ca") || body.has("match") || body.has("enforce") else {
      throw .badRequest("nothing to change", hint: "name ca, match or enforce")
    }
    let (file, id) = (try call.path("file"), try call.path("id"))
    let document = try await snapshot(call)
    guard let before = document.endpoints.first(where: { $0.id == id })?.terms else {
      throw APIError(.noSuchEndpoint(id, known: document.endpoints.map(\.id)))
    }
    let change = try body.changeOfTerms()
    let terms = change.completed(by: before)
    guard terms.match == .all || !terms.ca.pins.isEmpty else {
      throw .badRequest("match is any, and no CA is named", hint: "name the CAs that are enough")
    }
    guard services.signer.statements != nil || terms.isStandard else {
      throw APIError(
        409, "only statements tell this, and the server signs none",
        hint: "publish.statements: true")
    }
    return try await perform(
      .setTerms(file: file, id: id, change, force: try body.boolean("force") ?? false), call,
      why: try body.reason("why") ?? "", warnings: terms.warnings(after: before))
  }
}

extension HostTerms {
  /// What is odd about a change to these, though it was asked for.
  fileprivate func warnings(after before: HostTerms) -> [String] {
    var warnings: [String] = []
    switch (before.enforcement, enforcement) {
    case (.app, .on):
      warnings.append(
        "enforcement is irreversible: apps that have read of it keep it until another key set is in force"
      )
    case (.on, .app):
      warnings.append(
        "apps that have read of the enforcement keep it until another key set is in force"
          + " (ssl-pinning keys rotate); it ends for the others alone")
    default: break
    }
    if !vouching.isEmpty, !before.asksTheSame(as: self) {
      warnings.append(
        "whoever gets a certificate of one of these CAs for the hosts is accepted, with any key")
    }
    if ca.pins.count == 1 {
      warnings.append("one CA alone: the day it exchanges its key, it stands above nothing")
    }
    return warnings
  }

  /// As administrators see them.
  var shown: JSONValue {
    .object([
      "ca": .texts(ca.pins.sorted().map(\.base64)), "match": .string(match.rawValue),
      "enforce": .string(enforcement.rawValue),
    ])
  }
}

extension BodyReader {
  /// How many CAs terms may name: the Web has some 150 roots, and all of them are none.
  private static let mostCAs = 20

  /// What the body says of terms.
  fileprivate func changeOfTerms() throws(APIError) -> HostTerms.Change {
    var pins: Set<SPKIPin>?
    if let texts = try strings("ca") {
      guard texts.count <= Self.mostCAs else {
        throw .badRequest("ca has \(texts.count) elements", hint: "\(Self.mostCAs) at most")
      }
      var named: Set<SPKIPin> = []
      for text in texts {
        do throws(PinSyntaxError) { named.insert(try SPKIPin(base64: text)) } catch {
          throw .badRequest(
            "ca: \"\(text)\": \(error)",
            hint: "ssl-pinning pin FILE prints the pin of a CA's certificate")
        }
      }
      pins = named
    }
    return HostTerms.Change(
      ca: pins, match: try choice("match", HostTerms.Match.self),
      enforcement: try choice("enforce", HostTerms.Enforcement.self))
  }
}
