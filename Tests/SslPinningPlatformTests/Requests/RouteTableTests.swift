import SslPinningRules
import Testing

@testable import SslPinningPlatform

@Suite("The client's own sessions, by host")
struct RouteTableTests {
  private final class Route {}

  private func route(
    _ table: inout RouteTable<Route>, _ host: String, isListed: Bool = true
  ) throws -> Route {
    table.route(to: try HostName(host), isListed: isListed) { Route() }
  }

  @Test("are one for each listed host: no connection of one carries another's requests")
  func listed() throws {
    var table = RouteTable<Route>()
    let (a, b) = (try route(&table, "a.example"), try route(&table, "b.example"))
    #expect(a !== b)
    #expect(try route(&table, "A.example.") === a)
    #expect(try route(&table, "b.example") === b)
  }

  @Test("are one for all hosts without an entry, which no listed host is ever on")
  func unlisted() throws {
    var table = RouteTable<Route>()
    let other = try route(&table, "a.example", isListed: false)
    #expect(try route(&table, "b.example", isListed: false) === other)
    // Listed by now, and gone again.
    let listed = try route(&table, "a.example")
    #expect(listed !== other)
    #expect(try route(&table, "a.example", isListed: false) === other)
    #expect(try route(&table, "a.example") === listed)
  }

  @Test("are let go of in the order of their last use, if there are too many")
  func bounded() throws {
    var table = RouteTable<Route>()
    let kept = try route(&table, "a.example")
    weak var dropped: Route?
    dropped = try route(&table, "b.example")
    #expect(dropped != nil)
    for number in 2..<RouteTable<Route>.capacity { _ = try route(&table, "h\(number).example") }
    #expect(try route(&table, "a.example") === kept)
    #expect(dropped != nil)
    _ = try route(&table, "c.example")
    #expect(dropped == nil)
    #expect(try route(&table, "a.example") === kept)
  }
}
