import Testing

/// The web console in a real browser, one test after the other: they share the browser.
@Suite(.serialized)
struct ConsoleTests {}
