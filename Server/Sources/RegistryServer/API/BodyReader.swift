import CanonicalJSON
import RegistryCore
import SslPinningRules

/// The body of a call, one JSON object, read strictly: an unknown member, one that stands twice and one
/// of another type are refused, with the name.
struct BodyReader {
  private let object: JSONObject

  /// How many bytes a body may have.
  static let maximumBytes = 64 << 10
  static let limits = JSONLimits(maximumDepth: 4, maximumBytes: maximumBytes)

  init(_ bytes: [UInt8], known: [String]) throws(APIError) {
    guard !bytes.isEmpty else { throw .badRequest("the body is empty", hint: "send a JSON object") }
    let value: JSONValue
    do throws(JSONError) { value = try JSONValue(parsing: bytes, limits: Self.limits) } catch {
      throw APIError(400, describing: error)
    }
    guard let object = value.objectValue else {
      throw .badRequest("the body is \(value.kind)", hint: "send a JSON object")
    }
    for (name, _) in object where !known.contains(where: { $0.utf8.elementsEqual(name.utf8) }) {
      throw .badRequest(
        "unknown member: \(name)", hint: "known: \(known.sorted().joined(separator: ", "))")
    }
    self.object = object
  }

  /// Whether a member is there.
  func has(_ member: String) -> Bool { object[member] != nil }

  func string(_ member: String) throws(APIError) -> String? {
    guard let value = object[member] else { return nil }
    guard let text = value.stringValue else { throw wrong(member, value, "a string") }
    return text
  }

  func boolean(_ member: String) throws(APIError) -> Bool? {
    guard let value = object[member] else { return nil }
    guard let truth = value.boolValue else { throw wrong(member, value, "true or false") }
    return truth
  }

  func integer(
    _ member: String, in range: ClosedRange<Int64>
  ) throws(APIError) -> Int64? {
    guard let value = object[member] else { return nil }
    guard let number = value.integerValue else { throw wrong(member, value, "a whole number") }
    guard range.contains(number) else {
      throw .badRequest(
        "\(member) is not within \(range.lowerBound) to \(range.upperBound)")
    }
    return number
  }

  func strings(_ member: String) throws(APIError) -> [String]? {
    guard let value = object[member] else { return nil }
    guard let list = value.arrayValue else { throw wrong(member, value, "a list of strings") }
    var texts: [String] = []
    for element in list {
      guard let text = element.stringValue else {
        throw wrong("\(member)[\(texts.count)]", element, "a string")
      }
      texts.append(text)
    }
    return texts
  }

  /// One of an enumeration's words.
  func choice<Choice: RawRepresentable<String> & CaseIterable>(
    _ member: String, _ type: Choice.Type
  ) throws(APIError) -> Choice? {
    guard let text = try string(member) else { return nil }
    guard let choice = Choice.allCases.first(where: { $0.rawValue == text }) else {
      throw .badRequest(
        "\(member) is \"\(text)\"",
        hint: "one of \(Choice.allCases.map(\.rawValue).joined(separator: ", "))")
    }
    return choice
  }

  /// A duration in milliseconds.
  func duration(
    _ member: String, in range: ClosedRange<Int64>
  ) throws(APIError) -> Int64? {
    guard let text = try string(member) else { return nil }
    guard let value = GoDuration.milliseconds(text) else {
      throw .badRequest("\(member): \"\(text)\" is no duration", hint: "write 60s, 5m or 1h30m")
    }
    guard range.contains(value) else {
      throw .badRequest(
        "\(member): \(text) is not within \(GoDuration.text(milliseconds: range.lowerBound)) to "
          + GoDuration.text(milliseconds: range.upperBound))
    }
    return value
  }

  /// A pin in plain base64.
  func pin(_ member: String) throws(APIError) -> SPKIPin? {
    guard let text = try string(member) else { return nil }
    do throws(PinSyntaxError) { return try SPKIPin(base64: text) } catch {
      throw .badRequest("\(member): \(error)")
    }
  }

  /// A pin that must be there.
  func requiredPin() throws(APIError) -> SPKIPin {
    guard let pin = try pin("pin") else { throw .missing("pin") }
    return pin
  }

  /// A reason in the caller's words.
  func reason(_ member: String) throws(APIError) -> String? {
    guard let text = try string(member) else { return nil }
    guard text.unicodeScalars.count <= APIRequest.longestReason else {
      throw .badRequest(
        "\(member) is longer than \(APIRequest.longestReason) characters")
    }
    return text
  }

  private func wrong(
    _ member: String, _ value: JSONValue, _ expected: String
  ) -> APIError {
    .badRequest("\(member) is \(value.kind)", hint: "\(expected) is expected")
  }
}

extension APIError {
  /// A member that must be there and is not.
  static func missing(_ member: String) -> APIError {
    .badRequest("\(member) is missing")
  }
}

extension JSONValue {
  /// What the value is, for messages.
  fileprivate var kind: String {
    switch self {
    case .null: "null"
    case .bool: "a truth value"
    case .number: "a number"
    case .string: "a string"
    case .array: "a list"
    case .object: "an object"
    }
  }
}

extension BodyReader {
  /// How many patterns one endpoint may have.
  private static let mostPatterns = 64

  /// Within how many milliseconds a changed key is to be published.
  func interval() throws(APIError) -> Int64? {
    try duration("interval", in: 1000...86_400_000)
  }

  /// The endpoint that the body describes.
  func endpoint() throws(APIError) -> WatchedEndpoint {
    guard let text = try string("fqdn") else { throw .missing("fqdn") }
    let fqdn: HostName
    do throws(HostNameError) { fqdn = try HostName(text) } catch {
      throw APIError(400, describing: "fqdn: \(error)")
    }
    var address: IPAddress?
    if let text = try string("address") {
      guard case .address(let value)? = try? HostName(text) else {
        throw .badRequest(
          "address: \"\(text)\" is no IP address", hint: "leave it out to resolve the name")
      }
      address = value
    }
    let port = try integer("port", in: 1...65_535) ?? 443
    return WatchedEndpoint(
      fqdn: fqdn, port: UInt16(clamping: port), address: address, patterns: try patterns(),
      interval: try interval(), approval: try choice("approval", ApprovalMode.self))
  }

  private func patterns() throws(APIError) -> [HostPattern]? {
    guard let texts = try strings("patterns") else { return nil }
    guard (1...Self.mostPatterns).contains(texts.count) else {
      throw .badRequest("patterns has \(texts.count) elements", hint: "1 to \(Self.mostPatterns)")
    }
    var patterns: [HostPattern] = []
    for text in texts {
      let pattern: HostPattern
      do throws(HostNameError) { pattern = try HostPattern(text) } catch {
        throw APIError(400, describing: "patterns: \(error)")
      }
      guard !patterns.contains(pattern) else {
        throw .badRequest("patterns: \(pattern) stands twice")
      }
      patterns.append(pattern)
    }
    return patterns
  }
}
