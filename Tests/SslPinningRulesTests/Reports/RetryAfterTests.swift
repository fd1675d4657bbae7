import SslPinningRules
import Testing

@Suite("When a collector wants to be asked again")
struct RetryAfterTests {
  /// Sun, 06 Nov 1994 08:48:37 GMT, one minute before the example of RFC 9110.
  private static let now: Int64 = 784_111_717

  @Test(
    "seconds, or a date in any of its three forms; held between a second and a day",
    arguments: [
      ("120", 120), ("0", 1), ("1", 1), ("86400", 86_400), ("86401", 86_400),
      ("99999999999999999999999999", 86_400), (" 7 ", 7), ("007", 7),
      ("Sun, 06 Nov 1994 08:49:37 GMT", 60),
      ("Sunday, 06-Nov-94 08:49:37 GMT", 60),
      ("Sun Nov  6 08:49:37 1994", 60),
      ("Sun, 06 Nov 1994 08:00:00 GMT", 1),
      ("Sunday, 06-Nov-45 08:49:37 GMT", 1),
      ("Sunday, 06-Nov-44 08:49:37 GMT", 86_400),
      ("Fri, 31 Dec 9999 23:59:59 GMT", 86_400),
    ] as [(String, Int64)])
  func read(text: String, seconds: Int64) {
    #expect(RetryAfter.seconds(text, at: Self.now) == seconds)
  }

  @Test(
    "anything else is no answer",
    arguments: [
      "", " ", "-1", "+1", "1.5", "1e3", "12 s", "soon", "Sun, 06 Nov 1994 08:49:37",
      "Sun, 06 Nov 1994 08:49:37 PST", "Sun, 31 Feb 1994 08:49:37 GMT",
      "Sun, 06 Foo 1994 08:49:37 GMT", "1994-11-06T08:49:37Z", "Sun, 06 Nov 1994 25:49:37 GMT",
    ])
  func refused(text: String) {
    #expect(RetryAfter.seconds(text, at: Self.now) == nil)
  }

  @Test("waits grow from a minute to six hours, at random below a bound that doubles")
  func delays() {
    let bounds = (1...12).map { failures in
      [0, 0.5, 0.999_999_999].map {
        ReportRules.delay(afterFailures: failures, random: $0)
      }
    }
    #expect(bounds.map { $0[0] } == [Int64](repeating: 60, count: 12))
    #expect(
      bounds.map { $0[2] }
        == [119, 239, 479, 959, 1919, 3839, 7679, 15_359, 21_599, 21_599, 21_599, 21_599])
    #expect(bounds[0][1] == 90)
    for failures in [Int.min, 0, Int.max] {
      let delay = ReportRules.delay(afterFailures: failures, random: 5)
      #expect(ReportRules.backOff.contains(delay))
    }
  }
}
