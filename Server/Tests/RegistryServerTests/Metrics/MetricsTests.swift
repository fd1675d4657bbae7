import SslPinningRules
import Testing

@testable import RegistryServer

@Suite("Metrics are written as Prometheus reads them")
struct MetricsTests {
  @Test("help, type and series stand together, ordered by labels, escaped")
  func page() {
    let gauge = MetricFamily("a_gauge", help: "back\\slash \"quoted\"\nline", labels: ["b", "a"]) {
      Gauge()
    }
    gauge.cell("z", "2").set(0.25)
    gauge.cell("a\"b\\c\nd", "1").set(-3)
    gauge.cell("ä", "").set(.infinity)
    var writer = ExpositionWriter(at: 0)
    gauge.write(to: &writer)
    #expect(
      String(decoding: writer.bytes, as: UTF8.self) == #"""
        # HELP a_gauge back\\slash "quoted"\nline
        # TYPE a_gauge gauge
        a_gauge{b="a\"b\\c\nd",a="1"} -3
        a_gauge{b="z",a="2"} 0.25
        a_gauge{b="ä",a=""} +Inf

        """#)
  }

  @Test(
    "numbers read back as what they were",
    arguments: [
      (0.0, "0"), (-0.0, "0"), (1, "1"), (-17, "-17"), (1_780_000_000, "1780000000"),
      (0.005, "0.005"),
      (9_007_199_254_740_991, "9007199254740991"), (1e-9, "1e-09"), (1e300, "1e+300"),
      (.nan, "NaN"), (.infinity, "+Inf"), (-.infinity, "-Inf"),
    ])
  func numbers(_ value: Double, _ text: String) {
    #expect(ExpositionWriter.text(of: value) == text)
    var writer = ExpositionWriter(at: 0)
    writer.sample(SeriesName(metric: Array("x".utf8), labels: []), value)
    #expect(String(decoding: writer.bytes, as: UTF8.self) == "x \(text)\n")
  }

  @Test("a histogram counts what is within each bound, and its count is its last range")
  func histogram() throws {
    let family = MetricFamily("h", help: "h", labels: ["l"]) {
      Histogram(bounds: HistogramBounds(milliseconds: [5, 100]))
    }
    for milliseconds in [5, 6, 100, 101, -4] {
      family.cell("x").observe(.milliseconds(milliseconds))
    }
    family.cell("x").observe(.seconds(Int64.max))
    var writer = ExpositionWriter(at: 0)
    family.write(to: &writer)
    let page = try PrometheusPage(writer.bytes)
    #expect(page.samples["h_bucket{l=\"x\",le=\"0.005\"}"] == 2)
    #expect(page.samples["h_bucket{l=\"x\",le=\"0.1\"}"] == 4)
    #expect(page.samples["h_bucket{l=\"x\",le=\"+Inf\"}"] == 6)
    #expect(page.samples["h_count{l=\"x\"}"] == 6)
    let sum = try #require(page.samples["h_sum{l=\"x\"}"])
    #expect(sum > 0.212)
  }

  @Test("beyond its limit a metric takes no more series, and counts what it refused")
  func limit() throws {
    let family = MetricFamily("g", help: "g", labels: ["l"], limit: 2) { Gauge() }
    for value in ["a", "b", "c", "d", "a"] { family.cell(value).set(1) }
    var writer = ExpositionWriter(at: 0)
    family.write(to: &writer)
    #expect(try PrometheusPage(writer.bytes).order == ["g{l=\"a\"}", "g{l=\"b\"}"])
    #expect(family.refused.value == 2)
    #expect(family.hasSeries(family.cell("a")))
    #expect(!family.hasSeries(family.cell("e")))
    #expect(!family.hasSeries(nil))
    family.remove("a")
    family.cell("c").set(1)
    writer = ExpositionWriter(at: 0)
    family.write(to: &writer)
    #expect(try PrometheusPage(writer.bytes).order == ["g{l=\"b\"}", "g{l=\"c\"}"])
  }

  @Test("counts of many threads are all counted")
  func threads() async throws {
    let family = MetricFamily("c", help: "c", labels: ["l"]) { Counter() }
    await withTaskGroup(of: Void.self) { group in
      for _ in 0..<8 {
        group.addTask { for step in 0..<1000 { family.cell("\(step % 3)").increment() } }
      }
    }
    #expect(["0", "1", "2"].map { family.cell($0).value }.reduce(0, +) == 8000)
  }
}
