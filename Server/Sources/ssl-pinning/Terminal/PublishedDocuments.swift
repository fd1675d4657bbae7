import CanonicalJSON
import SslPinningRules

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
