import CanonicalJSON
import SslPinningPlatform
import SslPinningRules
import TLSTools

/// A document that `sign` goes on from: its input, `--previous`, or what `--out` takes the place of.
///
/// Published files lie where others write, too: in a web root, on a CDN, under a sync job. Signed again
/// unseen, whatever was put there would be ours. So such a document must be the work of the keys at hand.
struct PublishedDocument {
  let json: JSONObject
  /// What messages call it.
  let place: String

  /// `nil` for a bare payload: whoever passes one answers for what is in it.
  init?(_ json: JSONValue, _ place: String) {
    guard let json = json.objectValue, json["payload"] != nil else { return nil }
    (self.json, self.place) = (json, place)
  }

  var hasStatement: Bool { json["statement"] != nil }

  /// Whether its statement says that the registry goes back to format 1, whoever signed it.
  var isRetired: Bool { json["statement"]?.objectValue?["retired"] == .bool(true) }

  /// The statement's name for the registry, not to be believed before ``check(format1Key:onlineKeys:chain:)``.
  var registry: String? { json["statement"]?.objectValue?["registry"]?.stringValue }

  /// The number of its statement, without asking who signed it.
  var number: RegistryStamp.Version? {
    get throws(CommandFailure) { try statement(of: registry ?? "")?.number }
  }

  /// The document as it is written.
  private var bytes: [UInt8] { JSONValue.object(json).canonicalBytes + [UInt8(ascii: "\n")] }

  /// Its statement, without asking who signed it.
  func statement(of registry: String) throws(CommandFailure) -> Statement? {
    do throws(DocumentFault) {
      return try json["statement"].map { (json) throws(DocumentFault) in
        guard let json = json.objectValue else { throw .member("statement") }
        return try Statement(json, registry: registry)
      }
    } catch { throw .no("the statement of \(place) cannot be gone on from: \(error)") }
  }

  /// Refuses what other keys made, or what was changed since; what is expired will do.
  ///
  /// - Parameters:
  ///   - format1Key: must have signed the payload.
  ///   - onlineKeys: those that sign now; none if no statement is made. Without a chain each of them must
  ///     have signed the statement.
  ///   - chain: key sets that the operator vouches for. Those in a document anybody can make up.
  func check(
    format1Key: SigningKey?, onlineKeys: [TrustSigningKey] = [], chain: KeySetList? = nil
  ) throws(CommandFailure) {
    do {
      let key = try format1Key.map { try VerificationKey(bytes: $0.publicKeyDER) }
      if let key { _ = try RegistryEnvelope(parsing: bytes).verifiedPayload(by: key) }
      guard hasStatement, !onlineKeys.isEmpty else {
        guard key != nil else { throw RegistryError.noFormat1Key }
        return
      }
      let own = try json["keySets"].map { try KeySetList($0) }
      if let own {
        guard let chain, chain.goesOn(from: own) else { throw DocumentFault.conflict }
      }
      let trust = try trust(format1Key: format1Key, onlineKeys: onlineKeys, chain: chain)
      _ = try TrustedRegistry(bundled: bytes, under: trust, at: 0)
    } catch {
      let cause = Self.cause(error)
      let hint =
        onlineKeys.isEmpty
        ? "an edited payload is signed if it is given alone, {\"keys\": …}"
        : "give an edited payload alone, {\"keys\": …}, and with --previous the document as it was"
          + " published; --key-sets where its keys are not these"
      throw .no("\(place) is not as these keys signed it: \(cause); hint: \(hint)")
    }
  }

  /// Refuses a document that clients would refuse: those that begin with it, and those that believe `last`,
  /// which was checked.
  ///
  /// - Parameter clock: Unix time in seconds.
  func checkAsClients(
    after last: PublishedDocument?, format1Key: SigningKey?, onlineKeys: [TrustSigningKey],
    chain: KeySetList?, at clock: Int64
  ) throws(CommandFailure) {
    do {
      let first = try trust(format1Key: format1Key, onlineKeys: onlineKeys, chain: chain)
      _ = try TrustedRegistry(accepting: bytes, under: first, at: clock)
      guard let last else { return }
      let trust = try last.trust(format1Key: format1Key, onlineKeys: onlineKeys, chain: chain)
      let held = try TrustedRegistry(bundled: last.bytes, under: trust, at: clock)
      if let refusal = held.update(with: bytes, under: trust, at: clock).refusal { throw refusal }
    } catch {
      throw .no(
        "clients would refuse \(place): \(Self.cause(error)); hint: nothing was written, so what they have"
          + " stays in force")
    }
  }

  /// Hints for readers of a registry are none for its publisher.
  fileprivate static func cause(_ error: any Error) -> String {
    "\(error)".components(separatedBy: "; hint: ")[0]
  }

  /// What an app may ship that believes the document.
  private func trust(
    format1Key: SigningKey?, onlineKeys: [TrustSigningKey], chain: KeySetList?
  ) throws -> RegistryTrust {
    // Its own set 1 counts only as far as the operator's chain has it: anybody can make one up.
    let own = try json["keySets"].map { try KeySetList($0) }
    let isVouchedFor = chain?.goesOn(from: own) == true
    let shipped =
      try (isVouchedFor ? own?.sets.first?.keySet.root : nil)
      ?? Self.shipped(before: chain, format1Key: format1Key, onlineKeys: onlineKeys)
    return RegistryTrust(
      registry: registry ?? "", shipped: shipped,
      format1Key: try format1Key.map { try VerificationKey(bytes: $0.publicKeyDER) },
      requiresStatement: hasStatement, crypto: PlatformRegistryCrypto())
  }

  /// The keys that an app may ship and that sign before the first key set: with a chain the key of format 1
  /// and the root keys of set 1, any one of which the operator's chain vouches for.
  private static func shipped(
    before chain: KeySetList?, format1Key: SigningKey?, onlineKeys: [TrustSigningKey]
  ) throws(DocumentFault) -> KeyRole {
    guard chain != nil || onlineKeys.isEmpty else {
      return try KeyRole(keys: onlineKeys.map(\.roleKey), threshold: onlineKeys.count)
    }
    var keys = chain?.sets.first?.keySet.root.keys ?? []
    if let key = format1Key?.trustKey.roleKey, !keys.contains(where: { $0.id == key.id }) {
      keys.append(key)
    }
    return try KeyRole(keys: keys, threshold: 1)
  }

  /// What it lists, and the statement that is in force there.
  func list(under statement: Statement?) -> StatedList? {
    guard let payload = json["payload"]?.objectValue else { return nil }
    return StatedList(payload, under: statement)
  }
}

/// The documents at hand when `sign` makes the next one.
struct PublishedDocuments {
  /// PAYLOAD.json, if it is a document.
  let input: PublishedDocument?
  /// What `--previous` names.
  let previous: PublishedDocument?
  /// What `--out` takes the place of.
  let replaced: PublishedDocument?

  /// Reads them. What cannot be read may be what was published last, so it is refused: only
  /// `--previous` tells the same better.
  init(
    _ input: PublishedDocument?, previous: PublishedDocument?, _ invocation: Invocation
  ) throws(CommandFailure) {
    (self.input, self.previous) = (input, previous)
    replaced = try Self.replaced(
      invocation,
      hint: previous == nil ? "--previous names a good copy of it" : "another --out, or remove it",
      besideCopy: previous != nil)
  }

  /// What `--out` takes the place of. What cannot be read may be what was published last, so it is refused.
  ///
  /// - Parameter besideCopy: a good copy is at hand, so a document that was cut short is replaced. A file that
  ///   never was one is not.
  static func replaced(
    _ invocation: Invocation, hint: String, besideCopy: Bool = false
  ) throws(CommandFailure) -> PublishedDocument? {
    let found = try OutputFile.present(invocation)
    guard let target = OutputFile.existing(invocation) else { return nil }
    guard let object = found?.json.objectValue else {
      if besideCopy, try found == nil ? isCutShort(target.path) : found?.json == .array([]) {
        return nil
      }
      try OutputFile.refusePrivateKey(target)
      throw .no("\(target) is there and is no JSON object: is it damaged? hint: \(hint)")
    }
    // An empty object has nothing to lose.
    guard object.isEmpty || object["payload"] != nil || object["keys"] != nil else {
      throw .no(
        "\(target) is there and is neither document nor payload: is it damaged? hint: \(hint)")
    }
    return found.flatMap { PublishedDocument($0.json, $0.target.description) }
  }

  /// Whether a file that is no JSON may be what is left of a document.
  private static func isCutShort(_ path: String) throws(CommandFailure) -> Bool {
    let bytes = try InputFile.read(path, limit: JSONLimits.standard.maximumBytes)
    return bytes.first { !" \t\r\n".utf8.contains($0) }.map { $0 == UInt8(ascii: "{") } ?? true
  }

  /// The document published last. A count that began anew would have every client refuse what is signed.
  var last: PublishedDocument? {
    previous ?? [input, replaced].compactMap { $0 }.first(where: \.hasStatement)
  }

  /// Those that the next one takes the place of.
  var before: [PublishedDocument] { [input, replaced].compactMap { $0 } }

  /// What clients may hold.
  var all: [PublishedDocument] { [input, previous, replaced].compactMap { $0 } }

  /// Whether the operator named the input itself with `--previous`.
  var isInputNamed: Bool {
    guard let input, let previous else { return false }
    return JSONValue.object(input.json).canonicalBytes
      == JSONValue.object(previous.json).canonicalBytes
  }

  /// What they list, as far as that can be read.
  func lists(of registry: String) -> [StatedList] {
    all.compactMap { document in
      document.list(under: (try? document.statement(of: registry)).flatMap { $0 })
    }
  }

  /// The statements of all.
  func statements(
    of registry: String
  ) throws(CommandFailure) -> [(document: PublishedDocument, statement: Statement)] {
    var found: [(document: PublishedDocument, statement: Statement)] = []
    for document in [input, previous].compactMap({ $0 }) {
      guard let statement = try document.statement(of: registry) else { continue }
      found.append((document, statement))
    }
    guard let replaced else { return found }
    if let other = replaced.registry, !other.utf8.elementsEqual(registry.utf8) {
      throw .no(
        "\(replaced.place) is of the registry \"\(other)\", whose clients would refuse one of"
          + " \"\(registry)\"; hint: another --out, or the right --registry-name")
    }
    do throws(CommandFailure) {
      if let statement = try replaced.statement(of: registry) {
        found.append((replaced, statement))
      }
    } catch {
      // With a good copy at hand, a damaged one is replaced.
      guard previous != nil else { throw error }
    }
    return found
  }
}

/// The statement that a key signed last for a registry, in a file beside the key: `online.pem.signed`.
///
/// Signatures do not tell an older document from the newest one, and others may put one back where documents are
/// published. Signed anew it would undo denials, or count numbers that clients have passed.
///
/// - A newer one is right: another machine may sign with the same key.
/// - If the file cannot be read or written, that is told, and stops no daily job: a list that nobody signs any longer
///   locks everybody out. So it is written after the document: a job that was killed goes on from whatever it left.
/// - A second file may never be published, so what is signed there is not remembered, but what that goes on from.
struct LastSigned {
  private static let limit = 1 << 20

  private let file: AtomicFile?
  private let registry: String
  /// `nil` if nothing is remembered.
  private let known: StatementID?
  private let isUnreadable: Bool
  /// The statement to go on from, and what messages call its document.
  private let last: StatementID?
  private let place: String
  private let takesOlder: Bool

  /// Reads it.
  ///
  /// - Parameters:
  ///   - key: the key's file.
  ///   - last: the statement to go on from.
  ///   - place: what messages call its document.
  ///   - takesOlder: whether the operator says that an older one is meant.
  init(
    beside key: String, of registry: String, before last: Statement?, at place: String,
    takesOlder: Bool
  ) {
    (self.registry, self.place, self.takesOlder) = (registry, place, takesOlder)
    self.last = last.map { StatementID(of: $0, crypto: PlatformRegistryCrypto()) }
    // It is no secret: a key that root used once is still its owner's to sign with.
    file =
      key == InputFile.standardInput
      ? nil : AtomicFile(path: OutputFile.resolved(key) + ".signed", isOfItsPlace: true)
    var (known, isUnreadable) = (StatementID?.none, false)
    do {
      let entry = try Self.entries(file?.read(limit: Self.limit))[registry]
      known = try entry.map { try StatementID($0) }
    } catch {
      isUnreadable = true
      Self.warn(PublishedDocument.cause(error))
    }
    (self.known, self.isUnreadable) = (known, isUnreadable)
  }

  /// What the next statement follows: the one to go on from, or the newer one that clients have.
  var followed: StatementID? {
    guard takesOlder, let known, let last, last.number <= known.number else { return last }
    return known
  }

  /// Refuses to go on from an older statement than the one remembered, or from another one of its number.
  func check() throws(CommandFailure) {
    guard !takesOlder, let file, let known, let last, last != known, last.number <= known.number
    else { return }
    let number = "\(known.number.epoch).\(known.number.version)"
    let found =
      last.number == known.number
      ? "is another \(number) than the one"
      : "is at \(last.number.epoch).\(last.number.version), older than \(number), the one"
    throw .no(
      "\(place) \(found) that this key signed last, as \(file.path) says: signed anew, it would take back what was"
        + " decided since; hint: a good copy of \(number) in its place, or --older if there is none: its number is"
        + " above \(number)")
  }

  /// Remembers the next statement if it took the place of the one before, and else that one.
  func remember(_ next: Statement?, in out: String?) {
    guard let last else { return store(nil) }
    if let next, let out, OutputFile.resolved(out) == OutputFile.resolved(place) {
      store(StatementID(of: next, crypto: PlatformRegistryCrypto()))
    } else if known.map({ $0.number < last.number }) ?? true {
      store(last)
    }
  }

  private func store(_ id: StatementID?) {
    guard id != known else { return }
    guard let file else { return Self.warn("the key comes from standard input") }
    do throws(FileError) {
      _ = try file.withLock { (held) throws(FileError) -> Bool in
        var entries = (try? Self.entries(held.read(limit: Self.limit))) ?? [:]
        entries[registry] = id?.json
        try held.write(JSONValue.object(entries).canonicalBytes)
        return true
      }
    } catch {
      if !isUnreadable { Self.warn("\(error)") }
    }
  }

  private static func entries(_ bytes: [UInt8]?) throws -> JSONObject {
    guard let bytes else { return [:] }
    return try JSONValue(parsing: bytes).objectValue ?? [:]
  }

  private static func warn(_ cause: String) {
    Terminal.say(
      "warning: what was signed last is not remembered beside the key, and an older document that somebody put back"
        + " may be signed anew: \(cause); hint: a key in a directory that this may write to")
  }
}

/// What clients that know format 1 only make of a document's signature.
enum Format1Signature: String, Sendable {
  case valid, invalid, missing
  /// Nobody said what key they have.
  case unknown

  /// Checks the signature of a document that was parsed already.
  init(of document: [UInt8], by key: VerificationKey?) {
    guard let key else {
      self = .unknown
      return
    }
    let envelope = try? RegistryEnvelope(parsing: document)
    if envelope?.document["signature"] == nil {
      self = .missing
    } else {
      self = (try? envelope?.verifiedPayload(by: key)) == nil ? .invalid : .valid
    }
  }

  /// What an operator has to know.
  var problem: String? {
    switch self {
    case .valid, .unknown: nil
    case .invalid, .missing:
      "the format-1 signature is \(rawValue): clients that know no statements refuse the document"
    }
  }
}
