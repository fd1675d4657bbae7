import CanonicalJSON

/// The members of a report by type. One that is absent or null is `nil`; one of another type is refused.
struct ReportMembers {
  let object: JSONObject

  func text(_ name: String) throws(ReportRefusal) -> String? {
    guard let value = present(name) else { return nil }
    guard let text = value.stringValue else { throw .wrong(member: name, expected: "a text") }
    return text
  }

  /// A text that is kept; empty where it is absent.
  func cleaned(_ name: String) throws(ReportRefusal) -> String {
    ReportText.cleaned(try text(name) ?? "")
  }

  func texts(_ name: String) throws(ReportRefusal) -> [String]? {
    guard let value = present(name) else { return nil }
    let texts = value.arrayValue?.compactMap(\.stringValue)
    guard let texts, texts.count == value.arrayValue?.count else {
      throw .wrong(member: name, expected: "a list of texts")
    }
    return texts
  }

  func integer(_ name: String, in range: ClosedRange<Int64>) throws(ReportRefusal) -> Int64? {
    guard let value = present(name) else { return nil }
    guard let integer = value.integerValue, range.contains(integer) else {
      throw .wrong(
        member: name, expected: "a whole number from \(range.lowerBound) to \(range.upperBound)")
    }
    return integer
  }

  func truth(_ name: String) throws(ReportRefusal) -> Bool? {
    guard let value = present(name) else { return nil }
    guard let bool = value.boolValue else { throw .wrong(member: name, expected: "true or false") }
    return bool
  }

  private func present(_ name: String) -> JSONValue? {
    guard let value = object[name], value != .null else { return nil }
    return value
  }
}
