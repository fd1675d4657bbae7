import Foundation
import SslPinningPlatform
import SslPinningRules

/// Finds the calls by which Swift, Objective-C, Kotlin and Java pin with texts: OkHttp, TrustKit, this SDK.
///
/// - What is computed is not followed. A list that is known in part is not judged: what is missing in it may be there.
struct CodeSites {
  let file: SourceFile
  let tokens: [CodeToken]
  let constants: CodeConstants

  init(_ file: SourceFile) {
    self.file = file
    tokens = CodeLexer.tokens(of: file)
    constants = CodeConstants(in: tokens)
  }

  /// All that was found.
  var sites: [PinSite] {
    switch file.kind {
    case .kotlin, .java: [okHttp].compactMap { $0 }
    case .swift: trustKit + fixedPins + registryClients + evaluatorSites
    case .objectiveC: trustKit + evaluatorSites
    default: []
    }
  }

  /// The parenthesis that a call by the name at this place opens, with `.init` or without; `nil` if it is no call.
  func opening(ofCallAt index: Int) -> Int? {
    let isInitializer =
      index + 2 < tokens.count && tokens[index + 1].isMark(".") && tokens[index + 2].text == "init"
    let place = index + (isInitializer ? 3 : 1)
    return tokens.indices.contains(place) && tokens[place].isMark("(") ? place : nil
  }

  /// The places of a call by its name.
  func calls(of name: String) -> [Int] {
    tokens.indices.filter {
      tokens[$0].kind == .name && tokens[$0].text == name && opening(ofCallAt: $0) != nil
    }
  }

  func arguments(ofCallAt index: Int) -> [CodeArgument] {
    guard let start = opening(ofCallAt: index) else { return [] }
    var reader = CodeReader(tokens, at: start)
    return reader.arguments()
  }

  // MARK: - OkHttp

  /// `CertificatePinner.Builder().add(pattern, pins…)`; all calls of a file are one list.
  private var okHttp: PinSite? {
    var entries: [(HostPattern, [SPKIPin])] = []
    var remarks: [PolicyRemark] = []
    var first: Int?
    for index in calls(of: "add") {
      let arguments = arguments(ofCallAt: index)
      let known = arguments.dropFirst().map { constants.texts($0.value) }
      let texts = known.compactMap { $0 }.flatMap { $0 }
        .filter { $0.hasPrefix("sha256/") || $0.hasPrefix("sha1/") }
      guard let host = constants.text(arguments.first?.value), !texts.isEmpty else { continue }
      first = first ?? tokens[index].line
      let pattern: HostPattern
      do throws(HostNameError) { pattern = try HostPattern(host) } catch {
        remarks.append(.init(.unpinned, host.shown, "OkHttp throws when it is built: \(error)"))
        continue
      }
      var pins: [SPKIPin] = []
      for text in texts {
        do throws(PinSyntaxError) { pins.append(try SPKIPin(parsing: text)) } catch {
          let what = text.hasPrefix("sha1/") ? "a SHA-1 pin is weak" : "a pin never matches"
          remarks.append(.init(.unclear, host.shown, "\(what): \(error)"))
        }
      }
      if !known.contains(where: { $0 == nil }) { entries.append((pattern, pins)) }
    }
    guard let first else { return nil }
    return PinSite(
      file, line: first, .okHttp,
      .ofAnyRole(entries.map { ($0.0, $0.1) }, format: .okHttp, remarks: remarks))
  }

  // MARK: - TrustKit

  /// The dictionary for `TrustKit.initSharedInstance(withConfiguration:)`, wherever it is written.
  private var trustKit: [PinSite] {
    tokens.indices.compactMap { index -> PinSite? in
      let token = tokens[index]
      guard ["kTSKPinnedDomains", "TSKPinnedDomains"].contains(token.text),
        token.kind != .mark,
        let start = [index + 1, index + 2].first(where: {
          tokens.indices.contains($0) && (tokens[$0].isMark(":") || tokens[$0].isMark("="))
        })
      else { return nil }
      var reader = CodeReader(tokens, at: start + 1)
      guard case .pairs(let domains) = constants.resolved(reader.value()) else { return nil }
      let known = domains.filter(isWhole)
      guard case .dictionary(let values)? = propertyList(.pairs(known)), !values.isEmpty,
        // The other keys of the configuration may stand anywhere: nothing is said of them.
        let policy = try? TrustKitReader.policy(
          of: [
            "TSKPinnedDomains": .dictionary(values),
            "TSKIgnorePinningForUserDefinedTrustAnchors": .boolean(false),
          ], isCode: true)
      else {
        return PinSite(
          file, line: token.line, .trustKit, hosts: domains.compactMap { constants.text($0.key) })
      }
      return PinSite(file, line: token.line, .trustKit, policy)
    }
  }

  /// Whether all pins of a domain are known.
  private func isWhole(_ domain: CodePair) -> Bool {
    guard case .pairs(let members) = constants.resolved(domain.value) else { return false }
    let hashes = members.filter { member in
      if case .name(let name) = member.key {
        name.hasSuffix("PublicKeyHashes")
      } else {
        constants.text(member.key)?.hasSuffix("PublicKeyHashes") ?? false
      }
    }
    return hashes.allSatisfy { constants.texts($0.value) != nil }
  }

  /// The value as a property list would have it; `nil` for what is computed.
  private func propertyList(_ value: CodeValue) -> PropertyListValue? {
    switch constants.resolved(value) {
    case .text(let text): return .string(text)
    case .flag(let flag): return .boolean(flag)
    case .list(let values): return .array(values.compactMap(propertyList))
    case .pairs(let pairs):
      var members: [String: PropertyListValue] = [:]
      for pair in pairs {
        let name = if case .name(let name) = pair.key { name } else { "" }
        guard let key = constants.text(pair.key) ?? (name.isEmpty ? nil : name) else { continue }
        members[key] = propertyList(pair.value)
      }
      return .dictionary(members)
    case .name, .call, .other: return nil
    }
  }

  // MARK: - This SDK

  /// `FixedPins([…])`, and certificates by `FixedPins.certificates(…)`.
  private var fixedPins: [PinSite] {
    /// What was chosen where the pins are not in the source.
    func choice(at index: Int) -> PinSite? {
      let notes = chosen(inCallAt: index)
      return notes.isEmpty ? nil : PinSite(file, line: tokens[index].line, .sdk, notes: notes)
    }
    let lists = calls(of: "FixedPins").compactMap { index -> PinSite? in
      guard let value = arguments(ofCallAt: index).first(where: { $0.label == nil })?.value,
        case .pairs(let hosts) = constants.resolved(value)
      else { return choice(at: index) }
      var rules: [HostRule] = []
      var remarks: [PolicyRemark] = []
      for host in hosts { read(host, &rules, &remarks) }
      return PinSite(
        file, line: tokens[index].line, .sdk,
        PinPolicy(format: .registry, rules: rules, overlap: .united, remarks: remarks),
        notes: chosen(inCallAt: index))
    }
    let files = calls(of: "certificates").compactMap { index -> PinSite? in
      let arguments = arguments(ofCallAt: index)
      guard case .name(let part)? = arguments.first(where: { $0.label == "pinning" })?.value,
        let use: PinSite.CertificateUse = part.hasSuffix("wholeCertificate")
          ? .whole : part.hasSuffix("publicKey") ? .key : nil
      else { return choice(at: index) }
      let hosts = constants.texts(arguments.first { $0.label == "hosts" }?.value) ?? []
      return PinSite(
        file, line: tokens[index].line, .sdk, hosts: hosts, certificates: use,
        notes: (use == .whole ? [.wholeCertificate(hosts)] : []) + chosen(inCallAt: index))
    }
    return lists + files + calls(of: "infoPlist").compactMap(choice)
  }

  private func read(
    _ pair: CodePair, _ rules: inout [HostRule], _ remarks: inout [PolicyRemark]
  ) {
    guard let host = constants.text(pair.key) else { return }
    var lists: (leaf: [String]?, ca: [String]?) = (constants.texts(pair.value), [])
    var isWide = false
    var isEither = false
    if case .call(_, let arguments) = constants.resolved(pair.value) {
      func list(_ label: String) -> [String]? {
        guard let argument = arguments.first(where: { $0.label == label }) else { return [] }
        return constants.texts(argument.value)
      }
      lists = (list("leaf"), list("ca"))
      isWide = arguments.contains { $0.label == "includesSubdomains" && $0.value == .flag(true) }
      isEither = arguments.contains { $0.label == "match" && $0.value.isCase("any") }
    }
    // What is computed is not judged.
    guard let leaf = lists.leaf, let ca = lists.ca else { return }
    let pattern: HostPattern
    do throws(HostNameError) { pattern = try HostPattern(host) } catch {
      remarks.append(.init(.unpinned, host.shown, "FixedPins throws: \(error)"))
      return
    }
    func pins(_ texts: [String]) -> PinSet {
      var pins = PinSet()
      var seen: Set<SPKIPin> = []
      for text in texts {
        do throws(PinSyntaxError) {
          let pin = try SPKIPin(parsing: text)
          pins.insert(Pin(pin))
          if !seen.insert(pin).inserted {
            remarks.append(.init(.duplicate, host.shown, "has the same pin twice"))
          }
        } catch { remarks.append(.init(.unclear, host.shown, "FixedPins throws: \(error)")) }
      }
      return pins
    }
    var entry = PolicyEntry(
      pattern, leaf: pins(leaf), ca: pins(ca), match: isEither ? .any : .all)
    if !leaf.isEmpty { entry.required.insert(.leaf) }
    if !ca.isEmpty { entry.required.insert(.ca) }
    rules.append(HostRule(entry))
    if isWide, case .exact(.name(let name)) = pattern {
      entry.pattern = .oneMoreLabel(name)
      rules.append(HostRule(entry))
    }
  }

  /// What is assigned to the name at this place, 64 tokens at most: to the end of its line, and further if a sign at
  /// the break says that it goes on.
  private func assigned(behind place: Int) -> ArraySlice<CodeToken> {
    let start = place + 2
    guard start < tokens.count, tokens[place + 1].isMark("="), !tokens[start].isMark("=") else {
      return []
    }
    let limit = min(start + 64, tokens.endIndex)
    let end = (start..<limit).first { next in
      tokens[next].isMark(";")
        || (tokens[next].line > tokens[next - 1].line
          && ![".", "?", ":", "="].contains {
            tokens[next].isMark($0) || tokens[next - 1].isMark($0)
          })
    }
    return tokens[start..<(end ?? limit)]
  }

  /// Where a setting gets this value.
  private func assignment(of value: String, to name: String) -> Int? {
    tokens.indices.first { place in
      tokens[place].text == name && assigned(behind: place).contains { $0.text == value }
    }
  }

  /// Not faults: an app may choose them, and whoever reads a report wants to know.
  private static let choices: [(name: String, value: String, rule: CheckRule, text: String)] = [
    (
      "trust", "pinnedKeysOnly", .disabled,
      "names and dates are not checked: a pinned key alone lets a server in"
    ),
    (
      "unlistedHosts", "systemTrust", .notPinned,
      "hosts that are not listed are let in with any CA"
    ),
  ]

  private func chosen(inCallAt index: Int, assigned: [Int?] = [nil, nil]) -> [Finding] {
    let arguments = arguments(ofCallAt: index)
    return zip(Self.choices, assigned).compactMap { choice, assigned in
      let isArgument = arguments.contains {
        $0.label == choice.name && $0.value.isCase(choice.value)
      }
      guard let place = isArgument ? index : assigned else { return nil }
      let affects = tokens[place].isDebug ? .developers : file.affects
      return Finding(
        choice.rule, choice.text, severity: .info,
        site: .init(line: tokens[place].line, affects: affects))
    }
  }

  /// `SslPinningConfig(endpointUrl: …)`: the pins come from its registry.
  private var registryClients: [PinSite] {
    let reporting = assignment(of: "reportOnly", to: "enforcement")
    let assigned = Self.choices.map { assignment(of: $0.value, to: $0.name) }
    return calls(of: "SslPinningConfig").map { index in
      let url = arguments(ofCallAt: index).first { $0.label == "endpointUrl" }?.value
      let host = constants.text(url).flatMap { URLComponents(string: $0)?.host }
      let notes = reporting.map { place in
        let isDebug = tokens[place].isDebug
        return Finding(
          .reportOnly,
          "a missing pin is only reported, and the server is let in; hint: enforcement = .enforce",
          severity: isDebug ? .info : nil,
          site: .init(line: tokens[place].line, affects: isDebug ? .developers : file.affects))
      }
      return PinSite(
        file, line: tokens[index].line, .sdk, hosts: host.map { [$0] } ?? [],
        notes: [notes].compactMap { $0 } + chosen(inCallAt: index, assigned: assigned))
    }
  }
}

extension CodeValue {
  /// Whether it is this case of an enumeration, with the names of its types or without.
  fileprivate func isCase(_ name: String) -> Bool {
    guard case .name(let path) = self else { return false }
    return path.split(separator: ".").last.map(String.init) == name
  }
}

extension Finding {
  /// What pinning whole certificates means for those who have the app.
  static func wholeCertificate(_ hosts: [String]) -> Finding {
    Finding(
      .wholeCertificate, host: hosts.joined(separator: ", ").shown,
      "whole certificates are compared: with each renewal, also with the same key, every installed version is"
        + " locked out until it is updated; hint: pin the key, and a second one")
  }
}
