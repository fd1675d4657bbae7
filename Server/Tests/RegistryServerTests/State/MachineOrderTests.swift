import Foundation
import SslPinningRules
import Testing

@testable import RegistryCore

/// Two servers of one document on one store, of which everything that is waited for ends in any order, against a
/// reference that knows only what was acknowledged.
///
/// - Nothing acknowledged is lost: what people staged and denied is in the last record, and told once.
/// - Nothing denied returns: once a server acknowledged a denial, every document that it publishes has it.
/// - Numbers never go back at one server, no number has two documents (unless the store goes back while something is
///   written), and what is published was stored first.
/// - In the end both servers publish what is stored.
///
/// `MACHINE_SEQUENCES` says how many sequences are run, and `MACHINE_SEED` which is the first.
@Suite("The document machine, whatever comes in whichever order", .serialized)
struct MachineOrderTests {
  /// What the store and the servers may do besides failing.
  private enum Fate: UInt64 {
    /// Servers are killed, and start again.
    case kills
    /// The store has an older record again, now and then.
    case goesBack
    /// So it has once, while both servers are down.
    case restored
  }

  /// What is known from outside.
  private struct Book {
    var staged: [SPKIPin: String] = [:]
    /// Acknowledged, and no person took it back.
    var denied: Set<SPKIPin> = []
    /// By whom, and how many that take it back are under way.
    var deniedBy: [SPKIPin: Set<Int>] = [:]
    var allowing: [SPKIPin: Int] = [:]
    var last: [Int: RegistryStamp.Version] = [:]
    var documents: [RegistryStamp.Version: [UInt8]] = [:]
    var faults: [String] = []
  }

  private enum Command: Equatable {
    case stage(SPKIPin, why: String)
    case deny(SPKIPin)
    case allow(SPKIPin)
  }

  private final class World {
    let bench = MachineBench()
    let servers: [MachineServer]
    let fate: Fate
    var random: SeededRandom
    var now = MachineBench.begin
    var book = Book()
    /// Commands under way, by their numbers, and the server that was asked.
    var commands: [Int: (server: Int, command: Command)] = [:]
    var count = 0
    /// Denials that overlap with the end of one: either may come last.
    var unsure: Set<Int> = []

    init(_ seed: UInt64) {
      random = SeededRandom(seed)
      fate = Fate(rawValue: seed % 3) ?? .kills
      servers = [
        MachineServer(bench, probes: Int(seed % 2) + 1), MachineServer(bench, probes: 1),
      ]
      servers[1].isFollowing = true
      for (index, server) in servers.enumerated() {
        server.whenPublished = { [unowned self] in note($0, at: index) }
      }
    }

    func chance(_ one: Int, in all: Int) -> Bool { Int.random(in: 0..<all, using: &random) < one }

    func rest() {
      for server in servers { server.rest(at: now) }
      collect()
    }

    /// Servers do what they are about to do, and readers get that.
    func wander() {
      for _ in 0..<Int.random(in: 0...4, using: &random) {
        let server = servers[Int.random(in: 0..<2, using: &random)]
        guard !server.tasks.isEmpty else { continue }
        server.step(Int.random(in: 0..<server.tasks.count, using: &random), at: now)
        collect()
      }
    }

    func note(_ document: SignedCopy, at index: Int) {
      collect()
      guard let number = document.number else {
        return book.faults.append("a document without a number")
      }
      if let last = book.last[index], number < last {
        book.faults.append("\(number) after \(last)")
      }
      book.last[index] = number
      // A write under way may name the version that an older record has again.
      if fate != .goesBack, let known = book.documents[number], known != document.bytes {
        book.faults.append("two documents of the number \(number)")
      }
      book.documents[number] = document.bytes
      if !bench.storedDocuments.contains(document.bytes) {
        book.faults.append("published before it was stored")
      }
      let pins = bench.pins(of: document.bytes)
      for pin in book.denied where book.deniedBy[pin]?.contains(index) == true {
        if !pins.denied.contains(pin.base64) { book.faults.append("a denial is gone") }
        if pins.listed.contains(pin.base64), !pins.listed.isSubset(of: pins.denied) {
          book.faults.append("a denied key is listed")
        }
      }
    }

    /// Takes down what was acknowledged.
    func collect() {
      for (number, asked) in commands {
        guard let answer = servers[asked.server].answers[number] else { continue }
        commands[number] = nil
        if case .allow(let pin) = asked.command { book.allowing[pin, default: 1] -= 1 }
        guard case .success(let entries) = answer, !entries.isEmpty else { continue }
        switch asked.command {
        case .stage(let pin, let why): book.staged[pin] = why
        case .deny(let pin) where !unsure.contains(number):
          book.denied.insert(pin)
          book.deniedBy[pin, default: []].insert(asked.server)
        case .deny, .allow: break
        }
      }
    }

    func command() {
      count += 1
      let (index, why) = (Int.random(in: 0..<2, using: &random), "\(count)")
      let request = DocumentState.Request(who: "ada", at: now, why: why)
      let known = pin(UInt8.random(in: 1...5, using: &random))
      let (id, staged) = (MachineBench.hosts[0].id, pin(UInt8(100 + count)))
      switch Int.random(in: 0..<6, using: &random) {
      case 0...1:
        commands[count] = (index, .stage(staged, why: why))
        servers[index].ask(count) { state, _ throws(AdministrationError) in
          try state.stage(staged, at: id, request)
        }
      case 2...4:
        commands[count] = (index, .deny(known))
        if book.allowing[known, default: 0] > 0 { unsure.insert(count) }
        servers[index].ask(count) { state, configured throws(AdministrationError) in
          try state.deny(known, configured: configured, force: true, request)
        }
      default:
        for (number, asked) in commands {
          if case .deny(known) = asked.command { unsure.insert(number) }
        }
        commands[count] = (index, .allow(known))
        book.allowing[known, default: 0] += 1
        book.denied.remove(known)
        book.deniedBy[known] = nil
        servers[index].ask(count) { state, _ throws(AdministrationError) in
          try state.allow(known, request)
        }
      }
    }

    func kill(_ index: Int) {
      for (number, asked) in commands where asked.server == index {
        if case .allow(let pin) = asked.command { book.allowing[pin, default: 1] -= 1 }
        commands[number] = nil
      }
      servers[index].restart()
    }

    func event() {
      now += chance(1, in: 20) ? TimeProof.renewal : Int64.random(in: 1...60, using: &random)
      let server = servers[Int.random(in: 0..<2, using: &random)]
      switch Int.random(in: 0..<20, using: &random) {
      case 0..<6:
        let key = UInt8.random(in: 1...4, using: &random)
        server.probe(chance(1, in: 6) ? .unreachable(reason: "test") : .accepted(pin(key)), at: now)
      case 6..<11: command()
      case 11..<13: server.refresh()
      case 13: server.upkeep()
      case 14..<16: bench.trouble = chance(1, in: 2) ? .none : trouble
      case 16: for server in servers { server.isFollowing.toggle() }
      case 17 where fate == .kills: kill(chance(1, in: 2) ? 0 : 1)
      case 17 where fate == .goesBack: goBack()
      default: rest()
      }
      wander()
    }

    var trouble: MachineBench.Trouble {
      MachineBench.Trouble.allCases.randomElement(using: &random) ?? .none
    }

    func goBack() { bench.record = bench.past.randomElement(using: &random) ?? bench.record }

    func calm() {
      bench.trouble = .none
      now += 1
      for _ in 0..<3 {
        rest()
        for server in servers { server.upkeep() }
      }
      rest()
    }
  }

  /// - Returns: what went wrong.
  private static func run(_ seed: UInt64) -> [String] {
    let world = World(seed)
    world.rest()
    world.servers[0].probe(.accepted(pin(1)), at: world.now)
    world.servers[0].probe(.accepted(pin(1)), at: world.now)
    world.rest()
    world.servers[1].probe(.accepted(pin(1)), at: world.now)
    world.calm()
    let events = Int.random(in: 4...12, using: &world.random)
    for event in 0..<events {
      if world.fate == .restored, event == events / 2 {
        world.calm()
        world.goBack()
        for index in world.servers.indices { world.kill(index) }
      }
      world.event()
    }
    world.calm()
    var faults = world.book.faults
    guard let record = world.bench.record else { return faults + ["nothing is stored"] }
    if !world.book.denied.isSubset(of: record.state.deniedPins) {
      faults.append("a denial is lost")
    }
    for server in world.servers where server.published?.bytes != record.state.document {
      faults.append("a server does not publish what is stored")
    }
    guard world.fate == .kills else { return faults }
    let keys = Set(record.state.keysByEndpoint.values.flatMap(\.keys).map(\.pin))
    for (pin, why) in world.book.staged {
      if !keys.contains(pin) { faults.append("a staged key is lost") }
      if record.told.count(where: { $0.why == why && $0.who == "ada" }) != 1 {
        faults.append("what somebody did is not told once")
      }
    }
    return faults
  }

  @Test("holds in every sequence")
  func sequences() {
    let environment = ProcessInfo.processInfo.environment
    let count = environment["MACHINE_SEQUENCES"].flatMap(UInt64.init) ?? 1_000
    let first = environment["MACHINE_SEED"].flatMap(UInt64.init) ?? 1
    for seed in first..<first + count {
      let faults = Self.run(seed)
      guard faults.isEmpty else {
        Issue.record("sequence \(seed): \(Set(faults).sorted().joined(separator: "; "))")
        return
      }
    }
  }
}
