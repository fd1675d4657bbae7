import CanonicalJSON
import FaultLab
import Foundation
import SslPinningPlatform
import SslPinningRules
import TLSTools
import TestSupport
import Testing

@Suite("get")
struct GetTests {
  @Test("prints the body of a pinned host's answer and nothing else")
  func served() async throws {
    let stage = try GetStage()
    for host in ["localhost", "127.0.0.1"] {
      let outcome = try await stage.get(stage.url(host: host))
      #expect(outcome.exitCode == 0, "\(outcome.stderr)")
      #expect(outcome.stdout == "hello\n")
      #expect(outcome.stderr.isEmpty)
    }
  }

  @Test("prints bytes as they are, however many")
  func largeBody() async throws {
    let body = (0..<3_000_000).map { UInt8(truncatingIfNeeded: $0 % 251) }
    let stage = try GetStage { _ in HTTPResponse(body: body) }
    let script =
      "'\(try Tool.path())' get '\(stage.url())' --registry '\(stage.registry)'"
      + " --key '\(stage.directory.path("pub.pem"))' --ca '\(stage.directory.path("ca.pem"))'"
      + " > '\(stage.directory.path("body"))'"
    #expect(try await ChildProcess.run("bash", ["-c", script]).exitCode == 0)
    #expect(try [UInt8](Data(contentsOf: stage.directory.file("body"))) == body)
  }

  @Test("ends quietly where the reader of the body has gone")
  func brokenPipe() async throws {
    let stage = try GetStage { _ in
      HTTPResponse(body: [UInt8](repeating: 0x61, count: 4096), delivery: .endless())
    }
    let script =
      "'\(try Tool.path())' get '\(stage.url())' --registry '\(stage.registry)'"
      + " --key '\(stage.directory.path("pub.pem"))' --ca '\(stage.directory.path("ca.pem"))'"
      + " | head -c 5; exit ${PIPESTATUS[0]}"
    let outcome = try await ChildProcess.run("bash", ["-c", script], seconds: 20)
    #expect(outcome.stdout == "aaaaa")
    #expect(outcome.exitCode == 141 && outcome.stderr.isEmpty, "\(outcome.stderr)")
  }

  @Test("tells no password that stands in a URL")
  func passwords() async throws {
    let stage = try GetStage()
    let closed = try ClosedPort()
    let url = "https://user:secret@localhost:\(closed.port)/"
    let outcome = try await stage.get(url)
    #expect(outcome.exitCode == 3 && !outcome.stderr.contains("secret"), "\(outcome.stderr)")
  }

  @Test("shows status and headers with --include, everything with --json")
  func forms() async throws {
    let stage = try GetStage { _ in
      HTTPResponse(status: 201, headers: [HTTPField("X-Kind", "demo")], body: Array("made".utf8))
    }
    let include = try await stage.get(stage.url(), ["--include"])
    #expect(include.stdout.hasPrefix("HTTP 201\n"))
    #expect(include.stdout.contains("\nX-Kind: demo\n"))
    #expect(include.stdout.hasSuffix("\n\nmade"))
    let json = try await stage.get(stage.url(), ["--json"])
    let answer = try #require(try json.json.objectValue)
    #expect(answer["status"] == .number(201) && answer["body"] == .string("made"))
    #expect(answer["bodyBase64"] == .string("bWFkZQ=="))
    #expect(answer["headers"]?.objectValue?["X-Kind"] == .string("demo"))
  }

  @Test("prints the body of a refusal by the server, and says no only with --fail")
  func serverErrors() async throws {
    let stage = try GetStage { _ in .text("not here\n", status: 404) }
    let plain = try await stage.get(stage.url())
    #expect(plain.exitCode == 0 && plain.stdout == "not here\n")
    let fail = try await stage.get(stage.url(), ["--fail"])
    #expect(fail.exitCode == 1 && fail.stdout == "not here\n")
  }

  /// A connection that must be refused.
  enum Attack: String, CaseIterable {
    case otherKey, unlisted, expiredPins, untrustedChain, wrongName, clearText
    case redirectToUnlisted, redirectToClearText

    var rule: String {
      switch self {
      case .otherKey: "leaf-pin"
      case .unlisted, .redirectToUnlisted: "unlisted-host"
      case .expiredPins: "expired-pins"
      case .untrustedChain: "chain"
      case .wrongName: "host-name"
      case .clearText, .redirectToClearText: "clear-text"
      }
    }
  }

  @Test("refuses with the verdict in full, before a byte is sent", arguments: Attack.allCases)
  func refused(attack: Attack) async throws {
    let stage = try GetStage(listed: ["localhost", "127.0.0.1", "wrong.localhost"])
    let clear = try LocalHTTPServer { _ in .text("clear") }
    let next =
      attack == .redirectToClearText
      ? "http://localhost:\(clear.port)/" : stage.url(host: "unlisted.localhost")
    let redirecting = try LocalTLSServer(identity: stage.identity) { _ in .redirect(to: next) }
    defer {
      clear.stop()
      redirecting.stop()
    }
    var (url, trust): (String, [String]?) = (stage.url(), nil)
    var host = "localhost"
    switch attack {
    case .otherKey:
      try stage.server.replaceIdentity(stage.authority.issue(names: ["localhost"]))
    case .unlisted:
      host = "unlisted.localhost"
      url = stage.url(host: host)
    case .expiredPins:
      try stage.publish([Keys.entry("localhost", stage.pin, expires: 1_700_000_000)])
    case .untrustedChain: trust = []
    case .wrongName:
      host = "wrong.localhost"
      url = stage.url(host: host)
    case .clearText: url = "http://localhost:\(clear.port)/"
    case .redirectToUnlisted:
      host = "unlisted.localhost"
      url = "https://localhost:\(redirecting.port)/"
    case .redirectToClearText: url = "https://localhost:\(redirecting.port)/"
    }
    let outcome = try await stage.get(url, trust: trust)
    #expect(outcome.exitCode == 1)
    #expect(outcome.stdout.isEmpty)
    #expect(outcome.rule == attack.rule, "\(outcome.stderr)")
    #expect(outcome.stderr.contains(host))
    #expect(clear.counts.applicationBytesReceived == 0)
    #expect(stage.server.counts.applicationBytesReceived == 0)
    let json = try await stage.get(url, trust: trust, ["--json"])
    #expect(json.exitCode == 1)
    #expect(try json.json.objectValue?["rule"] == .string(attack.rule))
    #expect(try json.json.objectValue?["decision"] == .string("refuse"))
  }

  @Test("judges the pins' expiry at the moment asked for")
  func expiry() async throws {
    let stage = try GetStage()
    // The chain is judged at that moment as well, so it has to be one at which the chain is valid.
    let end = Int64(Date().timeIntervalSince1970)
    try stage.publish([Keys.entry("localhost", stage.pin, expires: Int32(clamping: end))])
    // They count for 26 hours more.
    let last = end + PinSet.expiryTolerance
    let served = try await stage.get(stage.url(), ["--at", "\(last)"])
    #expect(served.stdout == "hello\n", "\(served.stderr)")
    #expect(try await stage.get(stage.url(), ["--at", "\(last + 1)"]).rule == "expired-pins")
    for moment in ["1700000000", "4000000000"] {
      let refused = try await stage.get(stage.url(), ["--at", moment])
      // No anchor is lacking, so none is asked for.
      #expect(refused.rule == "chain" && !refused.stderr.contains("--ca"), "\(refused.stderr)")
    }
  }

  @Test("names presented and expected pins and the registry")
  func verdict() async throws {
    let stage = try GetStage()
    let rogue = try stage.authority.issue(names: ["localhost"])
    try stage.server.replaceIdentity(rogue)
    let outcome = try await stage.get(stage.url(), ["--json"])
    let verdict = try #require(try outcome.json.objectValue)
    let pins = try ([rogue.leaf] + rogue.intermediates).map {
      JSONValue.string(try SPKIPin(certificateDER: $0.der).base64)
    }
    #expect(verdict["presented"] == .array(pins))
    #expect(
      verdict["expectedLeaf"]?.arrayValue?.compactMap { $0.objectValue?["pin"]?.stringValue }
        == [try stage.pin])
    let payload = try JSONValue(parsing: [UInt8](Data(contentsOf: URL(filePath: stage.registry))))
      .objectValue?["payload"]
    let digest = Digest.sha256(payload?.canonicalBytes ?? [])
      .map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
    #expect(verdict["registry"]?.objectValue?["payloadDigest"] == .string(digest))
    for text in pins.compactMap(\.stringValue) + [try stage.pin, digest, "localhost", " s ago"] {
      #expect(outcome.stderr.contains(text))
    }
  }

  @Test("lets the pin alone decide with --pinned-keys-only")
  func pinnedKeysOnly() async throws {
    let stage = try GetStage()
    let own = try ServerIdentity.selfSigned(names: ["something.else"])
    try stage.server.replaceIdentity(own)
    try stage.publish([Keys.entry("localhost", SPKIPin(certificateDER: own.leaf.der).base64)])
    #expect(try await stage.get(stage.url(), trust: ["--pinned-keys-only"]).stdout == "hello\n")
    // The same server, judged by chain and name.
    #expect(try await stage.get(stage.url()).rule == "chain")
    // The mode is no way round the pin.
    try stage.server.replaceIdentity(ServerIdentity.selfSigned(names: ["localhost"]))
    let refused = try await stage.get(stage.url(), trust: ["--pinned-keys-only"])
    #expect(refused.exitCode == 1 && refused.rule == "leaf-pin")
  }

  @Test("makes no request where the registry is tampered with")
  func tamperedRegistry() async throws {
    let stage = try GetStage()
    let text = try String(contentsOfFile: stage.registry, encoding: .utf8)
    try stage.directory.write(
      text.replacingOccurrences(of: "127.0.0.1", with: "127.0.0.2"), to: "registry.json")
    let outcome = try await stage.get(stage.url())
    #expect(outcome.exitCode == 1)
    #expect(outcome.stderr.contains("no request was made"))
    #expect(stage.server.counts.connections == 0)
  }

  @Test("takes the registry from https under the same CA, and from no other")
  func httpsRegistry() async throws {
    let stage = try GetStage()
    let document = [UInt8](try Data(contentsOf: URL(filePath: stage.registry)))
    let registry = try LocalTLSServer(identity: stage.identity) { _ in HTTPResponse(body: document)
    }
    defer { registry.stop() }
    let url = "https://localhost:\(registry.port)/api/v1/app.json"
    #expect(try await stage.get(stage.url(), registry: url).stdout == "hello\n")
    let untrusted = try await stage.get(stage.url(), registry: url, trust: [])
    #expect(untrusted.exitCode == 3 && untrusted.speaksProperly)
    #expect(stage.server.requests.count == 1)
  }

  @Test("is served through an honest proxy, and refuses one that reads along")
  func proxies() async throws {
    let stage = try GetStage()
    let honest = try InterceptingProxy.tunnelling()
    defer { honest.stop() }
    let served = try await stage.get(
      stage.url(), environment: ["https_proxy": "http://127.0.0.1:\(honest.port)"])
    #expect(served.stdout == "hello\n", "\(served.stderr)")
    #expect(honest.tunnels.map(\.port) == [stage.server.port])
    let reading = try InterceptingProxy.intercepting(authority: stage.authority)
    defer { reading.stop() }
    let refused = try await stage.get(
      stage.url(), environment: ["https_proxy": "http://127.0.0.1:\(reading.port)"])
    #expect(refused.exitCode == 1 && refused.rule == "leaf-pin")
    #expect(!reading.tunnels.isEmpty && reading.plaintextBytes == 0)
  }

  @Test(
    "refuses what cannot be asked for",
    arguments: [
      ["localhost"], ["https://"], ["/path"], ["data:,x"], ["file:///etc/passwd"],
      ["https://localhost/", "--registry", "http://registry.example/r.json"],
      ["https://localhost/", "--registry", "ftp://registry.example/r.json"],
      ["https://localhost/", "--registry", "https://user:secret@localhost/r.json"],
      ["https://localhost/", "--pinned-keys-only", "--ca", "ca.pem"],
    ])
  func wrongUsage(arguments: [String]) async throws {
    let stage = try GetStage()
    let key = ["--key", stage.directory.path("pub.pem")]
    let registry = arguments.contains("--registry") ? [] : ["--registry", stage.registry]
    let outcome = try await Tool.run(["get"] + arguments + key + registry)
    #expect(outcome.exitCode == 2)
    #expect(outcome.stdout.isEmpty && outcome.speaksProperly)
  }
}
