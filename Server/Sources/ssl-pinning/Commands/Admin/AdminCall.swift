import CanonicalJSON
import Foundation
import RegistryServer
import SslPinningPlatform
import SslPinningRules

/// A call of the registry server's administration, as the `admin` commands make it.
///
/// - Without `--token-file` it is made with a token of a minute, from the server's own configuration:
///   whoever can read that is an administrator (`token`). For a call that reads, the token is for reading alone: while the server is
///   down, anybody on this machine can listen in its place, and would be sent it.
struct AdminCall {
  private static let server = Flag.text(
    "--server", "URL", "the registry server; by default where the configuration has it listen")
  private static let tokenFile = Flag.text(
    "--token-file", "FILE", "what ssl-pinning token printed; - is standard input")
  private static let name = Flag.text(
    "--name", "NAME", "who you are, as the history will say, without --token-file; admin by default"
  )
  private static let configFile = Flag.text(
    "--config-file", "FILE", "the server's configuration; config.yaml by default")
  private static let configPath = Flag.text(
    "--config-path", "DIR", "where a relative FILE is, and tls; else here, or /etc/ssl-pinning")
  private static let json = Flag("--json", "the answer as it came, one line of JSON")

  static let flags = [
    server.description, tokenFile.description, name.description, configFile.description,
    configPath.description, TrustArguments.ca.description, json.description,
  ]

  let base: String
  private let token: String
  private let caller: JSONCaller
  let printsJSON: Bool

  /// - Parameter scope: what is asked for, without `--token-file`.
  init(_ invocation: Invocation, scope: AdminScope = .decide) throws(CommandFailure) {
    printsJSON = invocation[Self.json]
    let (place, file) = (invocation[Self.server], invocation[Self.tokenFile])
    let configuration =
      place == nil || file == nil ? try Self.configuration(invocation) : nil
    if let place { base = place } else { base = try Self.address(configuration) }
    guard Self.isUsable(base) else { throw Self.unusable(base) }
    if let file {
      let bytes = try InputFile.read(file, limit: 65_536)
      token = String(decoding: bytes, as: UTF8.self).trimmingCharacters(in: .whitespacesAndNewlines)
    } else {
      token = try Self.token(configuration, for: invocation[Self.name] ?? "admin", scope)
    }
    // What no header can hold would be sent as no token.
    guard !token.isEmpty, token.utf8.allSatisfy({ (0x21...0x7e).contains($0) }) else {
      throw .usage("the token is none; hint: one line, as ssl-pinning token prints it")
    }
    let trust = try TrustArguments.read(invocation)
    do throws(TrustError) { caller = try JSONCaller(trust: trust) } catch {
      throw .couldNotFindOut("\(error)")
    }
  }

  /// Makes a call.
  ///
  /// What the server finds odd about a change is said on standard error.
  ///
  /// - Parameters:
  ///   - path: below `/api/v1/admin/`, its names not yet escaped.
  ///   - query: which part of a list is asked for.
  ///   - members: what the answer of a registry server has.
  /// - Returns: what came; already printed where `--json` asks for that.
  /// - Throws: what the server refused is "no", with its reason, its hint, and the hosts it is about.
  package func make(
    _ path: [String], query: KeyValuePairs<String, Int64> = [:], posting body: JSONValue? = nil,
    expecting members: [String]
  ) async throws(CommandFailure) -> JSONObject {
    let object = try await ask(path, query, posting: body, expecting: members)
    if printsJSON { try Terminal.write(.object(object)) }
    return object
  }

  /// Asks for what a server of before does not know; `nil` if it does not.
  func askIfKnown(
    _ path: [String], expecting members: [String]
  ) async throws(CommandFailure) -> JSONObject? {
    let (status, object) = try await send(path, [:], posting: nil)
    if status == 404 { return nil }
    guard (200...202).contains(status) else { throw Self.refusal(status, object) }
    try check(object, expecting: members)
    return object
  }

  /// What came of a call whose refusal is not the end.
  enum Reply {
    case done(JSONObject)
    /// The code is `nil` where the server says nothing more than its status.
    case refused(code: String?, CommandFailure)
  }

  /// Makes a call, and hands its refusal out as a value.
  func attempt(
    _ path: [String], posting body: JSONValue, expecting members: [String]
  ) async throws(CommandFailure) -> Reply {
    let (status, object) = try await send(path, [:], posting: body)
    guard (200...202).contains(status) else {
      return .refused(code: object["code"]?.stringValue, Self.refusal(status, object))
    }
    try check(object, expecting: members)
    if printsJSON { try Terminal.write(.object(object)) }
    return .done(object)
  }

  /// Asks for a list until it is whole. With `--json`, one line: a page that holds all.
  ///
  /// - Parameters:
  ///   - items: the member that holds a page's items.
  ///   - limit: how many are wanted.
  ///   - next: the query of the page behind this answer, of which so many items are known; `nil` where it is the
  ///     last one.
  func list(
    _ path: [String], _ items: String, atMost limit: Int = .max,
    next: (JSONObject, Int) -> KeyValuePairs<String, Int64>?
  ) async throws(CommandFailure) -> [JSONObject] {
    var all: [JSONValue] = []
    var query: KeyValuePairs<String, Int64>? = ["limit": Int64(min(limit, 1000))]
    var answer = JSONObject()
    while let asked = query, all.count < limit {
      answer = try await ask(path, asked, expecting: [items])
      let page = answer[items]?.arrayValue ?? []
      all += page
      query = page.isEmpty ? nil : next(answer, all.count)
    }
    all = Array(all.prefix(limit))
    if printsJSON {
      answer[items] = .array(all)
      try Terminal.write(.object(answer))
    }
    return all.compactMap(\.objectValue)
  }

  private func ask(
    _ path: [String], _ query: KeyValuePairs<String, Int64> = [:], posting body: JSONValue? = nil,
    expecting members: [String]
  ) async throws(CommandFailure) -> JSONObject {
    let (status, object) = try await send(path, query, posting: body)
    guard (200...202).contains(status) else { throw Self.refusal(status, object) }
    try check(object, expecting: members)
    return object
  }

  private func send(
    _ path: [String], _ query: KeyValuePairs<String, Int64>, posting body: JSONValue?
  ) async throws(CommandFailure) -> (status: Int, JSONObject) {
    let root = base.hasSuffix("/") ? String(base.dropLast()) : base
    let names = path.map { $0.addingPercentEncoding(withAllowedCharacters: Self.unreserved) ?? $0 }
    let parameters = query.map { "\($0.key)=\($0.value)" }.joined(separator: "&")
    let text =
      "\(root)/api/v1/admin/\(names.joined(separator: "/"))"
      + (parameters.isEmpty ? "" : "?\(parameters)")
    guard let url = try? RegistryURL(text) else { throw Self.unusable(base) }
    let answer: JSONCaller.Answer
    do throws(FetchError) {
      answer = try await caller.call(
        url, bearer: token, posting: body?.canonicalBytes, timeout: 30)
    } catch {
      throw .couldNotFindOut("\(base): \(error)".addingHint("does it run there?"))
    }
    guard let object = try? JSONValue(parsing: answer.body).objectValue else {
      throw .couldNotFindOut("\(base): status \(answer.status), and no answer of a registry server")
    }
    return (answer.status, object)
  }

  /// With a query or a fragment in it, a path would be part of that.
  private static func isUsable(_ base: String) -> Bool {
    !base.contains(where: { "?#".contains($0) }) && (try? RegistryURL(base)) != nil
  }

  private static func unusable(_ base: String) -> CommandFailure {
    .usage("\(base) cannot be used; hint: https://host, or http to this machine")
  }

  private func check(
    _ object: JSONObject, expecting members: [String]
  ) throws(CommandFailure) {
    // Any page that answers with an object would do else, and nothing was changed.
    guard members.allSatisfy({ object[$0] != nil }) else {
      throw .couldNotFindOut("\(base): status 200, and no answer of a registry server")
    }
    for warning in object["warnings"]?.arrayValue?.compactMap(\.stringValue) ?? [] {
      Terminal.say("warning: \(warning)")
    }
  }

  /// Prints a line, unless JSON was printed.
  func say(_ line: String) throws(CommandFailure) {
    if !printsJSON { try Terminal.write(line: line) }
  }

  private static let unreserved = CharacterSet(
    charactersIn: "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~")

  private static func configuration(
    _ invocation: Invocation
  ) throws(CommandFailure) -> ServerConfiguration {
    try ServerArguments.configuration(
      ConfigurationSources(
        file: invocation[configFile], directory: invocation[configPath], flags: [:])
    ).configuration
  }

  private static func address(
    _ configuration: ServerConfiguration?
  ) throws(CommandFailure) -> String {
    guard let server = configuration?.server else { return "" }
    guard server.certificate == nil else {
      throw .usage("the server speaks TLS, and its name is not known here; hint: pass --server")
    }
    // Every address is this machine's too.
    let address = configuration?.administration.listen ?? server.listen
    let host =
      switch address.host {
      case "0.0.0.0", "::": "127.0.0.1"
      case let host: host.contains(":") ? "[\(host)]" : host
      }
    return "http://\(host):\(address.port)"
  }

  private static func token(
    _ configuration: ServerConfiguration?, for name: String, _ scope: AdminScope
  ) throws(CommandFailure) -> String {
    guard let configuration else { return "" }
    let issuer: AdminTokenIssuer
    do throws(DocumentSignerError) { issuer = try AdminTokenIssuer(configuration) } catch {
      throw .couldNotFindOut("\(error)".addingHint("pass --token-file"))
    }
    do throws(AdminTokenError) {
      return try issuer.token(
        for: name, at: Int64(Date().timeIntervalSince1970), ttl: 60, scope: scope)
    } catch { throw .usage("--name \(name): \(error)") }
  }

  private static func refusal(_ status: Int, _ answer: JSONObject) -> CommandFailure {
    let reason = answer["error"]?.stringValue ?? "status \(status)"
    // The server speaks of the API's member, where this tool has a flag.
    let hint = answer["hint"]?.stringValue.map {
      $0.hasSuffix(", or force it") ? $0.dropLast("force it".count) + "pass --force" : $0
    }
    let text = reason + (hint.map { "; hint: \($0)" } ?? "")
    return status == 429 || status >= 500 ? .couldNotFindOut(text) : .no(text)
  }
}
