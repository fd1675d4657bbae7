/// The RFC 8785 form of a document: strict I-JSON (RFC 7493) in, the bytes that signatures cover out.
///
/// Nothing is decoded on the way but what canonical form demands, so members nobody here knows are kept.
///
/// - Parameters:
///   - bytes: the document in UTF-8, without a byte order mark; any value may stand at the top.
///   - limits: its greatest size and depth.
/// - Returns: the canonical bytes; canonicalizing them again changes nothing.
/// - Throws: the first offence, with its byte offset.
public func canonicalize(
  _ bytes: [UInt8], limits: JSONLimits = .standard
) throws(JSONError) -> [UInt8] {
  try bytes.withUnsafeBufferPointer { (buffer) throws(JSONError) in
    var parser = JSONParser(limits: limits)
    try parser.parse(Bytes(buffer))
    // A double's text has 24 bytes at most and need not be longer in the document than three.
    var writer = CanonicalWriter(reserving: buffer.count + 24 * parser.tape.doubles)
    writer.write(parser.tape, Bytes(buffer))
    return writer.bytes
  }
}
