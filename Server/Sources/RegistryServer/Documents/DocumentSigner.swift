import CanonicalJSON
import Foundation
import RegistryCore
import RegistryStores
import SslPinningPlatform
import SslPinningRules
import TLSTools

/// Writes and signs format-1 documents.
///
///     { "payload": { "keys": [ … ] }, "signature": "<base64>" }
///
/// - The signature is RSA PKCS#1 v1.5 with SHA-512 over the RFC 8785 form of the payload, and the
///   document is published in that form too, so that what is signed is what stands in it.
/// - Nothing but the five known members goes into an entry: clients in the field re-encode the
///   members they know before they check the signature.
public struct DocumentSigner: Sendable {
  /// How long after it was written a published pin expires, in seconds: 90 days. It is written anew with
  /// other content, or once half of that is spent.
  ///
  /// The expiry is when a client stops believing a pin that nobody has renewed. Documents are signed
  /// again daily, so a client that refreshes never comes near it; one that cannot, because this
  /// server is down or unreachable, keeps its pins for a month and a half at least. All published keys get the same
  /// expiry, an old key in its grace time too: half of a fleet may still use it, and a refreshing
  /// client loses it with the document that leaves it out.
  public static let horizon: Int64 = 90 * 86_400

  /// How long a signed document is published before it is signed again unchanged, in seconds: a day.
  public static let renewal = TimeProof.renewal

  let key: SigningKey
  /// The key of `prv.old.pem`, which `key` takes the place of. It signs nothing: what was sealed under it is
  /// read by it.
  let formerKey: SigningKey?
  let statements: StatementSigner?
  /// Where the key of the store's seal is kept, if a command holds ``key``.
  private var sealDirectory: String?

  /// A signer with this key.
  ///
  /// - Parameter statements: signs what format 1 cannot say; `nil` publishes format 1 alone.
  init(key: SigningKey, formerKey: SigningKey? = nil, statements: StatementSigner? = nil) {
    self.key = key
    self.formerKey = formerKey
    self.statements = statements
  }

  /// What records of the store are sealed under.
  ///
  /// - Throws: ``SigningKeyError`` if a key does not add up.
  var sealKeys: SealKeys {
    get throws(SigningKeyError) {
      try SealKeys(key, former: formerKey, keptIn: sealDirectory)
    }
  }

  /// Reads `prv.pem` in a directory, unless a command signs, and `prv.old.pem` if it is there, and checks that a `pub.pem` beside it is its public half:
  /// clients that were given another one would refuse every document.
  ///
  /// - Throws: ``DocumentSignerError``.
  public init(
    directory: String, publishing: PublishingConfiguration = PublishingConfiguration()
  ) throws(DocumentSignerError) {
    let files = URL(filePath: directory, directoryHint: .isDirectory)
    let privateFile = files.appending(path: "prv.pem")
    let isCommand = !publishing.signing.command.isEmpty
    let path = isCommand ? SigningConfiguration.place : privateFile.path(percentEncoded: false)
    let key: SigningKey
    do throws(SigningKeyError) {
      let held = try publishing.signing.key
      key = if let held { try SigningKey(held) } else { try SigningKey(file: privateFile) }
    } catch { throw .signingKey(path: path, error) }
    try Self.check(files.appending(path: "pub.pem"), against: key)
    let formerFile = files.appending(path: "prv.old.pem")
    var formerKey: SigningKey?
    if FileManager.default.fileExists(atPath: formerFile.path(percentEncoded: false)) {
      do throws(SigningKeyError) { formerKey = try SigningKey(file: formerFile) } catch {
        throw .signingKey(path: formerFile.path(percentEncoded: false), error)
      }
    }
    self.init(
      key: key, formerKey: formerKey?.publicKeyDER == key.publicKeyDER ? nil : formerKey,
      statements: publishing.statements
        ? try StatementSigner(
          directory: directory, publishing: publishing, key: isCommand ? key.trustKey : nil) : nil)
    sealDirectory = isCommand ? directory : nil
  }

  /// Where else a document is served; nowhere that clients would hear of without statements.
  func mirrors(of file: String) -> [RegistryMirror] {
    statements?.publishing.mirrors(of: file) ?? []
  }

  /// The key that clients need, in PEM.
  public var publicKeyPEM: String { key.publicKeyPEM }

  private static func check(
    _ file: URL, against key: SigningKey
  ) throws(DocumentSignerError) {
    let path = file.path(percentEncoded: false)
    guard FileManager.default.fileExists(atPath: path) else { return }
    let published: VerificationKey
    do throws(VerificationKeyError) {
      published = try VerificationKey(bytes: (try? SmallFile.read(path, limit: 1 << 20)) ?? [])
    } catch { throw .publicKey(path: path, error) }
    guard !key.isHeldByCommand else {
      guard published.spkiDER == key.publicKeyDER else { throw .differentPublicKey(path: path) }
      return
    }
    // By a signature rather than by bytes: one key has several encodings.
    let probe = [UInt8]("does pub.pem belong to prv.pem?".utf8)
    let signature: [UInt8]
    do throws(SigningKeyError) { signature = try key.sign(probe) } catch {
      throw .signingKey(path: path, error)
    }
    guard published.isValid(signature: signature, over: probe) else {
      throw .differentPublicKey(path: path)
    }
  }

  /// Signs a document.
  ///
  /// - Parameters:
  ///   - state: what was published before: its number, and the key sets in its document.
  ///   - isUnchanged: whether what is published says the same: then only key sets that go beyond it are signed.
  /// - Returns: `nil` where there is not one entry: an empty registry is never published.
  /// - Throws: ``SigningProblem``.
  func sign(
    _ content: DocumentContent, file: String, after state: DocumentState, at now: Int64,
    isUnchanged: Bool = false
  ) throws(SigningProblem) -> PublishedDocument? {
    guard !content.entries.isEmpty else { return nil }
    let last = LastDocument(state.document)
    guard !isUnchanged || hasNewKeySets(for: file, after: last) else { return nil }
    let keys = content.entries.map { $0.json(expires: now + Self.horizon) }
    var document = RegistryDocument(registry: file, payload: ["keys": .array(keys)])
    var onlineKeys: [TrustSigningKey] = []
    if let statements {
      let keySets = try statements.keySets(of: file, published: last.keySets)
      onlineKeys = try statements.onlineKeys(for: keySets, at: now)
      document.keySets = keySets.map(\.json)
      let number = try Self.number(epoch: Int64(keySets.count), after: state.number, at: now)
      document.terms = RegistryDocument.Terms(
        number: number, issued: now, expires: now + Self.horizon, hosts: content.hosts,
        denied: content.denied, removed: content.removed,
        previous: last.statement(of: file), mirrors: content.mirrors)
    } else if state.number != nil {
      throw .statementsEnded
    }
    document.payload = Self.standing(document.payload, in: last, at: now)
    do throws(SigningKeyError) {
      let signed = try document.signed(format1Key: key, onlineKeys: onlineKeys)
      return PublishedDocument(
        file: file, bytes: JSONValue.object(signed).canonicalBytes, document: signed, signed: now)
    } catch { throw .key(error) }
  }

  /// The payload of the last document where it says the same and lasts long enough; otherwise this one.
  ///
  /// So its bytes stay as they are while its content does: clients that ask for the statement alone fetch
  /// no payload for a day's new signature. Half of the time is kept for clients of format 1, whose pins end
  /// by it. One that lasts longer than is promised now was signed by a clock that was ahead.
  private static func standing(
    _ payload: JSONObject, in published: LastDocument, at now: Int64
  ) -> JSONObject {
    guard let last = published.payload, last.keys == ["keys"], let old = last["keys"]?.arrayValue,
      let new = payload["keys"]?.arrayValue, old.count == new.count
    else { return payload }
    let lasting = (now + horizon / 2)...(now + horizon)
    let isSame = zip(old, new).allSatisfy { old, new in
      guard var entry = old.objectValue, let new = new.objectValue,
        let expires = entry["expire"]?.integerValue, lasting.contains(expires)
      else { return false }
      entry["expire"] = new["expire"]
      return entry == new
    }
    return isSame ? last : payload
  }

  /// Whether the key sets here go beyond those in the published document.
  func hasNewKeySets(for file: String, after last: LastDocument) -> Bool {
    guard let statements,
      let sets = try? statements.keySets(of: file, published: last.keySets)
    else { return false }
    return sets.count > last.keySets.count
  }

  /// Whether the key that apps ship, which is on this server, signs key sets: then whoever steals it is the
  /// registry, and nothing but a release of the app helps. Without statements it is all there is.
  func isRoot(of file: String, after state: DocumentState) -> Bool {
    guard let statements else { return true }
    let published = StatementSigner.published(in: state.document)
    let sets = (try? statements.keySets(of: file, published: published)) ?? published
    guard let newest = sets.last else { return true }
    return newest.keySet.root.keys.contains { $0.id == key.trustKey.roleKey.id }
  }

  /// Why no statement could be signed now or before long, not under the newest complete key set, or none that clients
  /// take; `nil` where one could.
  func problem(of file: String, after state: DocumentState, at now: Int64) -> SigningProblem? {
    let size = SigningProblem.size(of: state.document)
    guard let statements else { return size }
    do throws(SigningProblem) {
      let published = StatementSigner.published(in: state.document)
      let used = try statements.keySets(of: file, published: published)
      _ = try statements.onlineKeys(for: used, at: now)
      _ = try Self.number(epoch: Int64(used.count), after: state.number, at: now)
      return try statements.problem(of: file, behind: used, at: now) ?? size
    } catch { return error }
  }

  /// A document that was signed before, here or by another server, if this key signed it.
  func recognise(_ bytes: [UInt8], signed: Int64) -> SignedCopy? {
    LastCopies.signed(bytes, by: key.publicKeyPEM, at: signed)
  }

  /// The number of the next statement: above the last one, and at least the time, so that a server
  /// whose store was lost goes on above what clients have seen.
  ///
  /// - Throws: ``SigningProblem/numbersSpent(epoch:)``.
  static func number(
    epoch: Int64, after last: RegistryStamp.Version?, at now: Int64
  ) throws(SigningProblem) -> RegistryStamp.Version {
    guard let last, last.epoch >= epoch else {
      return RegistryStamp.Version(epoch: epoch, version: max(1, now))
    }
    guard last.version < JSONNumber.greatestInteger else { throw .numbersSpent(epoch: epoch) }
    return RegistryStamp.Version(epoch: epoch, version: max(last.version + 1, now))
  }
}

/// Why nothing can be signed.
public enum DocumentSignerError: Error, Equatable, Sendable {
  /// The signing key at this path cannot be used.
  case signingKey(path: String, SigningKeyError)
  /// The online key at this path cannot be used.
  case onlineKey(path: String, SigningKeyError)
  /// The public key at this path cannot be read.
  case publicKey(path: String, VerificationKeyError)
  /// The public key at this path belongs to another private key.
  case differentPublicKey(path: String)
}

extension DocumentSignerError: CustomStringConvertible {
  public var description: String {
    switch self {
    case .signingKey(_, .unreadable(let path, let reason)):
      "cannot read \(path): \(reason); hint: is this the server's working directory, and tls.dir right? a lost"
        + " prv.pem comes back from its offline copy: apps trust no other. ssl-pinning keys generate is for a first"
        + " registry"
    case .onlineKey(let path, let error): "\(path): \(error)"
    case .signingKey(let path, let error): "\(path): \(error)"
    case .publicKey(let path, let error): "\(path): \(error)"
    case .differentPublicKey(let path):
      "\(path) is not the public half of prv.pem; hint: clients need the one that is"
    }
  }
}

extension DocumentSignerError: ExplainedError {}

/// Why a document cannot be signed as it should be. The one before it stays published.
enum SigningProblem: Error {
  /// A key does not add up.
  case key(SigningKeyError)
  /// Too few of the newest key set's online keys are here.
  case onlineKeysMissing(epoch: Int64, held: Int, threshold: Int)
  /// The key set lists an online key that is here with an algorithm that clients do not know.
  case onlineKeyUnusable(epoch: Int64, SPKIPin, algorithm: String)
  /// Clients take nothing new under the key set any more.
  case keySetExpired(epoch: Int64, since: Int64)
  /// The key set ends soon; until then everything is signed.
  case keySetEnds(epoch: Int64, at: Int64)
  /// The file with the key sets cannot be used.
  case keySets(path: String, reason: String)
  /// The key sets here are not a continuation of those that were published.
  case keySetsDiffer(epoch: Int64, path: String)
  /// The last statement has the greatest number that there is.
  case numbersSpent(epoch: Int64)
  /// Statements were published before and are no more: clients refuse a document without.
  case statementsEnded
  /// The document is about to have more bytes than clients take, or has.
  case large(bytes: Int)

  /// Before the end of a key set, in seconds, this is told: new root signatures may take weeks to get.
  static let warningTime: Int64 = 30 * 86_400

  /// What clients take by default.
  static let mostBytes = RegistryLimits.standard.maximumBytes

  /// Whether documents are signed as they should be for now.
  var isAhead: Bool {
    switch self {
    case .keySetEnds, .large: true
    default: false
    }
  }

  /// What it is called in the log.
  var event: String {
    switch self {
    case .keySetEnds: "key_set_ends"
    case .large: "document_large"
    default: "signing_impossible"
    }
  }

  /// Told from three quarters on: each endpoint that rotates has two keys for the grace time.
  static func size(of document: [UInt8]) -> SigningProblem? {
    document.count > mostBytes / 4 * 3 ? .large(bytes: document.count) : nil
  }
}

extension SigningProblem: CustomStringConvertible {
  var description: String {
    switch self {
    case .key(let error): error.description
    case .onlineKeysMissing(let epoch, let held, let threshold):
      "\(held) of the \(threshold) online keys that key set \(epoch) asks for are here"
        + "; hint: put them into tls.dir/online, or name them in publish.online_keys"
    case .onlineKeyUnusable(let epoch, let id, let algorithm):
      "key set \(epoch) lists the online key \(id) with the algorithm \"\(algorithm)\", and clients would refuse"
        + " what is signed under it; the set before stays in force if this one was not published"
        + "; hint: was the file changed on its way? ssl-pinning keys rotate makes the next set"
    case .keySetExpired(let epoch, let since):
      "key set \(epoch) is expired since \(RFC3339.text(since)), and clients take nothing new under it"
        + "; hint: ssl-pinning keys rotate makes the next set"
    case .keySetEnds(let epoch, let end):
      "clients take nothing new under key set \(epoch) from \(RFC3339.text(end)) on"
        + "; hint: ssl-pinning keys rotate makes the next set"
    case .keySets(let path, let reason): "the key sets in \(path) cannot be used: \(reason)"
    case .keySetsDiffer(let epoch, let path):
      "key set \(epoch) is another one than was published"
        + "; hint: \(path) must go on from the keySets of the published document: put a good copy of it back,"
        + " or those keySets themselves"
    case .numbersSpent(let epoch):
      "no number is left for a document of epoch \(epoch): the last one has the greatest that there is"
        + "; hint: ssl-pinning keys rotate begins a new epoch; did somebody steal an online key?"
    case .statementsEnded:
      "statements were published before, and clients refuse a document without"
        + "; hint: set publish.statements to true"
    case .large(let bytes):
      "the document has \(bytes) bytes, and clients refuse "
        + (bytes > Self.mostBytes
          ? "it: they take \(Self.mostBytes)" : "more than \(Self.mostBytes)")
        + "; hint: fewer endpoints in one file; an endpoint that rotates counts twice for tls.grace"
    }
  }
}

/// How many bytes a document and its parts have: what `make bench` prints, by the server's own signer
/// over endpoints that nobody probed.
package struct DocumentWeight: Sendable {
  /// Bytes as they are, and compressed.
  package struct Size: Sendable {
    package let raw: Int
    package let compressed: Int

    init(_ bytes: [UInt8]) {
      (raw, compressed) = (bytes.count, Gzip.compressed(bytes)?.count ?? bytes.count)
    }
  }

  package let whole: Size
  package let statement: Size
  package let payload: Size

  /// The document of so many endpoints under the default patterns, a random key each.
  package init?(endpoints count: Int, signer: DocumentSigner, at now: Int64) throws {
    var state = DocumentState()
    var endpoints: [WatchedEndpoint] = []
    for index in 0..<count {
      let name = try HostName("service-\(index).example.com")
      let endpoint = WatchedEndpoint(fqdn: name)
      let digest = (0..<32).map { _ in UInt8.random(in: .min ... .max) }
      let seen = now - .random(in: 0..<365 * 86_400)
      guard let pin = SPKIPin(digest: digest) else { return nil }
      state.keysByEndpoint[endpoint.id] = EndpointKeys(
        keys: [KnownKey(pin: pin, firstSeen: seen, lastSeen: now)])
      endpoints.append(endpoint)
    }
    let content = DocumentContent(state, endpoints: endpoints)
    guard let document = try signer.sign(content, file: "app.json", after: state, at: now),
      let part = document.parts.statement()
    else { return nil }
    (whole, statement) = (Size(document.bytes), Size(part))
    payload = Size(document.parts.payload)
  }
}
