import Foundation
import SslPinningRules
import Testing

@testable import RegistryCore

/// Two servers of one document on one store, of which everything that is waited for ends in any order, against a
/// reference that knows only what was acknowledged.
///
/// - Nothing acknowledged is lost: what people staged and denied is in the last record, and told once.
/// - Nothing denied returns: once a server acknowledged a denial, every document that it publishes has it, until a later
///   decision ends it: one that somebody asked for afterwards or meanwhile.
/// - Of each key the decision counts that is told last.
/// - Numbers never go back at one server, and what is published was stored first. No number has two documents, unless
///   the store went back after one of them was signed.
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
    /// Acknowledged denials: when each server's was decided.
    var denied: [SPKIPin: [Int: Int64]] = [:]
    /// Those that somebody asked to end, after they were asked for or meanwhile.
    var ending: Set<SPKIPin> = []
    /// How many allowances of a key are under way.
    var allowing: [SPKIPin: Int] = [:]
    var last: [Int: SignedCopy] = [:]
    var documents: [RegistryStamp.Version: MachineBench.Signed] = [:]
    var faults: [String] = []

    /// Whether a denial that was decided then is in force, or ended by a later decision.
    func isKept(_ pin: SPKIPin, since time: Int64, denied: Set<SPKIPin>, in state: DocumentState)
      -> Bool
    {
      if denied.contains(pin) { return true }
      return ending.contains(pin) && state.allowed[pin].map { $0 >= time } ?? false
    }
  }

  private enum Command: Equatable {
    case stage(SPKIPin, why: String)
    case deny(SPKIPin)
    case allow(SPKIPin)
  }

  private final class World {
    static let pins = (0...5).map(pin)
    let bench = MachineBench()
    let servers: [MachineServer]
    let fate: Fate
    var random: SeededRandom
    var now = MachineBench.begin
    var book = Book()
    /// Commands under way, by their numbers, and the server that was asked.
    var commands: [Int: (server: Int, command: Command)] = [:]
    var count = 0
    /// Denials that overlap with an allowance: either may come last.
    var overlapping: Set<Int> = []

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
      guard let number = document.number, let signed = bench.documents[document.bytes] else {
        return book.faults.append("a document without a number, or that nobody signed")
      }
      if let last = book.last[index], let before = last.number,
        number < before || number == before && document.bytes != last.bytes
      {
        book.faults.append("\(number) after \(before)")
      }
      book.last[index] = document
      let known = book.documents[number] ?? signed
      if known.copy.bytes != document.bytes, min(known.returns, signed.returns) == bench.returns {
        book.faults.append("two documents of the number \(number)")
      }
      book.documents[number] = known
      if !bench.storedDocuments.contains(document.bytes) {
        book.faults.append("published before it was stored")
      }
      for (pin, times) in book.denied {
        guard let time = times[index] else { continue }
        let state = servers[index].machine.state
        if !book.isKept(pin, since: time, denied: signed.denied, in: state) {
          book.faults.append("a denial is gone")
        }
        if signed.denied.contains(pin), signed.listed.contains(pin),
          !signed.listed.isSubset(of: signed.denied)
        {
          book.faults.append("a denied key is listed")
        }
      }
    }

    /// Takes down what was acknowledged, and forgets denials that are over.
    func collect() {
      for pin in book.ending {
        guard let end = bench.record?.state.allowed[pin] else { continue }
        book.denied[pin] = book.denied[pin]?.filter { $0.value > end }
      }
      for (number, asked) in commands {
        guard let answer = servers[asked.server].answers[number] else { continue }
        commands[number] = nil
        if case .allow(let pin) = asked.command { book.allowing[pin, default: 1] -= 1 }
        guard case .success(let entries) = answer else { continue }
        switch asked.command {
        case .stage(let pin, let why): if !entries.isEmpty { book.staged[pin] = why }
        case .deny(let pin): noteDenial(of: pin, number, at: asked.server)
        case .allow: break
        }
      }
    }

    func noteDenial(of pin: SPKIPin, _ number: Int, at index: Int) {
      let state = servers[index].machine.state
      let decided = state.denied.last { $0.pin == pin }?.at ?? state.allowed[pin]
      guard let decided else { return book.faults.append("a denial is acknowledged, and gone") }
      if overlapping.contains(number) {
        book.ending.insert(pin)
      } else if book.ending.remove(pin) != nil {
        // What other servers acknowledged earlier was ended in between.
        book.denied[pin] = nil
      }
      book.denied[pin, default: [:]][index] = decided
    }

    func command() {
      count += 1
      let (index, why) = (Int.random(in: 0..<2, using: &random), "\(count)")
      let request = DocumentState.Request(who: "ada", at: now, why: why)
      let known = World.pins[Int.random(in: 1...5, using: &random)]
      let (id, staged) = (MachineBench.hosts[0].id, pin(UInt8(100 + count)))
      switch Int.random(in: 0..<6, using: &random) {
      case 0...1:
        commands[count] = (index, .stage(staged, why: why))
        servers[index].ask(count) { state, _ throws(AdministrationError) in
          try state.stage(staged, at: id, request)
        }
      case 2...4:
        commands[count] = (index, .deny(known))
        if book.allowing[known, default: 0] > 0 { overlapping.insert(count) }
        servers[index].ask(count) { state, configured throws(AdministrationError) in
          try state.deny(known, configured: configured, force: true, request)
        }
      default:
        for (number, asked) in commands {
          if case .deny(known) = asked.command { overlapping.insert(number) }
        }
        commands[count] = (index, .allow(known))
        book.allowing[known, default: 0] += 1
        book.ending.insert(known)
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
        let key = World.pins[Int.random(in: 1...4, using: &random)]
        server.probe(chance(1, in: 6) ? .unreachable(reason: "test") : .accepted(key), at: now)
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

    func goBack() { bench.goBack(to: bench.past.randomElement(using: &random)) }

    func calm() {
      bench.trouble = .none
      now += 1
      rest()
      for _ in 0..<3 {
        for server in servers { server.upkeep() }
        rest()
        if servers.allSatisfy(\.isUpToDate) { return }
      }
    }
  }

  /// - Returns: what went wrong.
  private static func run(_ seed: UInt64) -> [String] {
    let world = World(seed)
    world.rest()
    world.servers[0].probe(.accepted(pin(1)), at: world.now)
    world.servers[0].probe(.accepted(pin(1)), at: world.now)
    world.rest()
    world.servers[1].upkeep()
    world.servers[1].probe(.accepted(pin(1)), at: world.now)
    world.rest()
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
    for (pin, times) in world.book.denied where !times.isEmpty {
      let isKept = world.book.isKept(
        pin, since: times.values.max() ?? 0, denied: record.state.deniedPins, in: record.state)
      if !isKept { faults.append("a denial is lost") }
    }
    for server in world.servers where server.published?.bytes != record.state.document {
      faults.append("a server does not publish what is stored")
    }
    guard world.fate == .kills else { return faults }
    let decisions = record.told.filter { ["key_denied", "key_allowed"].contains($0.event) }
    for pin in World.pins {
      let isDenied = decisions.last { $0.pin == pin }?.event == "key_denied"
      if record.state.deniedPins.contains(pin) != isDenied {
        faults.append("what was decided last does not count")
      }
    }
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
    let count = environment["MACHINE_SEQUENCES"].flatMap(UInt64.init) ?? 10_000
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
