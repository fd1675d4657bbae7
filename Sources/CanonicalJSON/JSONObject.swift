/// The members of a JSON object, in the order received, each name once.
///
/// - Names are compared by their UTF-8 bytes, never by Unicode equivalence: `é` and `e` + U+0301 are
///   two members, and so are `K` and U+212A KELVIN SIGN (RFC 8785 section 3.1 forbids normalising).
/// - Members unknown to this library are kept, because signatures cover them.
/// - Two objects are equal if they have the same members with the same values, in any order; that is,
///   if their canonical bytes are equal.
public struct JSONObject: Sendable {
  /// One member: its name and its value.
  public typealias Member = (key: String, value: JSONValue)

  /// The members in the order received.
  public private(set) var members: [Member]

  /// Positions by name; only from `indexedCount` members on, because a scan of fewer is faster.
  private var positions: [ByteString: Int]?

  private static let indexedCount = 16

  /// An object without members.
  public init() {
    members = []
    positions = nil
  }

  /// An object with these members; of two with the same name, the later value takes the earlier's place.
  public init(_ members: [(String, JSONValue)]) {
    self.init()
    self.members.reserveCapacity(members.count)
    for (key, value) in members { self[key] = value }
  }

  /// An object written as a dictionary literal; of two members with the same name the later value
  /// takes the earlier's place.
  public init(_ members: KeyValuePairs<String, JSONValue>) {
    self.init(members.map { ($0.key, $0.value) })
  }

  /// Members that the parser has proved to be distinct.
  init(distinct members: [Member]) {
    self.members = members
    positions = nil
    indexIfLarge()
  }

  /// The number of members.
  public var count: Int { members.count }

  /// Whether there are no members.
  public var isEmpty: Bool { members.isEmpty }

  /// The names, in the order received.
  public var keys: [String] { members.map(\.key) }

  /// The value of the member of this name, compared byte by byte.
  ///
  /// Setting an existing member keeps its place, a new one is appended, and `nil` removes it.
  public subscript(key: String) -> JSONValue? {
    get { position(of: key).map { members[$0].value } }
    set {
      switch (position(of: key), newValue) {
      case (let position?, let value?):
        members[position].value = value
      case (let position?, nil):
        members.remove(at: position)
        positions = nil
        indexIfLarge()
      case (nil, let value?):
        members.append((key, value))
        if positions == nil {
          indexIfLarge()
        } else {
          positions?[ByteString(key)] = members.count - 1
        }
      case (nil, nil):
        break
      }
    }
  }

  private func position(of key: String) -> Int? {
    if let positions { return positions[ByteString(key)] }
    return members.firstIndex { ByteString($0.key) == ByteString(key) }
  }

  private mutating func indexIfLarge() {
    guard members.count >= Self.indexedCount else { return }
    var positions: [ByteString: Int] = [:]
    positions.reserveCapacity(members.count)
    for (position, member) in members.enumerated() { positions[ByteString(member.key)] = position }
    self.positions = positions
  }
}

extension JSONObject: ExpressibleByDictionaryLiteral {
  /// An object written as a literal; of two members with the same name the later value takes the
  /// earlier's place.
  public init(dictionaryLiteral members: (String, JSONValue)...) { self.init(members) }
}

extension JSONObject: Sequence {
  /// Iterates over the members in the order received.
  public func makeIterator() -> IndexingIterator<[Member]> { members.makeIterator() }
}

extension JSONObject: Hashable {
  /// Same members, same values, any order.
  public static func == (left: JSONObject, right: JSONObject) -> Bool {
    left.count == right.count && left.members.allSatisfy { right[$0.key] == $0.value }
  }

  public func hash(into hasher: inout Hasher) {
    // A sum does not depend on the order of the members, and neither does equality.
    var sum = 0
    for member in members {
      var one = Hasher()
      one.combine(ByteString(member.key))
      one.combine(member.value)
      sum &+= one.finalize()
    }
    hasher.combine(count)
    hasher.combine(sum)
  }
}
