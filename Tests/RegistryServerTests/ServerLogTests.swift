import CanonicalJSON
import PinningPlatform
import RegistryServer
import Testing

@Suite("The log") struct ServerLogTests {
  @Test("is one JSON object a line, whatever a field contains")
  func lines() throws {
    let written = Locked<[[UInt8]]>([])
    let log = ServerLog(
      level: .info, now: { 1_765_746_131 }, sink: { line in written.withLock { $0.append(line) } })
    log.event(.warn, "look_refused", ["reason": "\"\n{}\u{1b}[31m"])
    log.event(.debug, "unseen")
    let lines = written.withLock { $0 }
    #expect(lines.count == 1)
    let line = try #require(lines.first)
    #expect(line.filter { $0 == 0x0a }.count == 1 && line.last == 0x0a && !line.contains(0x1b))
    let object = try #require(try JSONValue(parsing: line).objectValue)
    #expect(object["level"]?.stringValue == "warn")
    #expect(object["event"]?.stringValue == "look_refused")
    #expect(object["time"]?.stringValue == "2025-12-14T21:02:11Z")
    #expect(object["reason"]?.stringValue == "\"\n{}\u{1b}[31m")
  }
}
