import CanonicalJSON
import RegistryServer
import SslPinningPlatform
import TestSupport
import Testing

@Suite("The log") struct ServerLogTests {
  /// A log and what it has written.
  struct Written {
    private let bytes = Locked<[[UInt8]]>([])
    let log: ServerLog

    init(_ level: LogLevel = .info, _ format: LogFormat = .json, isPretty: Bool = false) {
      let bytes = bytes
      log = ServerLog(
        level: level, format: format, isPretty: isPretty, now: { 1_765_746_131 },
        sink: { line in bytes.withLock { $0.append(line) } })
    }

    var events: [[UInt8]] { bytes.withLock { $0 } }
    var text: String { String(decoding: events.joined(), as: UTF8.self) }
  }

  @Test("is one JSON object a line, whatever a field contains")
  func lines() throws {
    let written = Written()
    written.log.event(.warn, "probe_refused", ["reason": "\"\n{}\u{1b}[31m"])
    written.log.event(.debug, "unseen")
    #expect(written.events.count == 1)
    let line = try #require(written.events.first)
    #expect(line.filter { $0 == 0x0a }.count == 1 && line.last == 0x0a && !line.contains(0x1b))
    let object = try #require(try JSONValue(parsing: line).objectValue)
    #expect(object["level"]?.stringValue == "warn")
    #expect(object["event"]?.stringValue == "probe_refused")
    #expect(object["time"]?.stringValue == "2025-12-14T21:02:11Z")
    #expect(object["reason"]?.stringValue == "\"\n{}\u{1b}[31m")
  }

  /// A value, and how a line of text has it.
  static let values: [(String, String)] = [
    ("www.example.com:443", "www.example.com:443"), ("Grüße", "Grüße"), ("", "\"\""),
    ("two words", "\"two words\""), ("a=b", "\"a=b\""), ("say \"x\"", "\"say \\\"x\\\"\""),
    ("c:\\d", "\"c:\\\\d\""), ("a\nb\r\tc", "\"a\\nb\\r\\tc\""),
    ("x\n2025-12-14T21:02:11Z ERROR forged", "\"x\\n2025-12-14T21:02:11Z ERROR forged\""),
    ("\u{1b}[31m", "\"\\u{1B}[31m\""), ("\u{7f}\u{9b}", "\"\\u{7F}\\u{009B}\""),
    ("a\u{2028}b\u{202e}c", "\"a\\u{2028}b\\u{202E}c\""),
  ]

  @Test("as text is one line an event, whatever a field contains", arguments: values)
  func text(_ value: String, _ shown: String) {
    let written = Written(.info, .text)
    written.log.event(.warn, "probe_refused", ["reason": value, "endpoint": "a.b:443"])
    #expect(
      written.text
        == "2025-12-14T21:02:11Z WARN  probe_refused reason=\(shown) endpoint=a.b:443\n")
  }

  @Test("as text says the level in five letters", arguments: LogLevel.allCases)
  func levels(_ level: LogLevel) {
    let written = Written(.debug, .text)
    written.log.event(level, "event")
    let name = level.rawValue.uppercased()
    #expect(
      written.text
        == "2025-12-14T21:02:11Z \(name)\(name.count == 4 ? " " : "") event\n")
  }

  @Test("for people is JSON with a member a line, in the order of writing")
  func prettyJSON() throws {
    let written = Written(.info, .json, isPretty: true)
    written.log.event(.info, "started", ["z": "1\n2", "a": "\"\u{1b}"])
    #expect(
      written.text == """
        {
          "level": "info",
          "time": "2025-12-14T21:02:11Z",
          "event": "started",
          "z": "1\\n2",
          "a": "\\"\\u001b"
        }

        """)
    let event = try #require(written.events.first)
    #expect(try JSONValue(parsing: event).objectValue?.count == 5)
  }

  @Test("for people is text with a field a line, aligned, and no field breaks out")
  func prettyText() {
    let written = Written(.info, .text, isPretty: true)
    written.log.event(.info, "started", ["address": "127.0.0.1:1", "x": "a b\n  address  forged"])
    #expect(
      written.text == """
        2025-12-14T21:02:11Z INFO  started
          address  127.0.0.1:1
          x        a b\\n  address  forged

        """)
    #expect(written.events.count == 1)
  }

  @Test("can change its level and style while it runs, for all who have it")
  func change() {
    let written = Written(.warn, .json)
    let copy = written.log
    copy.event(.info, "unseen")
    written.log.change(level: .info, format: .text, isPretty: false)
    copy.event(.info, "seen")
    #expect(written.text == "2025-12-14T21:02:11Z INFO  seen\n")
  }

  @Test("tells what is in effect in one event, and no secret")
  func configuration() throws {
    let directory = try TemporaryDirectory()
    try directory.write("keys: [{fqdn: a.b}]\nserver: {key: hush}", to: "config.yaml")
    let effective = try ConfigurationSources(
      directory: directory.path(),
      environment: [
        "SSL_PINNING_STORAGE_DSN": "rediss://u:hush@h", "SSL_PINNING_STORAGE_TYPE": "redis",
      ], flags: [.tlsInterval: "5s"]
    ).effective()
    let written = Written()
    written.log.event(effective)
    #expect(written.events.count == 1 && !written.text.contains("hush"))
    let line = try #require(written.events.first)
    let event = try #require(try JSONValue(parsing: line).objectValue)
    #expect(event["event"]?.stringValue == "configuration")
    #expect(event["file"]?.stringValue == directory.path("config.yaml"))
    #expect(event["keys"]?.stringValue == "endpoints: 1, documents: 1 (line 1)")
    #expect(event["server.key"]?.stringValue == "*** (line 2)")
    #expect(event["storage.dsn"]?.stringValue == "rediss://u:***@h (SSL_PINNING_STORAGE_DSN)")
    #expect(event["tls.dump_interval"]?.stringValue == "5s (--tls-dump-interval)")
    #expect(event["tls.timeout"]?.stringValue == "5s")
  }
}
