import SslPinningRules

/// Finds pinning by certificates in the bundle: Alamofire's evaluators, AFNetworking's policies, and the switches by
/// which either is turned off.
///
/// - What stands in `#if DEBUG` is for developers, and is told as that.
extension CodeSites {
  var evaluatorSites: [PinSite] {
    let words = Set(tokens.lazy.filter { $0.kind == .name }.map(\.text))
    let isAlamofire = words.contains {
      $0.hasSuffix("TrustEvaluator") || $0.hasPrefix("ServerTrust") || $0 == "serverTrustManager"
    }
    return (isAlamofire ? alamofire : [])
      + (words.contains { $0.hasPrefix("AFSecurityPolicy") || $0.hasPrefix("AFSSLPinningMode") }
        ? afNetworking : []) + switches
  }

  private func site(
    _ mechanism: PinSite.Mechanism, at index: Int, hosts: [String] = [],
    _ use: PinSite.CertificateUse? = nil, _ notes: [Finding] = []
  ) -> PinSite {
    PinSite(
      file, line: tokens[index].line, mechanism, hosts: hosts, certificates: use,
      affects: tokens[index].isDebug ? .developers : nil, notes: notes)
  }

  /// An evaluator, and the host that it stands behind in a dictionary.
  private func evaluator(
    at index: Int, _ use: PinSite.CertificateUse? = nil, _ notes: [Finding] = []
  ) -> PinSite {
    var hosts: [String] = []
    // `"host": .publicKeys`
    let place = index > 0 && tokens[index - 1].isMark(".") ? index - 2 : index - 1
    if place > 0, tokens[place].isMark(":") {
      let key = tokens[place - 1]
      let host = constants.text(key.kind == .text ? .text(key.text) : .name(key.text))
      hosts = [host].compactMap { $0?.shown }
    }
    let told = notes.map {
      Finding($0.rule, host: hosts.first ?? "", $0.message, severity: $0.severity)
    }
    return site(.alamofire, at: index, hosts: hosts, use, told)
  }

  /// What lets anybody in, or only developers if no other build has it.
  private func disabled(at index: Int, _ text: String) -> [Finding] {
    let isDebug = tokens[index].isDebug
    return [
      Finding(
        isDebug ? .debugBuilds : .disabled,
        isDebug ? "in debug builds alone: \(text)" : "\(text); hint: take it out, or into #if DEBUG"
      )
    ]
  }

  // MARK: - Alamofire

  private var alamofire: [PinSite] {
    hostsOfManagers + tokens.indices.compactMap(alamofireSite)
  }

  private func alamofireSite(at index: Int) -> PinSite? {
    let isCall = opening(ofCallAt: index) != nil
    switch tokens[index].text {
    case "PinnedCertificatesTrustEvaluator" where isCall, "pinCertificates" where isCall,
      "pinnedCertificates" where isShorthand(at: index):
      return evaluator(at: index, .whole, [.wholeCertificate([])] + loose(at: index))
    case "PublicKeysTrustEvaluator" where isCall, "pinPublicKeys" where isCall,
      "publicKeys" where isShorthand(at: index):
      return evaluator(at: index, .key, loose(at: index))
    case "DisabledTrustEvaluator" where isCall, "DisabledEvaluator" where isCall,
      "disableEvaluation":
      let text = "no certificate is checked at all: anybody gets in"
      return evaluator(at: index, nil, disabled(at: index, text))
    // They pin nothing, and `default` is a name of much else: only what they leave out is told.
    case "DefaultTrustEvaluator", "RevocationTrustEvaluator", "default", "revocation",
      "revocationChecking", "performDefaultEvaluation", "performRevokedEvaluation":
      let notes = loose(at: index)
      return notes.isEmpty ? nil : evaluator(at: index, nil, notes)
    default: return nil
    }
  }

  /// Whether the name at this place is a member whose type goes without saying, as `.publicKeys` of an evaluator: no
  /// member of a value, nothing that is compared, no pattern.
  private func isShorthand(at index: Int) -> Bool {
    guard index > 2, tokens[index - 1].isMark(".") else { return false }
    let before = tokens[index - 2]
    switch (before.kind, before.text) {
    case (.mark, ":"), (.mark, "["), (.mark, "{"), (.name, "return"), (.name, "in"): return true
    case (.mark, "="): return !["=", "!", "<", ">"].contains(tokens[index - 3].text)
    case (.mark, "?"):
      // Of a choice, and of no optional value.
      let end = opening(ofCallAt: index).flatMap { tokens[$0].end } ?? index
      return end + 1 < tokens.count && tokens[end + 1].isMark(":")
    case (.mark, ","), (.mark, "("):
      // `case .none, .publicKeys:`
      return !tokens[max(0, index - 64)..<(index - 1)].reversed().prefix {
        $0.kind == .name || [".", ",", "(", ")"].contains($0.text)
      }.contains { $0.text == "case" }
    default: return false
    }
  }

  /// The hosts of `ServerTrustManager(evaluators:)`.
  private var hostsOfManagers: [PinSite] {
    (calls(of: "ServerTrustManager") + calls(of: "ServerTrustPolicyManager")).compactMap { index in
      let arguments = arguments(ofCallAt: index)
      let list = arguments.first { ["evaluators", "policies"].contains($0.label) }?.value
      guard let list, case .pairs(let pairs) = constants.resolved(list) else { return nil }
      let hosts = pairs.compactMap { constants.text($0.key) }
      var notes = hosts.filter { $0.contains("*") }.map { host in
        Finding(
          .notPinned, host: host.shown,
          "Alamofire compares hosts as they are, and knows no wildcard: no host is pinned by this line",
          site: .init(
            line: file.line(ofHost: host) ?? tokens[index].line, affects: file.affects))
      }
      if arguments.contains(where: {
        $0.label == "allHostsMustBeEvaluated" && $0.value == .flag(false)
      }) {
        notes.append(
          Finding(
            .notPinned, "hosts that are not listed are let in with any CA", severity: .info))
      }
      return site(.alamofire, at: index, hosts: hosts, nil, notes)
    }
  }

  /// What an evaluator is told to leave out.
  private func loose(at index: Int) -> [Finding] {
    let arguments = arguments(ofCallAt: index)
    func isOff(_ label: String) -> Bool {
      arguments.contains { $0.label == label && $0.value == .flag(false) }
    }
    var found: [Finding] = []
    let isAnyHost = isOff("validateHost")
    // Alamofire validates a chain also to validate the host.
    if isOff("validateCertificateChain") || isAnyHost && isOff("performDefaultValidation") {
      found += disabled(at: index, "chains and dates are not checked, pins aside")
    }
    if isAnyHost {
      found += disabled(
        at: index, "names are not checked: a server of another host gets in with the same CA or key"
      )
    }
    return found
  }

  // MARK: - AFNetworking

  private var afNetworking: [PinSite] {
    tokens.indices.compactMap { index in
      // `[AFSecurityPolicy policyWithPinningMode:AFSSLPinningModeCertificate]`, `AFSecurityPolicy(pinningMode: .certificate)`
      let text = tokens[index].text
      var swift = ""
      if text == "pinningMode", tokens.indices.contains(index + 1), tokens[index + 1].isMark(":") {
        var reader = CodeReader(tokens, at: index + 2)
        if case .name(let path) = reader.value() {
          swift = path.split(separator: ".").last.map(String.init) ?? path
        }
      }
      // Where the library itself declares and compares its modes nothing is chosen.
      let isChosen =
        index > 1 && tokens[index - 1].isMark(":")
        && tokens[index - 2].text.lowercased().hasSuffix("pinningmode")
      switch (isChosen ? text : "", swift) {
      case ("AFSSLPinningModeCertificate", _), (_, "certificate"):
        return site(.afNetworking, at: index, .whole, [.wholeCertificate([])])
      case ("AFSSLPinningModePublicKey", _), (_, "publicKey"):
        return site(.afNetworking, at: index, .key)
      case ("AFSSLPinningModeNone", _), (_, "none"):
        return site(
          .afNetworking, at: index, nil,
          [
            Finding(
              .notPinned, "AFSSLPinningModeNone pins nothing: any CA is enough", severity: .warning)
          ])
      default: return nil
      }
    }
  }

  /// `allowInvalidCertificates = YES` and `validatesDomainName = NO`, as a property and as a message, also in digits.
  private var switches: [PinSite] {
    tokens.indices.compactMap { index in
      guard index + 2 < tokens.count, tokens[index + 1].isMark("=") || tokens[index + 1].isMark(":")
      else { return nil }
      let value = tokens[index + 2].text.lowercased()
      let isOn = ["yes", "true", "1"].contains(value)
      guard isOn || ["no", "false", "0"].contains(value) else { return nil }
      let text: String
      switch (tokens[index].text, isOn) {
      case ("allowInvalidCertificates", true), ("setAllowInvalidCertificates", true):
        text =
          "chains are not validated: without a pinned certificate anybody gets in, and with a pinned key whoever"
          + " shows the public certificate beside his own may"
      case ("validatesDomainName", false), ("setValidatesDomainName", false):
        text =
          "names are not checked: whoever has a certificate of the same CA for any name gets in"
      default: return nil
      }
      return site(.afNetworking, at: index, nil, disabled(at: index, text))
    }
  }
}
