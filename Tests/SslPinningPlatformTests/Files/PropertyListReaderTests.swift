import Foundation
import SslPinningPlatform
import SslPinningRules
import TestSupport
import Testing

@Suite("Property lists")
struct PropertyListReaderTests {
  /// A file written by hand around these elements.
  private static func xml(_ body: String) -> [UInt8] {
    Array(
      """
      <?xml version="1.0" encoding="UTF-8"?>
      <!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
      <plist version="1.0">\(body)</plist>
      """.utf8)
  }

  /// The same property list as a binary file.
  private static func binary(_ xml: [UInt8]) throws -> [UInt8] {
    let value = try PropertyListSerialization.propertyList(
      from: Data(xml), options: [], format: nil)
    let data = try PropertyListSerialization.data(
      fromPropertyList: value, format: .binary, options: 0)
    #expect(data.starts(with: "bplist00".utf8))
    return [UInt8](data)
  }

  @Test(
    "keep their types, XML and binary",
    arguments: [
      ("<true/>", .boolean(true)), ("<false/>", .boolean(false)),
      ("<integer>1</integer>", .integer(1)), ("<integer>0</integer>", .integer(0)),
      ("<integer>-5</integer>", .integer(-5)),
      ("<integer>9223372036854775807</integer>", .integer(.max)),
      ("<integer>18446744073709551615</integer>", .real(18_446_744_073_709_551_616)),
      ("<real>1</real>", .real(1)), ("<real>1.5</real>", .real(1.5)),
      ("<string>true</string>", .string("true")), ("<string>1</string>", .string("1")),
      ("<string></string>", .string("")), ("<data>AAEC</data>", .data([0, 1, 2])),
      ("<date>1970-01-01T00:01:00Z</date>", .date(60)),
      ("<array/>", .array([])), ("<dict/>", .dictionary([:])),
      (
        "<array><true/><integer>1</integer><string>a</string></array>",
        .array([.boolean(true), .integer(1), .string("a")])
      ),
      (
        "<dict><key>k</key><dict><key>K</key><false/></dict></dict>",
        .dictionary(["k": .dictionary(["K": .boolean(false)])])
      ),
    ] as [(String, PropertyListValue)])
  func types(body: String, value: PropertyListValue) throws {
    // A lone number or text is no root that every reader takes: they all stand in an array.
    let xml = Self.xml("<array>\(body)</array>")
    #expect(try PropertyListReader.value(of: xml) == .array([value]))
    #expect(try PropertyListReader.value(of: Self.binary(xml)) == .array([value]))
  }

  @Test(
    "are refused where they are broken",
    arguments: [
      "", "\0", "<plist>", "bplist00", "<plist version=\"1.0\"><dict><key>a</key></dict></plist>",
      "<plist version=\"1.0\"><true/>",
      "<!DOCTYPE plist [<!ENTITY a \"b\">]><plist version=\"1.0\"><string>&a;</string></plist>",
    ])
  func broken(text: String) {
    #expect(throws: PropertyListError.self) {
      try PropertyListReader.value(of: Array(text.utf8))
    }
  }

  @Test(
    "are refused in the old format, which takes nearly any text", arguments: ["hello", "{a = b;}"])
  func oldStyle(text: String) {
    #expect(throws: PropertyListError.oldStyle) {
      try PropertyListReader.value(of: Array(text.utf8))
    }
  }

  @Test("are bounded in depth")
  func depth() throws {
    func nested(_ levels: Int) -> [UInt8] {
      Self.xml(
        String(repeating: "<array>", count: levels) + String(repeating: "</array>", count: levels))
    }
    let limit = PropertyListReader.maximumDepth
    _ = try PropertyListReader.value(of: nested(limit))
    #expect(throws: PropertyListError.tooDeep(limit: limit)) {
      try PropertyListReader.value(of: nested(limit + 1))
    }
  }

  @Test("are read from files, up to the limit")
  func files() throws {
    let directory = try TemporaryDirectory()
    let limit = PropertyListReader.maximumBytes
    var bytes = Self.xml("<true/>")
    let file = try directory.write(bytes, to: "a.plist")
    #expect(try PropertyListReader.read(file) == .boolean(true))
    bytes += [UInt8](repeating: UInt8(ascii: "\n"), count: limit - bytes.count)
    try directory.write(bytes, to: "a.plist")
    #expect(try PropertyListReader.read(file) == .boolean(true))
    try directory.write(bytes + [UInt8(ascii: "\n")], to: "a.plist")
    #expect(throws: PropertyListError.tooLarge(limit: limit)) {
      try PropertyListReader.read(file)
    }
  }

  @Test(
    "are not read from elsewhere", arguments: ["file:///none/such", "https://localhost/a.plist"])
  func elsewhere(url: String) throws {
    let url = try #require(URL(string: url))
    let error = #expect(throws: PropertyListError.self) { try PropertyListReader.read(url) }
    guard case .unreadableFile = error else {
      Issue.record("\(String(describing: error))")
      return
    }
  }

  @Test("that Foundation has read already keep their types")
  func dictionary() throws {
    let value = try PropertyListReader.value(of: ["a": true, "b": NSNumber(value: 1), "c": ["x"]])
    #expect(
      value
        == .dictionary(["a": .boolean(true), "b": .integer(1), "c": .array([.string("x")])]))
    #expect(throws: PropertyListError.self) {
      try PropertyListReader.value(of: ["a": URL(filePath: "/")])
    }
  }
}
