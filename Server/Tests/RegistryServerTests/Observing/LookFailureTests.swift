import SslPinningRules
import Testing

@testable import RegistryCore
@testable import RegistryServer

@Suite("A look of several observations has one cause, or none")
struct LookFailureTests {
  private static let good = Observation(
    outcome: .accepted(SeenChain(leaf: SeenCertificate(pin: pin(1)))))
  private static let goodToo = Observation(
    vantage: "far", outcome: .accepted(SeenChain(leaf: SeenCertificate(pin: pin(2)))))
  private static let wrongName = Observation(
    outcome: .refused(reason: "r", presented: pin(3)), cause: .name)
  private static let badChain = Observation(outcome: .refused(reason: "r", presented: nil))
  private static let timeout = Observation(outcome: .unreachable(reason: "r"), cause: .timeout)
  private static let noName = Observation(outcome: .unreachable(reason: "r"), cause: .dns)
  private static let silent = Observation(outcome: .unreachable(reason: "r"))

  @Test(
    "proved, silent, refused, and mixtures",
    arguments: [
      ([good], nil), ([good, goodToo], nil), ([good, timeout], nil), ([timeout, good], nil),
      ([good, wrongName], .disagreement), ([badChain, good, silent], .disagreement),
      ([wrongName], .name), ([badChain], .chain), ([badChain, wrongName], .chain),
      ([timeout, wrongName], .name), ([timeout], .timeout), ([noName, timeout], .dns),
      ([silent], .other), ([], .other),
    ] as [([Observation], LookFailureCause?)])
  func cause(_ observations: [Observation], _ cause: LookFailureCause?) {
    #expect(Look(observations: observations).failure == cause)
  }

  @Test("proved leaves are told once each")
  func leaves() {
    let look = Look(observations: [Self.good, Self.goodToo, Self.good, Self.wrongName])
    #expect(look.leaves.map(\.pin) == [pin(1), pin(2)])
  }
}
