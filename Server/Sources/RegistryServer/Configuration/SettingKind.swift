import CanonicalJSON
import HTTPServing
import RegistryCore

/// A kind of value: how it is read, and how it would be written.
struct SettingKind<Value> {
  /// What stands for a value in the help.
  let placeholder: String
  /// Whether it is a list.
  var isList = false
  /// Reads a key of a section; `nil` if it is not given.
  let read: (ConfigurationSection, String) throws(ConfigurationError) -> Value?
  /// A value as it would be written.
  let show: (Value) -> JSONValue
  /// The same without what must not be seen; `nil` if all of it may.
  var mask: ((Value) -> JSONValue)?

  func value(of value: Value, isMasked: Bool) -> JSONValue {
    isMasked ? (mask ?? show)(value) : show(value)
  }
}

extension SettingKind where Value == Bool {
  /// `true` or `false`.
  static var boolean: SettingKind {
    SettingKind(
      placeholder: "BOOL",
      read: { (section, key) throws(ConfigurationError) in try section.boolean(key) },
      show: JSONValue.bool)
  }
}

extension SettingKind where Value == Int {
  /// A whole number in a range.
  static func integer(_ range: ClosedRange<Int64>) -> SettingKind {
    SettingKind(
      placeholder: "N",
      read: { (section, key) throws(ConfigurationError) in
        try section.integer(key, in: range).map { Int($0) }
      },
      show: { .integer(Int64($0)) })
  }
}

extension SettingKind where Value == Int64 {
  /// A duration in milliseconds, in a range.
  static func duration(_ range: ClosedRange<Int64>) -> SettingKind {
    SettingKind(
      placeholder: "TIME",
      read: { (section, key) throws(ConfigurationError) in try section.duration(key, in: range) },
      show: JSONValue.duration)
  }
}

extension SettingKind where Value: RawRepresentable & CaseIterable, Value.RawValue == String {
  /// One of the named values of a type.
  static func choice(_ name: String) -> SettingKind {
    SettingKind(
      placeholder: name.uppercased(),
      read: { (section, key) throws(ConfigurationError) in
        try section.choice(key, of: Value.self, called: name)
      },
      show: { .string($0.rawValue) })
  }
}

extension SettingKind where Value == String {
  /// A text; an empty one is as good as none.
  static func text(_ placeholder: String) -> SettingKind {
    SettingKind(
      placeholder: placeholder,
      read: { (section, key) throws(ConfigurationError) in try section.nonEmpty(key) },
      show: JSONValue.string)
  }

  /// A directory that cannot be left empty.
  static var directory: SettingKind {
    SettingKind(
      placeholder: "DIR",
      read: { (section, key) throws(ConfigurationError) in try section.string(key) },
      show: JSONValue.string)
  }

  /// The name of a data source, which may hold a password.
  static var dataSource: SettingKind {
    SettingKind(
      placeholder: "DSN",
      read: { (section, key) throws(ConfigurationError) in
        try section.optionalString(key, orPlain: true)
      },
      show: JSONValue.string, mask: { .string("\(MaskedDSN($0))") })
  }
}

extension SettingKind where Value == [String] {
  /// A list of texts.
  static var texts: SettingKind {
    SettingKind(
      placeholder: "[]", isList: true,
      read: { (section, key) throws(ConfigurationError) in try section.strings(key) },
      show: { .array($0.map(JSONValue.string)) })
  }
}

extension SettingKind where Value == [String] {
  /// A list of ids of tokens. What is none would end no token: a token itself, whose bearer would go on and which would be
  /// shown to whoever reads the log, least of all.
  static var tokenIDs: SettingKind {
    SettingKind(
      placeholder: "[]", isList: true,
      read: { (section, key) throws(ConfigurationError) in
        let texts = try section.strings(key)
        for (index, text) in (texts ?? []).enumerated() where !TokenID.isOne(text) {
          let isToken = text.contains { $0 == "." }
          throw section.invalid(
            "\(key)[\(index)]",
            isToken ? "this is no id, but a token itself" : "this is no id of a token",
            hint: isToken
              ? "its id is \(TokenID.of(text))"
              : "12 characters, as ssl-pinning token --json and ssl-pinning admin tokens print them"
          )
        }
        return texts
      },
      show: { .array($0.map(JSONValue.string)) })
  }
}

extension SettingKind where Value == Secret {
  /// A text that is not shown. A bare number is one, too.
  static var secret: SettingKind {
    SettingKind(
      placeholder: "TEXT",
      read: { (section, key) throws(ConfigurationError) in
        try section.optionalString(key, orPlain: true).flatMap { $0.isEmpty ? nil : Secret($0) }
      },
      show: { .string($0.revealed) }, mask: { .string("\($0)") })
  }
}

extension SettingKind where Value == ListenAddress {
  /// An address and a port.
  static var address: SettingKind {
    SettingKind(
      placeholder: "ADDR",
      read: { (section, key) throws(ConfigurationError) in
        guard let text = try section.string(key) else { return nil }
        guard let address = ListenAddress(text) else {
          throw section.invalid(
            key, "\"\(text)\" is no address and port", hint: "write 127.0.0.1:7500 or [::1]:7500")
        }
        return address
      },
      show: { .string("\($0)") })
  }
}

extension SettingKind where Value == [AddressNetwork] {
  /// A list of addresses and networks.
  static var networks: SettingKind {
    SettingKind(
      placeholder: "[]", isList: true, read: read,
      show: { .array($0.map { .string("\($0)") }) })
  }

  private static func read(
    _ section: ConfigurationSection, _ key: String
  ) throws(ConfigurationError) -> [AddressNetwork]? {
    var networks: [AddressNetwork] = []
    for text in try section.strings(key) ?? [] {
      do throws(AddressNetwork.Fault) { networks.append(try AddressNetwork(text)) } catch {
        switch error {
        case .unreadable:
          throw section.invalid(
            key, "\"\(text)\" is no address and no network",
            hint: "write 192.0.2.7, 10.0.0.0/8 or 2001:db8::/32")
        case .insideOf(let network):
          throw section.invalid(
            key, "\"\(text)\" is an address within a network", hint: "the network is \(network)")
        case .everything:
          throw section.invalid(
            key, "\"\(text)\" is every address, or nearly: any caller could name another one",
            hint: "name the proxies alone")
        }
      }
    }
    return networks
  }
}

extension SettingKind where Value == NamedIssuers {
  /// A list of CAs.
  static var issuers: SettingKind {
    SettingKind(
      placeholder: "[]", isList: true,
      read: { (section, key) throws(ConfigurationError) in try NamedIssuers(section, key) },
      show: { .array($0.entries.map(JSONValue.string)) })
  }
}

extension SettingKind where Value == [VantagePoint] {
  /// A list of vantage points.
  static var vantagePoints: SettingKind {
    SettingKind(
      placeholder: "[]", isList: true,
      read: { (section, _) throws(ConfigurationError) in try VantagePoint.read(section) },
      show: { .array($0.map(\.entry)) })
  }
}

extension JSONValue {
  static func duration(_ milliseconds: Int64) -> JSONValue {
    .string(GoDuration.text(milliseconds: milliseconds))
  }
}

/// Durations as Go's `time.ParseDuration` writes them: `60s`, `1m`, `1h30m`, `1.5s`, `500ms`.
///
/// The field's configurations carry them, so they are read the same way; the days (`7d`) are ours.
/// A bare number is refused (except 0): nobody can tell seconds from nanoseconds in it.
public enum GoDuration {
  /// The duration in milliseconds, or `nil` where the text is none, is negative, or is longer than
  /// 100 years. Parts below a millisecond are dropped.
  public static func milliseconds(_ text: String) -> Int64? {
    if text == "0" { return 0 }
    var rest = text.utf8[...]
    guard !rest.isEmpty else { return nil }
    var total = 0.0
    while !rest.isEmpty {
      guard let value = number(&rest), let factor = unit(&rest) else { return nil }
      total += value * factor
    }
    let limit = 100 * 366 * 86_400_000.0
    return total <= limit ? Int64(total) : nil
  }

  /// The shortest text for a duration in milliseconds, for messages: `1h30m`, `2.5s`.
  public static func text(milliseconds: Int64) -> String {
    var rest = milliseconds
    var out = ""
    for (name, size) in [("h", 3_600_000), ("m", 60_000)] as [(String, Int64)] where rest >= size {
      out += "\(rest / size)\(name)"
      rest %= size
    }
    if rest > 0 || out.isEmpty {
      out += rest % 1000 == 0 ? "\(rest / 1000)s" : "\(rest)ms"
    }
    return out
  }

  private static func number(_ rest: inout Substring.UTF8View) -> Double? {
    let text = rest.prefix { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) || $0 == 0x2e }
    rest = rest.dropFirst(text.count)
    guard text.contains(where: { $0 != 0x2e }) else { return nil }
    return Double("0" + String(decoding: text, as: UTF8.self))
      ?? Double(String(decoding: text, as: UTF8.self) + "0")
  }

  private static func unit(_ rest: inout Substring.UTF8View) -> Double? {
    for (name, factor) in units where rest.starts(with: name.utf8) {
      rest = rest.dropFirst(name.utf8.count)
      return factor
    }
    return nil
  }

  /// In milliseconds; a unit stands before the units that are its beginning.
  private static let units: [(String, Double)] = [
    ("ns", 1e-6), ("us", 1e-3), ("µs", 1e-3), ("μs", 1e-3), ("ms", 1), ("s", 1000),
    ("m", 60_000), ("h", 3_600_000), ("d", 86_400_000),
  ]
}
