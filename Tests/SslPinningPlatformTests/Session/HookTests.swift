import CSslPinningShims
import FaultLab
import Foundation
import FoundationNetworking
import SslPinningRules
import TLSTools
import TestSupport
import Testing

@testable import SslPinningPlatform

@Suite("The hook under URLSession")
struct HookTests {
  @Test("takes libcurl's names from nobody", arguments: FoundationSlots.hooked)
  func names(name: String) throws {
    try PinnedTransport.selfTest()
    #expect(try MappedFile.path(at: dlsym(nil, name))?.contains("/libcurl.so") == true)
  }

  @Test("stands in all of Foundation's references to these functions, and in no others")
  func references() async throws {
    try PinnedTransport.selfTest()
    let slots = try await FoundationSlots()
    let hook = unsafeBitCast(pp_hook_bind as Bind, to: UnsafeRawPointer.self)
    let own = try #require(try MappedFile.path(at: hook))
    for name in FoundationSlots.hooked + ["curl_easy_init", "curl_slist_append"] {
      let target = try MappedFile.path(at: try #require(slots.target(of: name)))
      #expect((target == own) == FoundationSlots.hooked.contains(name), "\(name)")
    }
  }

  @Test("is put back for the next session, where another thread's first call took it away")
  func turnedBack() async {
    await #expect(processExitsWith: .success) {
      let site = try PinnedSite()
      let url = try site.url()
      _ = try await site.session().data(from: url)
      let slots = try await FoundationSlots()
      for name in FoundationSlots.hooked { try slots.turnBack(name) }
      let session = site.session()
      _ = try await session.data(from: url)
      try site.server.replaceIdentity(site.rogueIdentity())
      site.server.closeConnections()
      guard await site.refusal(of: url, over: site.session())?.rule == "leaf-pin" else { exit(3) }
    }
  }

  @Test("refuses a session where somebody else's hook stands in its place")
  func othersHook() async {
    await #expect(processExitsWith: .success) {
      let site = try PinnedSite()
      let url = try site.url()
      _ = try await site.session().data(from: url)
      try await FoundationSlots().put(dlsym(nil, "getpid"), at: "curl_multi_assign")
      do {
        _ = try await site.session().data(from: url)
        exit(3)
      } catch {
        guard "\(error)".contains("curl_multi_assign was hooked by another library") else {
          exit(4)
        }
      }
    }
  }

  /// A handle of somebody else's, whose options are set through the same place as Foundation's: so it is where
  /// the standard library is linked into the app.
  private enum OthersHandle {
    typealias Option =
      @convention(c) (UnsafeMutableRawPointer?, Int32, UnsafeMutableRawPointer?) -> Int32
    typealias Make = @convention(c) () -> UnsafeMutableRawPointer?

    /// Says who hears the handle's header lines, and whether its CURLOPT_PRIVATE is still its own.
    static func keepsItsOwn(settingBy hook: UInt) -> Bool {
      guard let make = dlsym(nil, "curl_easy_init"), let getInfo = dlsym(nil, "curl_easy_getinfo"),
        let setOption = UnsafeRawPointer(bitPattern: hook),
        let handle = unsafeBitCast(make, to: Make.self)()
      else { return false }
      let set = unsafeBitCast(setOption, to: Option.self)
      let own = UnsafeMutableRawPointer(bitPattern: 64)
      // CURLOPT_PRIVATE, CURLOPT_HEADERDATA, CURLOPT_HEADERFUNCTION; CURLINFO_PRIVATE.
      guard set(handle, 10103, own) == 0,
        set(handle, 10029, UnsafeMutableRawPointer(bitPattern: 128)) == 0,
        set(handle, 20079, dlsym(nil, "abort")) == 0
      else { return false }
      var found: UnsafeMutableRawPointer?
      return withUnsafeMutablePointer(to: &found) {
        unsafeBitCast(getInfo, to: Option.self)(handle, 0x100015, $0)
      } == 0 && found == own
    }
  }

  @Test("takes nothing of a handle that is not Foundation's for Foundation's, nor anything from it")
  func othersHandle() async {
    await #expect(processExitsWith: .success) {
      let hook = Locked<UInt>(0)
      let second = try PinnedSite { _ in .text("second") }
      let first = try PinnedSite { _ in
        // Between the two hops of a task, whose handle is there already.
        guard OthersHandle.keepsItsOwn(settingBy: hook.withLock { $0 }) else { exit(3) }
        return .redirect(to: "https://b.localhost:\(second.server.port)/")
      }
      try second.server.replaceIdentity(first.identity)
      let session = first.session()
      let target = try await FoundationSlots().target(of: "curl_easy_setopt")
      hook.withLock { $0 = target ?? 0 }
      let body = try await session.data(from: first.url()).0
      guard String(decoding: body, as: UTF8.self) == "second" else { exit(4) }
    }
  }

  /// Clear text, because nothing but the hook refuses it.
  @Test("taken away under a living session, lets nothing pass")
  func takenAway() async throws {
    let plain = try LocalHTTPServer { _ in .text("clear") }
    let port = plain.port
    let outcome = await #expect(
      processExitsWith: .failure, observing: [\.standardErrorContent]
    ) { [port = port as UInt16] in
      let site = try PinnedSite()
      let session = site.session()
      _ = try await session.data(from: site.url())
      try await FoundationSlots().turnBack("curl_multi_add_handle")
      guard let url = URL(string: "http://localhost:\(port)/") else { return }
      try FileHandle.standardError.write(contentsOf: Data("taken away\n".utf8))
      // Foundation ends the process where libcurl takes no request.
      _ = try await session.data(from: url)
    }
    let said = String(decoding: outcome?.standardErrorContent ?? [], as: UTF8.self)
    #expect(said.contains("taken away"))
    #expect(plain.counts.connections == 0)
  }

  @Test("parks a transfer where no descriptor is left, and keeps no verdict of it")
  func starving() async {
    await #expect(processExitsWith: .success) {
      let site = try PinnedSite()
      site.judge.onRefresh { _ in }
      let starving = StarvingJudge(site.judge)
      let transport = try PinnedTransport(
        trust: .anchors([site.authority.root.der]), judge: starving, longestRefresh: 60)
      let hook = SessionHook(transport: transport, requestTimeout: 60)
      let session = try PlatformSession.pinned(
        by: hook, configuration: .ephemeral, delegate: nil, delegateQueue: nil)
      let url = try site.url()
      try site.server.replaceIdentity(site.rogueIdentity())
      let refusal: PinEvaluation?
      do {
        _ = try await session.data(from: url)
        exit(3)
      } catch { refusal = transport.refusal(for: error) }
      starving.end()
      guard refusal?.rule == "leaf-pin", site.judge.refreshes.count == 1 else { exit(4) }
      guard await eventually({ hook.waitingCount == 0 }) else { exit(5) }
    }
  }

  @Test("leaves no descriptor behind, however a parked request ends")
  func descriptors() async {
    await #expect(processExitsWith: .success) {
      func round() async throws {
        let site = try PinnedSite(longestRefresh: 1)
        try site.server.replaceIdentity(site.rogueIdentity())
        let isOver = Locked(false)
        defer { isOver.withLock { $0 = true } }
        site.judge.onRefresh { _ in _ = await eventually { isOver.withLock { $0 } } }
        let session = site.session()
        let url = try site.url()
        let tasks = (0..<3).map { _ in Task { try await session.data(from: url) } }
        guard await eventually({ site.judge.refreshes.count == 3 }) else { exit(3) }
        tasks[0].cancel()
        _ = await tasks[0].result
        session.invalidateAndCancel()
        for task in tasks { _ = await task.result }
      }
      try await round()
      let before = try Self.eventCounters()
      for _ in 0..<10 {
        // Its look-out is the next one's.
        guard await eventually({ Self.sessionCount() == 0 }) else { exit(4) }
        try await round()
      }
      guard await eventually({ (try? Self.eventCounters()) ?? .max <= before }) else { exit(5) }
    }
  }

  private static func sessionCount() -> Int32 {
    var (sessions, transfers, connections) = (Int32(0), Int32(0), Int32(0))
    pp_hook_counts(&sessions, &transfers, &connections)
    return sessions
  }

  private static func eventCounters() throws -> Int {
    try FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd").filter {
      let target = try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/fd/\($0)")
      return target == "anon_inode:[eventfd]"
    }.count
  }

  @Test(
    "gives a look-out a number that no socket gets, though the process uses most of its descriptors",
    arguments: [512, 8192])
  func highLookouts(_ most: Int) async throws {
    var usual = rlimit()
    getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &usual)
    try #require(usual.rlim_max >= most)
    await #expect(processExitsWith: .success) { [most = most as Int] in
      var limit = rlimit()
      getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
      limit.rlim_cur = rlim_t(most)
      guard setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 else { exit(3) }
      for _ in 0..<min(most, 4096) * 4 / 5 where dup(0) < 0 { exit(4) }
      guard let first = pp_lookout_take(), let second = pp_lookout_take() else { exit(5) }
      // Sockets get the lowest.
      guard let next = (0..<50).map({ _ in dup(0) }).max(), next > 0 else { exit(6) }
      guard first.pointee.epoll != second.pointee.epoll else { exit(7) }
      guard first.pointee.epoll > next + 20, second.pointee.epoll > next + 20 else { exit(8) }
    }
  }

  @Test("gives a session's look-out to the next one, and never closes it")
  func lookouts() async {
    // Sessions of other tests would take them.
    await #expect(processExitsWith: .success) {
      guard let first = pp_lookout_take(), let second = pp_lookout_take(), first != second else {
        exit(3)
      }
      var count = UInt64(1)
      guard write(first.pointee.wake, &count, 8) == 8 else { exit(5) }
      pp_lookout_give(first)
      // It wakes nobody.
      guard read(first.pointee.wake, &count, 8) == -1, errno == EAGAIN else { exit(6) }
      pp_lookout_give(second)
      guard Set([pp_lookout_take(), pp_lookout_take()]) == [first, second] else { exit(7) }
      for each in [first, second] {
        guard fcntl(each.pointee.epoll, F_GETFD) != -1, fcntl(each.pointee.wake, F_GETFD) != -1
        else { exit(8) }
        pp_lookout_give(each)
      }
    }
  }
}

private typealias Bind =
  @convention(c) (UnsafeRawPointer?, UnsafeMutablePointer<CChar>?) -> Bool

/// A judge under whom the process has no descriptor left from the moment it wants a refresh on.
private final class StarvingJudge: PinEvaluating {
  private let judge: ScriptedJudge
  private let usual: rlimit

  init(_ judge: ScriptedJudge) {
    self.judge = judge
    var limit = rlimit()
    getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
    usual = limit
  }

  func end() {
    var limit = usual
    setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
  }

  func currentGeneration() -> UInt64 { judge.currentGeneration() }
  var time: TrustTime? { judge.time }

  func evaluate(_ evidence: ChainEvidence, host: HostName) -> PinEvaluation {
    judge.evaluate(evidence, host: host)
  }

  func record(_ evaluation: PinEvaluation, of connection: ConnectionFacts) {}

  func requestRefresh(after refusal: PinEvaluation) -> Bool {
    var limit = rlimit(rlim_cur: 0, rlim_max: usual.rlim_max)
    return setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0
  }

  func refresh(after refusal: PinEvaluation) async { await judge.refresh(after: refusal) }
}
