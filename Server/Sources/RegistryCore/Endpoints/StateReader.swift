import CanonicalJSON
import SslPinningRules

/// Why a record cannot be read.
package struct StateFault: Error {
  package let reason: String

  init(reason: String) { self.reason = reason }

  init(member: String) { reason = "\(member) is missing or unreadable" }
}

/// One object of a record, read strictly: whatever is missing or of another kind is a fault.
struct StateReader {
  let object: JSONObject
  let name: String

  init(_ object: JSONObject, _ name: String) { (self.object, self.name) = (object, name) }

  init(_ value: JSONValue, _ name: String) throws(StateFault) {
    guard let object = value.objectValue else { throw StateFault(member: name) }
    self.init(object, name)
  }

  func integer(_ member: String) throws(StateFault) -> Int64 {
    guard let value = object[member]?.integerValue else { throw fault(member) }
    return value
  }

  /// A number from 0 to the given one; 0 where there is none.
  func count(_ member: String, upTo most: Int64) throws(StateFault) -> Int64 {
    guard let value = object[member] else { return 0 }
    guard let count = value.integerValue, (0...most).contains(count) else { throw fault(member) }
    return count
  }

  func string(_ member: String) throws(StateFault) -> String {
    guard let value = object[member]?.stringValue else { throw fault(member) }
    return value
  }

  func pin(_ member: String) throws(StateFault) -> SPKIPin {
    guard let pin = try? SPKIPin(base64: try string(member)) else { throw fault(member) }
    return pin
  }

  func strings(_ member: String) throws(StateFault) -> [String] {
    guard let list = object[member]?.arrayValue else { throw fault(member) }
    let strings = list.compactMap(\.stringValue)
    guard strings.count == list.count else { throw fault(member) }
    return strings
  }

  func members(_ member: String) throws(StateFault) -> [(String, JSONValue)] {
    guard let object = object[member]?.objectValue else { throw fault(member) }
    return object.map { ($0.0, $0.1) }
  }

  func list<Element>(
    _ member: String, _ read: (StateReader) throws(StateFault) -> Element
  ) throws(StateFault) -> [Element] {
    guard let value = object[member] else { throw fault(member) }
    return try Self.list(value, member, read)
  }

  static func list<Element>(
    _ value: JSONValue, _ name: String, _ read: (StateReader) throws(StateFault) -> Element
  ) throws(StateFault) -> [Element] {
    guard let list = value.arrayValue else { throw StateFault(member: name) }
    var elements: [Element] = []
    elements.reserveCapacity(list.count)
    for value in list { elements.append(try read(try StateReader(value, name))) }
    return elements
  }

  func fault(_ member: String) -> StateFault { StateFault(member: "\(name).\(member)") }
}

extension JSONValue {
  /// A whole number. Those beyond 2^53 do not occur; one that did would become 0.
  package static func integer(_ value: Int64) -> JSONValue { .number(JSONNumber(exactly: value) ?? 0) }
}
