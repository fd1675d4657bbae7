/// A value of a document, looked at where it stands: nothing is decoded or copied before it is asked for.
///
/// A list of pins has some ten values for each host, most of which no client needs. Read so, it costs half of the
/// time and memory that it costs by way of ``JSONValue``.
public struct JSONView: Sendable {
  private final class Document: Sendable {
    let bytes: [UInt8]
    let tape: JSONTape

    init(_ bytes: [UInt8], _ tape: JSONTape) {
      self.bytes = bytes
      self.tape = tape
    }
  }

  private let document: Document
  private let index: Int

  private init(_ document: Document, _ index: Int) {
    self.document = document
    self.index = index
  }

  /// Reads strict I-JSON (RFC 7493): accepts exactly what ``canonicalize(_:limits:)`` accepts.
  ///
  /// - Throws: the first offence, with its byte offset.
  public init(parsing bytes: [UInt8], limits: JSONLimits = .standard) throws(JSONError) {
    let tape = try bytes.withUnsafeBufferPointer { (buffer) throws(JSONError) in
      var parser = JSONParser(limits: limits)
      try parser.parse(Bytes(buffer))
      return parser.tape
    }
    self.init(Document(bytes, tape), 0)
  }

  /// A copy of the value.
  public var value: JSONValue {
    read { bytes in
      var reader = TreeReader(tape: document.tape, from: index)
      return reader.value(bytes)
    }
  }

  /// The RFC 8785 form of the value.
  public var canonicalBytes: [UInt8] {
    read { bytes in
      // Canonical form can turn a double of three bytes into at most 24.
      var writer = CanonicalWriter(reserving: bytes.count + 24 * document.tape.doubles)
      writer.write(document.tape, bytes, from: index)
      return writer.bytes
    }
  }

  /// The string, if it is one.
  public var stringValue: String? {
    switch document.tape.tokens[index].kind {
    case .plainString, .decodedString: read { document.tape.string(index, in: $0) }
    default: nil
    }
  }

  /// The number, if it is one; finite.
  public var doubleValue: Double? {
    switch document.tape.tokens[index].kind {
    case .integer, .double: value.doubleValue
    default: nil
    }
  }

  /// Whether it is an object.
  public var isObject: Bool { document.tape.tokens[index].kind == .object }

  /// The value of the member of this name, compared byte by byte; `nil` also if this is no object.
  public subscript(name: String) -> JSONView? {
    guard isObject else { return nil }
    return read { bytes in
      name.withBytes { name in
        var place = index + 1
        let end = document.tape.end(of: index)
        while place < end {
          if document.tape.holds(place, Bytes(name), in: bytes) {
            return JSONView(document, place + 1)
          }
          place = document.tape.end(of: place + 1)
        }
        return nil
      }
    }
  }

  /// The elements, if it is an array.
  public var arrayValue: [JSONView]? {
    guard document.tape.tokens[index].kind == .array else { return nil }
    return document.tape.children(of: index).map { JSONView(document, $0) }
  }

  private func read<Result>(_ body: (Bytes) -> Result) -> Result {
    document.bytes.withUnsafeBufferPointer { body(Bytes($0)) }
  }
}
