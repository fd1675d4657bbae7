import SslPinningRules
import Testing

@testable import SslPinningPlatform

@Suite("The client's own sessions, by host")
struct RouteTableTests {
  private final class Route {}

  private func route(
    _ table: inout RouteTable<Route>, _ host: String, isListed: Bool = true,
    at generation: UInt64 = 1
  ) throws -> Route {
    table.route(to: try HostName(host), isListed: isListed, generation: generation) { Route() }
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

  @Test("are others once the pins change: nothing else closes the connections of one")
  func changed() throws {
    var table = RouteTable<Route>()
    weak var listed: Route?
    weak var unlisted: Route?
    listed = try route(&table, "a.example")
    unlisted = try route(&table, "b.example", isListed: false)
    #expect(listed != nil && unlisted != nil)
    let new = try route(&table, "a.example", at: 2)
    #expect(listed == nil && unlisted == nil)
    let other = try route(&table, "b.example", isListed: false, at: 2)
    #expect(try route(&table, "a.example", at: 2) === new)
    #expect(try route(&table, "b.example", isListed: false, at: 2) === other)
  }

  @Test("are dropped one by one after a request that nobody judged")
  func givenUp() throws {
    var table = RouteTable<Route>()
    let (a, b) = (try route(&table, "a.example"), try route(&table, "b.example"))
    let other = try route(&table, "c.example", isListed: false)
    table.drop { $0 === a }
    #expect(try route(&table, "a.example") !== a)
    #expect(try route(&table, "b.example") === b)
    #expect(try route(&table, "c.example", isListed: false) === other)
    table.drop { $0 === other }
    #expect(try route(&table, "b.example") === b)
    #expect(try route(&table, "c.example", isListed: false) !== other)
  }
}
