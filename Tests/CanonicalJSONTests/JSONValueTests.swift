import TestSupport
import Testing

@testable import CanonicalJSON

@Suite("Values")
struct JSONValueTests {
  private let composed = "\u{E9}"
  private let decomposed = "e\u{301}"

  @Test("keeps unknown members, and their order")
  func membersInOrder() throws {
    let document = #"{"z":1,"known":{"x":[true,null]},"a":"\u00e9"}"#
    let object = try #require(try parsed(document).objectValue)
    #expect(object.keys == ["z", "known", "a"])
    #expect(object.map(\.key) == object.members.map(\.key))
    #expect(object["known"]?.objectValue?["x"]?.arrayValue == [.bool(true), .null])
    #expect(object["a"]?.stringValue == composed)
    #expect(object["nowhere"] == nil)
  }

  @Test("a view shows the same as a value, wherever it stands")
  func views() throws {
    let document =
      #"{"z":[{"n":{"a":1},"\u0061":[-0.5,null]},{},[]],"a":"\n","":7,"ab":"","\u00e9":true}"#
    try compare(JSONView(parsing: [UInt8](document.utf8)), try parsed(document))
  }

  private func compare(_ view: JSONView, _ value: JSONValue) throws {
    #expect(view.value == value)
    #expect(view.canonicalBytes == value.canonicalBytes)
    #expect(view.stringValue == value.stringValue)
    #expect(view.doubleValue == value.doubleValue)
    #expect(view.isObject == (value.objectValue != nil))
    #expect(view.arrayValue?.count == value.arrayValue?.count)
    for (view, value) in zip(view.arrayValue ?? [], value.arrayValue ?? []) {
      try compare(view, value)
    }
    for (name, value) in value.objectValue?.members ?? [] {
      try compare(try #require(view[name]), value)
    }
    for name in ["none", "e\u{301}", "b"] { #expect(view[name] == nil) }
  }

  @Test("tells what it is, and nothing else")
  func accessors() throws {
    let values: [JSONValue] = [
      .null, .bool(true), .number(7), .string("7"), .array([]), .object(JSONObject()),
    ]
    #expect(values.map(\.boolValue) == [nil, true, nil, nil, nil, nil])
    #expect(values.map(\.doubleValue) == [nil, nil, 7, nil, nil, nil])
    #expect(values.map(\.integerValue) == [nil, nil, 7, nil, nil, nil])
    #expect(values.map(\.stringValue) == [nil, nil, nil, "7", nil, nil])
    #expect(values.map(\.arrayValue) == [nil, nil, nil, nil, [], nil])
    #expect(values.map(\.objectValue) == [nil, nil, nil, nil, nil, JSONObject()])
    #expect(Set(values).count == values.count)
  }

  @Test(
    "gives integers only where a double is exact",
    arguments: [
      ("0", 0), ("-0", 0), ("7.0", 7), ("1e3", 1000), ("0.5", nil), ("-1", -1),
      ("9007199254740991", 9_007_199_254_740_991), ("-9007199254740991", -9_007_199_254_740_991),
      ("9007199254740992", nil), ("9007199254740993", nil), ("-9007199254740992", nil),
      ("1e300", nil), ("9223372036854775808", nil), ("1795000000", 1_795_000_000),
      ("123456789012345", 123_456_789_012_345), ("-999999999999999", -999_999_999_999_999),
    ] as [(String, Int64?)])
  func integers(text: String, integer: Int64?) throws {
    #expect(try parsed(text).integerValue == integer)
    if let integer {
      #expect(try parsed(text) == .number(try #require(JSONNumber(exactly: integer))))
    }
  }

  @Test("a number is finite, and never minus zero")
  func numbers() {
    #expect(JSONNumber(.nan) == nil)
    #expect(JSONNumber(.infinity) == nil)
    #expect(JSONNumber(-.infinity) == nil)
    #expect(JSONNumber(-0.0)?.value.sign == .plus)
    #expect(JSONNumber(.greatestFiniteMagnitude)?.value == .greatestFiniteMagnitude)
    #expect(JSONNumber(exactly: 1 << 53) == nil)
    #expect(JSONNumber(exactly: .min) == nil)
    #expect(JSONNumber(exactly: JSONNumber.greatestInteger)?.integer == 9_007_199_254_740_991)
  }

  @Test("strings and names are equal only when their bytes are")
  func bytesDecide() throws {
    #expect(composed == decomposed, "the hazard: Swift's own equality takes them for one")
    #expect(JSONValue.string(composed) != .string(decomposed))
    #expect(JSONValue.string("K") != .string("\u{212A}"))
    #expect(Set([JSONValue.string(composed), .string(decomposed)]).count == 2)

    var object = try #require(
      try parsed("{\"\(composed)\":1,\"\(decomposed)\":2,\"K\":3,\"\u{212A}\":4}").objectValue)
    #expect(object.count == 4)
    #expect(object[composed] == .number(1))
    #expect(object[decomposed] == .number(2))
    #expect(object["K"] == .number(3))
    #expect(object["\u{212A}"] == .number(4))
    object["\u{212A}"] = nil
    #expect(object["K"] == .number(3))
    #expect(object["\u{212A}"] == nil)
  }

  @Test("two values are equal exactly when their canonical bytes are")
  func equality() throws {
    let texts = [
      "{}", "[]", "null", "false", "true", "0", "1", #""""#, #""0""#, "[0]", "[[0]]", "[0,0]",
      #"{"a":1,"b":2}"#, #"{"b":2,"a":1}"#, #"{"a":2,"b":1}"#, #"{"a":1}"#, #"{"a":1,"c":2}"#,
      #"{"a":null}"#, #"{"a":{"b":{}}}"#, #"{"\u0061":1.0, "b":20e-1}"#, "-0", "1e0",
    ]
    for left in texts {
      for right in texts {
        let (one, other) = (try parsed(left), try parsed(right))
        let isSame = one.canonicalBytes == other.canonicalBytes
        #expect((one == other) == isSame, "\(left) and \(right)")
        if isSame { #expect(one.hashValue == other.hashValue, "\(left) and \(right)") }
      }
    }
    #expect(Set(try texts.map(parsed)).count == texts.count - 4)
  }

  @Test(
    "members are set, replaced in place, removed and found, few or many", arguments: [3, 15, 40])
  func editing(count: Int) throws {
    var object = JSONObject()
    for index in 0..<count { object["k\(index)"] = .number(0) }
    for index in 0..<count { object["k\(index)"] = .string("\(index)") }
    #expect(object.keys == (0..<count).map { "k\($0)" })
    object["k1"] = nil
    object["absent"] = nil
    #expect(object.count == count - 1)
    #expect(object["k1"] == nil)
    #expect(object["k\(count - 1)"] == .string("\(count - 1)"))
    object["k1"] = .null
    #expect(object.keys.last == "k1")
    let rebuilt = JSONObject(object.members.reversed().map { ($0.key, $0.value) })
    #expect(rebuilt == object)
    #expect(rebuilt.hashValue == object.hashValue)
    #expect(rebuilt.keys != object.keys)
  }

  @Test("of two members with one name the later value takes the earlier's place")
  func laterMemberWins() {
    let object = JSONObject([("a", .number(1)), ("b", .number(2)), ("a", .number(3))])
    #expect(object.keys == ["a", "b"])
    #expect(object["a"] == .number(3))
    #expect(JSONObject(["a": .null, "a": .bool(true)])["a"] == .bool(true))
    #expect(JSONObject([:]).isEmpty)
  }

  @Test("a value built by hand is written as one that was read")
  func builtByHand() throws {
    let entry = JSONObject([
      "expire": .number(1_795_000_000), "domainName": .string("*.\"é\"\n"),
    ])
    let value = JSONValue.object(
      JSONObject([
        "keys": .array([.object(entry)]), "\u{E000}": .bool(false), "😀": .null,
      ]))
    let expected =
      "{\"keys\":[{\"domainName\":\"*.\\\"é\\\"\\n\",\"expire\":1795000000}],\"😀\":null,\"\u{E000}\":false}"
    #expect(value.canonicalBytes == Array(expected.utf8))
    #expect(try JSONValue(parsing: value.canonicalBytes) == value)
  }

  private func parsed(_ text: String) throws -> JSONValue {
    try JSONValue(parsing: Array(text.utf8))
  }
}
