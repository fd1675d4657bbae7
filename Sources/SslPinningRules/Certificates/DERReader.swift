/// Walks the elements of one DER value (X.690 §8.1, §10.1): low tag numbers and definite,
/// minimal lengths only. Enough to find a field; it decodes nothing.
package struct DERReader {
  package enum Tag: UInt8, Sendable {
    case integer = 0x02
    case bitString = 0x03
    case octetString = 0x04
    case null = 0x05
    case objectIdentifier = 0x06
    case utcTime = 0x17
    case generalizedTime = 0x18
    case sequence = 0x30
    case explicit0 = 0xa0
  }

  package struct Element {
    /// Tag, length and contents.
    package let whole: ArraySlice<UInt8>
    package let contents: ArraySlice<UInt8>
  }

  private var rest: ArraySlice<UInt8>

  package init(_ bytes: ArraySlice<UInt8>) { rest = bytes }

  package var isAtEnd: Bool { rest.isEmpty }
  package var offset: Int { rest.startIndex }
  package var nextTag: Tag? { rest.first.flatMap(Tag.init(rawValue:)) }

  /// Takes the next element, which must have this tag.
  package mutating func element(tag: Tag, what: String) throws(CertificateSyntaxError) -> Element {
    guard let first = rest.first else { throw .truncated(what, offset: offset) }
    guard first == tag.rawValue else { throw .unexpectedTag(first, what, offset: offset) }
    let lengthStart = rest.startIndex + 1
    guard lengthStart < rest.endIndex else { throw .truncated(what, offset: offset) }
    var length = Int(rest[lengthStart])
    var contentsStart = lengthStart + 1
    if length >= 0x80 {
      // Four bytes of length are 4 GB; zero of them would be BER's indefinite form.
      let count = length & 0x7f
      guard (1...4).contains(count) else { throw .badLength(what, offset: lengthStart) }
      guard contentsStart + count <= rest.endIndex else { throw .truncated(what, offset: offset) }
      length = rest[contentsStart..<(contentsStart + count)].reduce(0) { $0 << 8 | Int($1) }
      let minimal = length >= 0x80 && (count == 1 || length >> (8 * (count - 1)) != 0)
      guard minimal else { throw .badLength(what, offset: lengthStart) }
      contentsStart += count
    }
    guard rest.endIndex - contentsStart >= length else { throw .truncated(what, offset: offset) }
    let end = contentsStart + length
    let element = Element(
      whole: rest[rest.startIndex..<end], contents: rest[contentsStart..<end])
    rest = rest[end...]
    return element
  }
}
