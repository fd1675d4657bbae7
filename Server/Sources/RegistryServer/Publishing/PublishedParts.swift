import HTTPServing
import SslPinningPlatform

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

  /// - Parameter before: what it is published in place of.
  init(_ document: PublishedDocument, before: PublishedParts?) {
    self.document = document
    whole = CachedAnswer(
      document.bytes, entityTag: document.entityTag, lifetime: Self.lifetime)
    if let before, before.payload.digest == document.parts.digest {
      (payload, payloadBefore) = (before.payload, before.payloadBefore)
    } else {
      (payload, payloadBefore) = (Payload(document.parts), before?.payload)
    }
  }

  private static let lifetime = "public, max-age=60"

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
