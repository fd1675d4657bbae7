#if os(Linux)
  import CSslPinningOpenSSL
  import SslPinningRules

  /// Judges a chain, and where the path that OpenSSL found is refused for itself, the other paths.
  ///
  /// - OpenSSL does not backtrack: of two valid paths it finds one. Where a policy refuses that one
  ///   for a certificate above the leaf, each candidate is validated again in full, alone: its
  ///   anchor is all that is trusted, its certificates are all that was sent.
  /// - Nothing is validated less strictly than the first path: same settings, time and name, and
  ///   every candidate is one whole path under ``CandidatePaths``.
  /// - At most ``mostCandidates``. The first that satisfies the policy counts; else, where only a
  ///   forgiven path was found, that one; else the first verdict.
  /// - A chain without a valid path is refused as it stands; other paths are for pins alone.
  struct PathSearch {
    static let mostCandidates = 8

    let store: PlatformTrustStore
    let sent: SentChain
    let host: HostName
    /// As of ``PathJudgement``.
    let moments: [Int64]

    /// The verdict, and the judgement on the path that it stands on.
    func verdict(
      by judge: (ChainEvidence) -> PinEvaluation
    ) -> (verdict: ChainVerdict, judgement: PathJudgement) {
      let judgement = PathJudgement(
        anchors: store.pointer, settings: store.settings, chain: sent.stack, host: host,
        at: moments)
      let first = verdict(on: judgement, by: judge)
      guard first.evaluation.mayHaveAnotherPath,
        let lookup = AnchorLookup(store: store.pointer)
      else { return (first, judgement) }
      let candidates = CandidatePaths(
        sent: sent.certificates, anchors: lookup, settings: store.settings)
      var best = (verdict: first, judgement: judgement)
      for path in candidates.first(
        Self.mostCandidates, besides: judgement.path?.certificates ?? [])
      {
        guard let other = validated(path), case .success = other.validation else { continue }
        let verdict = verdict(on: other, by: judge)
        if verdict.evaluation.outcome == .matched { return (verdict, other) }
        if best.verdict.evaluation.decision == .refuse, verdict.evaluation.decision == .accept {
          best = (verdict, other)
        }
      }
      return best
    }

    private func verdict(
      on judgement: PathJudgement, by judge: (ChainEvidence) -> PinEvaluation
    ) -> ChainVerdict {
      let evidence = ChainEvidence(presented: sent.pins, validation: judgement.validation)
      return ChainVerdict(
        evaluation: judge(evidence), evidence: evidence, presented: sent.presented)
    }

    /// The judgement on one path alone; `nil` where OpenSSL has no memory for it.
    private func validated(_ path: CandidatePaths.Path) -> PathJudgement? {
      guard let leaf = sent.certificates.first, let anchor = path.last,
        let chain = CertificateStack(), let anchors = X509_STORE_new()
      else { return nil }
      defer { X509_STORE_free(anchors) }
      for certificate in [leaf] + path.dropFirst().dropLast() {
        guard chain.append(sharing: certificate) else { return nil }
      }
      guard X509_STORE_add_cert(anchors, anchor) == 1,
        store.settings.apply(to: X509_STORE_get0_param(anchors))
      else { return nil }
      return PathJudgement(
        anchors: anchors, settings: store.settings, chain: chain.pointer, host: host,
        at: moments)
    }
  }
#endif
