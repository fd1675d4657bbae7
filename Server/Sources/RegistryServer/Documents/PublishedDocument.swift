import CZlib
import CanonicalJSON
import HTTPServing
import RegistryCore
import SslPinningPlatform
import SslPinningRules

/// A signed document, finished: the bytes that every client gets until the next one.
public struct PublishedDocument: Sendable {
  /// Its name below `/api/v1/`.
  public let file: String
  /// The whole document.
  public let bytes: [UInt8]
  /// A strong entity tag with its quotes (RFC 9110 §8.8.3): equal tags mean equal bytes.
  public let entityTag: String
  /// When it was signed, in Unix seconds.
  public let signed: Int64
  /// The number of its statement; `nil` in format 1.
  public let number: RegistryStamp.Version?
  /// The newest epoch of its key sets; 0 without one.
  public let keySetEpoch: Int64
  /// When the newest of its key sets expires, in Unix seconds; `nil` where it never does.
  let keySetExpires: Int64?
  /// How many entries its payload has.
  public let keyCount: Int
  /// When its statement expires, in Unix seconds; without one, its pins.
  let expires: Int64
  /// What stands at URLs of its own.
  let parts: DocumentParts

  /// What is known to be signed; empty if it is no document.
  init(file: String, _ copy: SignedCopy) {
    self.init(
      file: file, bytes: copy.bytes, document: copy.members ?? [:], signed: copy.signed)
  }

  init(file: String, bytes: [UInt8], document: JSONObject, signed: Int64) {
    self.file = file
    self.bytes = bytes
    self.signed = signed
    let statement = document["statement"]?.objectValue
    number = RegistryStamp.Version(ofStatementIn: document)
    let keySets = document["keySets"]?.arrayValue ?? []
    keySetEpoch = Int64(keySets.count)
    keySetExpires =
      keySets.last?.objectValue?["keySet"]?.objectValue?["expires"]?.integerValue
    let keys = document["payload"]?.objectValue?["keys"]?.arrayValue ?? []
    keyCount = keys.count
    expires =
      statement?["expires"]?.integerValue ?? keys.first?.objectValue?["expire"]?.integerValue
      ?? signed + DocumentSigner.horizon
    entityTag = EntityTag.of(bytes)
    parts = DocumentParts(document)
  }

  /// It as a state goes on from it.
  var signedCopy: SignedCopy { SignedCopy(bytes: bytes, signed: signed, number: number) }

  /// Whether it is the same, of the same time.
  func isMade(of copy: SignedCopy) -> Bool { bytes == copy.bytes && signed == copy.signed }

  /// Whether it replaces `other`.
  func isNewer(than other: PublishedDocument) -> Bool { signedCopy.isNewer(than: other.signedCopy) }
}

/// The two parts of a document that stand at URLs of their own (`docs/registry-format.md`, section 8): its
/// statement, which changes every day, and its payload, which changes with its content.
struct DocumentParts: Sendable {
  /// The payload in canonical form.
  let payload: [UInt8]
  /// SHA-256 of ``payload`` in lower-case hex: where it stands.
  let digest: String
  /// The statement and its signatures; `nil` where there is none, or a retired one. Clients then need the
  /// whole document.
  private let stated: JSONObject?
  private let keySets: [JSONValue]

  init(_ document: JSONObject) {
    payload = (document["payload"] ?? .null).canonicalBytes
    digest = hex(Digest.sha256(payload))
    keySets = document["keySets"]?.arrayValue ?? []
    guard let statement = document["statement"], statement.objectValue?["retired"] != .bool(true)
    else {
      stated = nil
      return
    }
    stated = [
      "statement": statement, "statementSignatures": document["statementSignatures"] ?? .null,
    ]
  }

  /// Whether there is a statement to serve alone.
  var hasStatement: Bool { stated != nil }

  /// How many of the key sets a client has that believes those up to `epoch`; all if it believes more.
  func known(upTo epoch: Int64) -> Int { Int(clamping: min(max(0, epoch), Int64(keySets.count))) }

  /// The statement, its signatures, and the key sets behind the first ones.
  func statement(without known: Int = 0) -> [UInt8]? {
    guard var part = stated else { return nil }
    part["keySets"] = .array(Array(keySets.dropFirst(known)))
    return JSONValue.object(part).canonicalBytes
  }
}

/// The finished answers for a document and its parts. Those for parts are made when first asked for, once
/// for each publishing; there are no more of them than key sets and one.
final class PublishedParts: Sendable {
  let document: PublishedDocument
  let whole: CachedAnswer
  private let statements = Locked<[Int: CachedAnswer]>([:])
  private let payload: Payload
  /// The last other payload of this process: a statement that some cache still has names it.
  private let payloadBefore: Payload?

  /// A payload at its digest.
  private final class Payload: Sendable {
    let digest: String
    private let bytes: [UInt8]
    private let made = Locked<CachedAnswer?>(nil)

    init(_ parts: DocumentParts) { (digest, bytes) = (parts.digest, parts.payload) }

    var answer: CachedAnswer {
      made.withLock { made in
        if let made { return made }
        let answer = CachedAnswer(
          bytes, entityTag: "\"\(digest)\"", lifetime: "public, max-age=31536000, immutable")
        made = answer
        return answer
      }
    }
  }

  /// - Parameters:
  ///   - whole: from ``whole(of:)``, which takes its time.
  ///   - before: what it is published in place of.
  init(_ document: PublishedDocument, whole: CachedAnswer, before: PublishedParts?) {
    self.document = document
    self.whole = whole
    if let before, before.payload.digest == document.parts.digest {
      (payload, payloadBefore) = (before.payload, before.payloadBefore)
    } else {
      (payload, payloadBefore) = (Payload(document.parts), before?.payload)
    }
  }

  private static let lifetime = "public, max-age=60"

  /// The finished answer for all of a document.
  static func whole(of document: PublishedDocument) -> CachedAnswer {
    CachedAnswer(document.bytes, entityTag: document.entityTag, lifetime: lifetime)
  }

  /// The statement for a client that believes the key sets up to an epoch; `nil` where there is none to
  /// serve alone.
  func statement(since epoch: Int64) -> CachedAnswer? {
    let known = document.parts.known(upTo: epoch)
    return statements.withLock { statements in
      if let answer = statements[known] { return answer }
      guard let bytes = document.parts.statement(without: known) else { return nil }
      let answer = CachedAnswer(bytes, entityTag: EntityTag.of(bytes), lifetime: Self.lifetime)
      statements[known] = answer
      return answer
    }
  }

  /// The payload of a digest; `nil` where it is neither the one published nor the one before.
  func payload(_ digest: Substring) -> CachedAnswer? {
    [payload, payloadBefore].lazy.compactMap { $0 }
      .first { $0.digest.utf8.elementsEqual(digest.utf8) }?.answer
  }
}

/// An answer that caches may keep, finished: with the body, and without for who has it; plain, and compressed for who
/// takes that (RFC 9110 §8.4). Each has a tag of its own, since equal tags mean equal bytes.
struct CachedAnswer: Sendable {
  /// One of the two forms.
  private struct Form {
    let entityTag: String
    let full: HTTPResponse
    let unchanged: HTTPResponse

    init(_ body: [UInt8], entityTag: String, lifetime: String, isCompressed: Bool) {
      self.entityTag = entityTag
      let cached: [(name: String, value: String)] = [
        ("ETag", entityTag), ("Cache-Control", lifetime), ("Vary", "Accept-Encoding"),
      ]
      var typed: [(name: String, value: String)] = [
        ("Content-Type", "application/json"), ("X-Content-Type-Options", "nosniff"),
      ]
      if isCompressed { typed.append(("Content-Encoding", "gzip")) }
      let bytes = SharedBody(body)
      full = HTTPResponse(status: 200, headers: cached + typed, sharing: bytes)
      // With the body, which is not sent: the length told must be that of the document, or none
      // (RFC 9110 §8.6).
      unchanged = HTTPResponse(status: 304, headers: cached, sharing: bytes)
    }

    func isNamed(by ifNoneMatch: String) -> Bool {
      EntityTag.matches(ifNoneMatch: ifNoneMatch, entityTag)
    }
  }

  private let plain: Form
  /// `nil` if it would save nothing.
  private let compressed: Form?

  /// - Parameters:
  ///   - entityTag: a strong tag of the body.
  ///   - lifetime: the value of `Cache-Control`.
  init(_ body: [UInt8], entityTag: String, lifetime: String) {
    plain = Form(body, entityTag: entityTag, lifetime: lifetime, isCompressed: false)
    let bytes = body.count < 256 ? nil : Gzip.compressed(body)
    compressed = bytes.flatMap { bytes in
      bytes.count >= body.count
        ? nil
        : Form(
          bytes, entityTag: String(entityTag.dropLast()) + "-gzip\"", lifetime: lifetime,
          isCompressed: true)
    }
  }

  /// - Parameters:
  ///   - ifNoneMatch: the value of that header; `nil` without.
  ///   - acceptEncoding: likewise.
  func response(ifNoneMatch: String?, acceptEncoding: String? = nil) -> HTTPResponse {
    let form =
      compressed.flatMap { AcceptHeader.quality(of: "gzip", acceptEncoding ?? "") > 0 ? $0 : nil }
      ?? plain
    guard let ifNoneMatch else { return form.full }
    // Who has the document in the other form has it.
    let forms = [form, plain, compressed].compactMap(\.self)
    return forms.first { $0.isNamed(by: ifNoneMatch) }?.unchanged ?? form.full
  }
}

/// Compresses for the web (RFC 1952).
enum Gzip {
  /// The bytes as one gzip member; `nil` where zlib has no memory.
  static func compressed(_ bytes: [UInt8]) -> [UInt8]? {
    var stream = z_stream()
    // 15 bits of window, 16 for gzip's own header. `deflateInit2` is a macro.
    let began = deflateInit2_(
      &stream, Z_BEST_COMPRESSION, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY, ZLIB_VERSION,
      Int32(MemoryLayout<z_stream>.size))
    guard began == Z_OK else { return nil }
    defer { deflateEnd(&stream) }
    var output = [UInt8](repeating: 0, count: Int(deflateBound(&stream, uLong(bytes.count))))
    let status = bytes.withUnsafeBufferPointer { input in
      output.withUnsafeMutableBufferPointer { output in
        // zlib does not write to its input.
        stream.next_in = UnsafeMutablePointer(mutating: input.baseAddress)
        stream.avail_in = uInt(input.count)
        stream.next_out = output.baseAddress
        stream.avail_out = uInt(output.count)
        return deflate(&stream, Z_FINISH)
      }
    }
    guard status == Z_STREAM_END else { return nil }
    output.removeLast(Int(stream.avail_out))
    return output
  }
}
