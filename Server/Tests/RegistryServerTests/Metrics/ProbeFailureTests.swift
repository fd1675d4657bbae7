import SslPinningRules
import Testing

@testable import RegistryCore
@testable import RegistryServer

@Suite("A probe of several observations has one cause, or none")
struct ProbeFailureTests {
  private static let good = ProbeObservation(
    outcome: .accepted(SeenChain(leaf: SeenCertificate(pin: pin(1)))))
  private static let goodToo = ProbeObservation(
    vantage: "far", outcome: .accepted(SeenChain(leaf: SeenCertificate(pin: pin(2)))))
  private static let wrongName = ProbeObservation(
    outcome: .refused(reason: "r", presented: pin(3)), cause: .name)
  private static let badChain = ProbeObservation(outcome: .refused(reason: "r", presented: nil))
  private static let timeout = ProbeObservation(outcome: .unreachable(reason: "r"), cause: .timeout)
  private static let noName = ProbeObservation(outcome: .unreachable(reason: "r"), cause: .dns)
  private static let silent = ProbeObservation(outcome: .unreachable(reason: "r"))

  @Test(
    "proved, silent, refused, and mixtures",
    arguments: [
      ([good], nil), ([good, goodToo], nil), ([good, timeout], nil), ([timeout, good], nil),
      ([good, wrongName], .disagreement), ([badChain, good, silent], .disagreement),
      ([wrongName], .name), ([badChain], .chain), ([badChain, wrongName], .chain),
      ([timeout, wrongName], .name), ([timeout], .timeout), ([noName, timeout], .dns),
      ([silent], .other), ([], .other),
    ] as [([ProbeObservation], ProbeFailureCause?)])
  func cause(_ observations: [ProbeObservation], _ cause: ProbeFailureCause?) {
    #expect(ProbeResult(observations: observations).failure == cause)
  }

  @Test("proved leaves are told once each")
  func leaves() {
    let probe = ProbeResult(observations: [Self.good, Self.goodToo, Self.good, Self.wrongName])
    #expect(probe.leaves.map(\.pin) == [pin(1), pin(2)])
  }
}
