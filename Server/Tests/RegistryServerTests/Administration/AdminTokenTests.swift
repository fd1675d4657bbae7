import CanonicalJSON
import Foundation
import SslPinningPlatform
import SslPinningRules
import TLSTools
import TestSupport
import Testing

@testable import HTTPServing
@testable import RegistryServer

@Suite("Tokens of administrators")
struct AdminTokenTests {
  private static let key = AdminTokenKey(secret: Secret("a text of the operator's own"))
  private static let now: Int64 = 1_780_000_000

  private static func text(
    issued: Int64 = now, ttl: Int64 = 3600, name: String = "alice", key: AdminTokenKey = key
  ) throws -> String {
    try key.text(of: AdminToken(name: name, issued: issued, expires: issued + ttl))
  }

  private static func refusal(_ text: String, at now: Int64 = now) -> AdminTokenError? {
    do throws(AdminTokenError) {
      _ = try key.administrator(of: text, at: now)
      return nil
    } catch { return error }
  }

  private static func parts(_ text: String) -> [String] {
    text.split(separator: ".", omittingEmptySubsequences: false).map(String.init)
  }

  @Test("a token says who, from when and until when, in the one form of a JSON Web Token")
  func good() throws {
    let text = try Self.text()
    let administrator = try Self.key.administrator(of: text, at: Self.now)
    #expect(administrator.name == "alice")
    #expect(administrator.issued == Self.now && administrator.expires == Self.now + 3600)
    let parts = Self.parts(text)
    let claims = try #require(Base64URL.decode(parts[1].utf8))
    #expect(
      String(decoding: claims, as: UTF8.self)
        == #"{"aud":"ssl-pinning admin","exp":1780003600,"iat":1780000000,"nbf":1780000000,"sub":"alice"}"#
    )
    #expect(
      Base64URL.decode(parts[0].utf8).map { String(decoding: $0, as: UTF8.self) }
        == #"{"alg":"HS256","typ":"JWT"}"#)
    #expect(text.utf8.count < AdminToken.maximumBytes)
  }

  @Test("the longest token is still a token")
  func longest() throws {
    let name = String(repeating: "a", count: 64)
    let issued: Int64 = 9_007_198_000_000_000
    let labels = (0..<3).map { String(repeating: "\($0)", count: 62) }.joined(separator: ".")
    let hosts = try ["a", "b"].map {
      try HostName("\($0).\(labels).\(String(repeating: "c", count: 58))")
    }
    let text = try Self.key.text(
      of: AdminToken(
        name: name, issued: issued, expires: issued + AdminToken.longest,
        scope: .stage(hosts: hosts)))
    #expect((900...AdminToken.maximumBytes).contains(text.utf8.count))
    #expect(Self.refusal(text, at: 9_007_198_000_000_001) == nil)
  }

  @Test(
    "it counts from its issue, a minute of another clock's lead forgiven, up to its expiry",
    arguments: [
      (-61, .notYetValid), (-60, nil), (0, nil), (3599, nil), (3600, .expired), (100_000, .expired),
    ] as [(Int64, AdminTokenError?)])
  func times(offset: Int64, expected: AdminTokenError?) throws {
    #expect(Self.refusal(try Self.text(), at: Self.now + offset) == expected)
  }

  @Test("a token under another key is refused, and so is each single bit's difference in its tag")
  func otherKey() throws {
    let other = AdminTokenKey(secret: Secret("a text of the operator's own."))
    #expect(Self.refusal(try Self.text(key: other)) == .signature)
    let parts = Self.parts(try Self.text())
    let tag = try #require(Base64URL.decode(parts[2].utf8))
    for bit in 0..<(8 * tag.count) {
      var changed = tag
      changed[bit / 8] ^= 1 << UInt8(bit % 8)
      #expect(
        Self.refusal("\(parts[0]).\(parts[1]).\(Base64URL.encode(changed))") == .signature)
    }
  }

  @Test("a shorter, a longer and an empty tag are refused")
  func tagLength() throws {
    let parts = Self.parts(try Self.text())
    let tag = try #require(Base64URL.decode(parts[2].utf8))
    for wrong in [Array(tag.dropLast()), tag + [0], Array(tag.prefix(1)), []] {
      #expect(
        Self.refusal("\(parts[0]).\(parts[1]).\(Base64URL.encode(wrong))") == .signature)
    }
  }

  @Test("every token cut short is refused, and so is one with anything behind it")
  func truncated() throws {
    let text = try Self.text()
    for count in 0..<text.utf8.count { #expect(Self.refusal(String(text.prefix(count))) != nil) }
    for more in [".", "A", "=", " ", "\n", ".AAAA"] {
      #expect(Self.refusal(text + more) != nil, "\(more)")
    }
    #expect(Self.refusal(" " + text) == .malformed)
    #expect(
      Self.refusal(text + String(repeating: "A", count: AdminToken.maximumBytes)) == .malformed)
  }

  @Test("parts that changed places, and parts of two tokens, are refused")
  func swapped() throws {
    let (one, two) = (Self.parts(try Self.text()), Self.parts(try Self.text(name: "mallory")))
    for order in [[1, 0, 2], [0, 2, 1], [2, 1, 0], [1, 2, 0], [2, 0, 1]] {
      #expect(Self.refusal(order.map { one[$0] }.joined(separator: ".")) != nil, "\(order)")
    }
    #expect(Self.refusal("\(one[0]).\(two[1]).\(one[2])") == .signature)
    #expect(Self.refusal("\(one[0]).\(one[1]).\(two[2])") == .signature)
  }

  @Test(
    "no header but the one is a header, whoever signed it",
    arguments: [
      #"{"alg":"none","typ":"JWT"}"#, #"{"alg":"none"}"#, #"{"alg":"HS384","typ":"JWT"}"#,
      #"{"alg":"RS256","typ":"JWT"}"#, #"{"typ":"JWT","alg":"HS256"}"#, "{}",
      #"{"alg":"HS256","typ":"JWT","kid":"x"}"#,
    ])
  func headers(header: String) throws {
    let claims = Self.parts(try Self.text())[1]
    let signed = "\(Base64URL.encode([UInt8](header.utf8))).\(claims)"
    #expect(Self.refusal("\(signed).") == .algorithm)
    #expect(Self.refusal(try Self.signed(signed)) == .algorithm)
  }

  /// Signs any header and claims, as only somebody with the key could.
  private static func signed(_ text: String) throws -> String {
    let key = Digest.sha256(
      [UInt8]("ssl-pinning admin token v1\0server.key\0a text of the operator's own".utf8))
    let tag = try MessageAuthentication.tag(over: [UInt8](text.utf8), key: key)
    return "\(text).\(Base64URL.encode(tag))"
  }

  @Test(
    "claims that say less, more or something else are refused, even well signed",
    arguments: [
      (
        #"{"aud":"ssl-pinning admin","exp":1780003600,"iat":1780000000,"nbf":1780000000,"sub":"alice"}"#,
        nil
      ),
      (
        #"{"aud":"ssl-pinning","exp":1780003600,"iat":1780000000,"nbf":1780000000,"sub":"alice"}"#,
        .audience
      ),
      (#"{"exp":1780003600,"iat":1780000000,"nbf":1780000000,"sub":"alice"}"#, .malformed),
      (
        #"{"aud":"ssl-pinning admin","iat":1780000000,"nbf":1780000000,"sub":"alice"}"#, .malformed
      ),
      (
        #"{"aud":"ssl-pinning admin","exp":1780003600,"iat":1780000000,"nbf":1780000000}"#,
        .malformed
      ),
      (
        #"{"aud":"ssl-pinning admin","exp":"1780003600","iat":1780000000,"nbf":1780000000,"sub":"alice"}"#,
        .malformed
      ),
      (
        #"{"aud":"ssl-pinning admin","exp":1780003600,"iat":1780000000,"nbf":1780000001,"sub":"alice"}"#,
        .malformed
      ),
      (
        #"{"aud":"ssl-pinning admin","exp":1780003600,"iat":1780000000,"nbf":1780000000,"sub":"alice","x":1}"#,
        .malformed
      ),
      (
        #"{"aud":"ssl-pinning admin","exp":1780003600,"iat":1780000000,"nbf":1780000000,"sub":""}"#,
        .name
      ),
      (
        #"{"aud":"ssl-pinning admin","exp":1780000000,"iat":1780000000,"nbf":1780000000,"sub":"alice"}"#,
        .times
      ),
      (
        #"{"aud":"ssl-pinning admin","exp":9007199254740991,"iat":1780000000,"nbf":1780000000,"sub":"alice"}"#,
        .times
      ),
      ("[]", .malformed), ("", .malformed),
    ]
      + [
        "decide", "", "stage", "stage ", "stage  a.example", "stage A.example", "stage a b/c",
        "write",
      ]
      .map {
        (
          #"{"aud":"ssl-pinning admin","exp":1780003600,"iat":1780000000,"nbf":1780000000,"scope":"\#($0)","sub":"a"}"#,
          .malformed
        )
      } as [(String, AdminTokenError?)])
  func claims(claims: String, expected: AdminTokenError?) throws {
    let text = try Self.signed(
      "\(AdminToken.header).\(Base64URL.encode([UInt8](claims.utf8)))")
    #expect(Self.refusal(text) == expected)
  }

  @Test("a token says what it is for, and names itself without its text")
  func scopes() throws {
    let hosts = [HostName.literal("a.example"), HostName.literal("b.example")]
    for scope in [AdminScope.read, .stage(hosts: hosts), .decide] {
      let text = try Self.key.text(
        of: AdminToken(name: "alice", issued: Self.now, expires: Self.now + 1, scope: scope))
      let administrator = try Self.key.administrator(of: text, at: Self.now)
      #expect(administrator.scope == scope)
      #expect(administrator.tokenID == AdminToken.id(of: text) && administrator.tokenID.count == 12)
    }
    #expect(throws: AdminTokenError.scope) {
      try AdminToken(name: "alice", issued: 0, expires: 1, scope: .stage(hosts: []))
    }
    let many = (0..<60).map { HostName.literal("host-\($0).example") }
    #expect(throws: AdminTokenError.scope) {
      try AdminToken(name: "alice", issued: 0, expires: 1, scope: .stage(hosts: many))
    }
  }

  @Test("what readers send takes from what strangers share: they have nothing to send")
  func trust() throws {
    let router = AdministrationRouter(
      routes: [], refusal: { nil }, tokenKey: { Self.key }, times: { [Self.now] },
      log: LogCollector().log)
    let scopes: [(AdminScope, Bool)] = [
      (.read, false), (.stage(hosts: [.literal("a.example")]), true), (.decide, true),
    ]
    for (scope, isTrusted) in scopes {
      let text = try Self.key.text(
        of: AdminToken(name: "a", issued: Self.now, expires: Self.now + 1, scope: scope))
      let headers = HTTPHeaders([("Authorization", "Bearer \(text)")])
      #expect(router.trusted(headers) == (isTrusted ? AdminToken.id(of: text) : nil), "\(scope)")
    }
  }

  @Test(
    "of a token that decides nothing two calls are worked on at a time, and one that fails makes room"
  )
  func underWay() async throws {
    let (gate, begun) = (Gate(), Locked(0))
    let route = AdministrationRoute(.get, "/slow", for: .anything) { _ throws(APIError) in
      begun.withLock { $0 += 1 }
      await gate.wait()
      throw APIError(409, "no")
    }
    let router = AdministrationRouter(
      routes: [route], refusal: { nil }, tokenKey: { Self.key }, times: { [Self.now] },
      log: LogCollector().log)
    func call(_ scope: AdminScope) throws -> Task<UInt32, Never> {
      let text = try Self.key.text(
        of: AdminToken(name: "a", issued: Self.now, expires: Self.now + 1, scope: scope))
      var request = HTTPRequest(
        method: "GET", path: AdministrationRouter.prefix + "slow", peer: "192.0.2.1")
      request.headers = HTTPHeaders([("Authorization", "Bearer \(text)")])
      guard case .later(_, let answer) = router.answer(request) else {
        Issue.record("it is answered at once")
        return Task { 0 }
      }
      return Task { await answer().status }
    }
    let readers = try (0..<3).map { _ in try call(.read) }
    #expect(await eventually { gate.count == 2 })
    let decider = try call(.decide)
    #expect(await eventually { gate.count == 3 })
    #expect(begun.withLock { $0 } == 3)
    gate.open()
    for task in readers + [decider] { #expect(await task.value == 409) }
    #expect(begun.withLock { $0 } == 4)
  }

  @Test("what waits for its turn with a token that has ended meanwhile is not done")
  func endedWhileWaiting() async throws {
    let (gate, begun, revoked) = (Gate(), Locked(0), Locked<Set<String>>([]))
    let route = AdministrationRoute(.post, "/slow", for: .deciding) { _ throws(APIError) in
      begun.withLock { $0 += 1 }
      await gate.wait()
      throw APIError(409, "no")
    }
    let limits = CallLimits()
    let router = AdministrationRouter(
      routes: [route], refusal: { nil }, limits: limits, tokenKey: { Self.key },
      tokens: SeenTokens { revoked.withLock { $0 } }, times: { [Self.now] },
      log: LogCollector().log)
    let text = try Self.key.text(
      of: AdminToken(name: "a", issued: Self.now, expires: Self.now + 1, scope: .decide))
    var request = HTTPRequest(
      method: "POST", path: AdministrationRouter.prefix + "slow", peer: "192.0.2.1")
    request.headers = HTTPHeaders([("Authorization", "Bearer \(text)")])
    // As many as may wait: one more is refused, so all of them are in line by then.
    let calls = (0...CallLimits.mostAtOnce + CallLimits.mostWaiting).map { _ in
      Task { [request] in
        guard case .later(_, let answer) = router.answer(request) else { return UInt32(0) }
        let status = await answer().status
        if status == 429 { revoked.withLock { $0 = [AdminToken.id(of: text)] } }
        return status
      }
    }
    #expect(
      await eventually { gate.count == CallLimits.mostAtOnce && !revoked.withLock(\.isEmpty) })
    gate.open()
    var statuses: [UInt32: Int] = [:]
    for call in calls { statuses[await call.value, default: 0] += 1 }
    #expect(
      statuses == [409: CallLimits.mostAtOnce, 401: CallLimits.mostWaiting, 429: 1], "\(statuses)")
    #expect(begun.withLock { $0 } == CallLimits.mostAtOnce)
  }

  @Test(
    "a name has 1 to 64 letters, digits and ._@-",
    arguments: [
      ("alice", true), ("A.b_c@d-9", true), (String(repeating: "x", count: 64), true), ("", false),
      (String(repeating: "x", count: 65), false), ("a b", false), ("a/b", false), ("é", false),
      ("a\n", false), ("monitor:", false),
    ])
  func names(name: String, isGood: Bool) {
    let token = try? AdminToken(name: name, issued: 0, expires: 1)
    #expect((token != nil) == isGood)
  }

  @Test("base64url has one spelling: no padding, no plain alphabet, no loose bits")
  func spelling() {
    #expect(Base64URL.encode([0xfb, 0xff]) == "-_8")
    #expect(Base64URL.decode("-_8".utf8) == [0xfb, 0xff])
    for other in ["-_8=", "+/8", "-_9", "-_", "-_8A=", "-", "-_8 "] {
      #expect(Base64URL.decode(other.utf8) != [0xfb, 0xff], "\(other)")
    }
  }

  @Test("without server.key the signing key makes the same key each time, and another key another")
  func signingKey() throws {
    let signing = try testSigningKey.get()
    let token = AdminToken.self
    let text = try AdminTokenKey(signingKey: signing)
      .text(of: token.init(name: "alice", issued: Self.now, expires: Self.now + 60))
    let again = try AdminTokenKey(signingKey: signing)
    #expect(try again.administrator(of: text, at: Self.now).name == "alice")
    let other = try AdminTokenKey(signingKey: try SigningKey.generate(bits: 2048))
    #expect(throws: AdminTokenError.signature) {
      try other.administrator(of: text, at: Self.now)
    }
  }

  @Test("an issuer goes by server.key where it is set, and by prv.pem else")
  func issuer() throws {
    let directory = try makeKeyDirectory()
    let yaml = "keys: [{fqdn: a.example}]\ntls: {dir: \"\(directory.path())\"}\n"
    let plain = try AdminTokenIssuer(try configuration(yaml))
      .token(for: "alice", at: Self.now, ttl: 60)
    let keyed = try AdminTokenIssuer(try configuration(yaml + "server: {key: s3cret}"))
      .token(for: "alice", at: Self.now, ttl: 60)
    let fromFile = try AdminTokenKey(signingKey: try testSigningKey.get())
    let fromText = AdminTokenKey(secret: Secret("s3cret"))
    #expect(try fromFile.administrator(of: plain, at: Self.now).name == "alice")
    #expect(try fromText.administrator(of: keyed, at: Self.now).name == "alice")
    #expect(throws: AdminTokenError.signature) {
      try fromFile.administrator(of: keyed, at: Self.now)
    }
  }
}
