import CanonicalJSON
import FaultLab
import SslPinningPlatform
import SslPinningRules
import TLSTools

/// A registry on a loopback port; the row decides its documents.
final class DrillRegistry: Sendable {
  /// The contents of a document.
  struct Book: Sendable {
    var name = "app.json"
    var keys: [RegistryKey] = []
    var hosts: [HostSettings] = []
    var denied: [SPKIPin] = []
    var removed: [HostPattern] = []
    var mirrors: [RegistryMirror] = []
    var epoch: Int64 = 0
    var version: Int64 = 0
    /// Unix time in seconds.
    var issued: Int64
    var lifetime = 90 * Timeline.day
    var keySets: [JSONValue] = []
    /// Signs the next key set.
    var root: TrustSigningKey
    /// Sign the statement.
    var online: [TrustSigningKey]
    /// Signs the payload.
    var format1Key: SigningKey?
    /// Whether there is a statement beside the payload.
    var hasStatement = true

    /// Lists these keys for a host instead of its old ones.
    mutating func list(
      _ pattern: String, _ identities: ServerIdentity..., expires: Int64? = nil
    ) throws {
      let pattern = try HostPattern(pattern)
      keys.removeAll { $0.pattern == pattern }
      for identity in identities {
        keys.append(
          RegistryKey(pattern: pattern, pin: .success(try identity.pin), expires: expires))
      }
    }

    /// Requires one of these CAs for a host, in addition to its leaf pins.
    mutating func demand(_ pattern: String, _ authorities: CertificateAuthority...) throws {
      let pattern = try HostPattern(pattern)
      let pins = try authorities.map { try SPKIPin(certificateDER: $0.certificate.der) }
      hosts.removeAll { $0.pattern == pattern }
      hosts.append(HostSettings(pattern, ca: pins))
    }

    /// The unsigned document.
    var document: RegistryDocument {
      RegistryDocument(
        registry: name, keys: keys,
        terms: hasStatement
          ? .init(
            number: .init(epoch: epoch, version: version), issued: issued,
            expires: issued + lifetime, hosts: hosts, denied: denied, removed: removed,
            mirrors: mirrors) : nil,
        keySets: keySets)
    }

    /// The signed document as a value that can be altered.
    func signed() throws -> JSONObject {
      try document.signed(format1Key: format1Key, onlineKeys: hasStatement ? online : [])
    }

    /// The signed document's bytes.
    func bytes() throws -> [UInt8] { JSONValue.object(try signed()).canonicalBytes }
  }

  /// The root key that the app ships.
  let root: TrustSigningKey
  let server: LocalHTTPServer
  private let timeline: Timeline
  private let answer: Locked<HTTPResponse>
  private let state: Locked<Book>

  init(_ timeline: Timeline) throws {
    let answer = Locked(HTTPResponse(status: 404))
    self.answer = answer
    self.timeline = timeline
    root = try .generate(.ed25519)
    state = Locked(Book(issued: timeline.world, root: root, online: [root]))
    server = try LocalHTTPServer { _ in answer.withLock { $0 } }
  }

  var url: String { "http://127.0.0.1:\(server.port)/api/v1/app.json" }

  /// A server with the same answers over TLS, like a real registry.
  func front(_ identity: ServerIdentity) throws -> LocalTLSServer {
    let answer = answer
    return try LocalTLSServer(identity: identity) { _ in answer.withLock { $0 } }
  }

  /// A mirror, which also serves statement parts like a real server.
  func mirror(_ identity: ServerIdentity) throws -> LocalTLSServer {
    let answer = answer
    return try LocalTLSServer(identity: identity) { [weak self] request in
      let whole = answer.withLock { $0 }
      guard let self, let document = try? JSONValue(parsing: whole.body).objectValue else {
        return whole
      }
      if request.target.contains("/statement?") {
        return (try? self.statementPart(of: whole.body)).map { HTTPResponse(body: $0) } ?? whole
      }
      guard let digest = request.target.split(separator: "/payload/").dropFirst().first else {
        return whole
      }
      let payload = document["payload"]?.canonicalBytes ?? []
      return hex(Digest.sha256(payload)) == digest
        ? HTTPResponse(body: payload) : HTTPResponse(status: 404)
    }
  }

  /// The part of a document that changes every day.
  func statementPart(of bytes: [UInt8]) throws -> [UInt8] {
    var document = try JSONValue(parsing: bytes).objectValue ?? [:]
    document["payload"] = nil
    return JSONValue.object(document).canonicalBytes
  }

  /// The contents of the next document.
  var book: Book { state.withLock { $0 } }

  /// Changes the contents and publishes them as the next version.
  ///
  /// - Returns: the document.
  @discardableResult
  func publish(_ change: (inout Book) throws -> Void = { _ in }) throws -> [UInt8] {
    let bytes = try state.withLock { book in
      book = try next(book, change)
      return try book.bytes()
    }
    serve(bytes)
    return bytes
  }

  /// The next document's contents, unpublished; forgeries start from them.
  func draft(_ change: (inout Book) throws -> Void = { _ in }) throws -> Book {
    try next(book, change)
  }

  private func next(_ book: Book, _ change: (inout Book) throws -> Void) throws -> Book {
    var book = book
    book.issued = timeline.world
    book.version += 1
    try change(&book)
    return book
  }

  /// Answers with these bytes from now on.
  func serve(_ bytes: [UInt8]) { respond(HTTPResponse(body: bytes)) }

  /// Answers with this response from now on.
  func respond(_ response: HTTPResponse) { answer.withLock { $0 = response } }

  /// Begins the next epoch, whose statements this key signs. It is published with the next document, version 1.
  ///
  /// - Parameter root: signs key sets from now on; by default the old one.
  func beginEpoch(online key: TrustSigningKey, root next: TrustSigningKey? = nil) throws {
    try state.withLock { book in try Self.beginEpoch(&book, online: key, root: next) }
  }

  /// Begins the next epoch of a document.
  static func beginEpoch(
    _ book: inout Book, online key: TrustSigningKey, root next: TrustSigningKey? = nil
  ) throws {
    let (old, root) = (book.root, next ?? book.root)
    book.epoch += 1
    book.version = 0
    let set = KeySet(
      registry: book.name, epoch: book.epoch,
      root: try KeyRole(keys: [root.roleKey], threshold: 1),
      online: try KeyRole(keys: [key.roleKey], threshold: 1))
    book.keySets.append(try set.entry(signedBy: next == nil ? [old] : [old, root]))
    book.root = root
    book.online = [key]
  }
}

extension ServerIdentity {
  /// The pin of the leaf's key.
  var pin: SPKIPin { get throws { try SPKIPin(subjectPublicKeyInfoDER: leafSPKI) } }
}
