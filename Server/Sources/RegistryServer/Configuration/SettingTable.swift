extension Setting {
  /// All that is known of the setting. Durations are milliseconds.
  ///
  /// A default is what the field has in a ``ServerConfiguration`` that nobody changed.
  package var row: SettingRow {
    switch self {
    case .keys:
      SettingRow(.keys, standard: "", help: "what to watch", details: "see below")

    case .keysDirectory:
      SettingRow(
        .of(\.keysDirectory, .text("DIR")),
        help: "more of `keys`, in files of their own", details: "see [The file](#the-file)")

    case .logFormat:
      SettingRow(
        .of(\.logFormat, .choice("format")), flag: .byPath, help: "`json` or `text`")
    case .logLevel:
      SettingRow(
        .of(\.logLevel, .choice("level")), flag: .byPath,
        help: "`debug`, `info`, `warn` or `error`")
    case .logPretty:
      SettingRow(
        .of(\.logPretty, .boolean), flag: .byPath, help: "indented JSON, aligned text")

    case .serverListen:
      SettingRow(
        .of(\.server.listen, .address), .restart,
        flag: SettingFlag(name: "--listen", other: "--server-listen"),
        help: "listen here; `:7500` is every address", details: "`[::]:7500` likewise")
    case .serverReadTimeout:
      SettingRow(
        .of(\.server.readTimeout, .duration(0...day)), flag: .byPath,
        help: "for a request to arrive", details: "`0s`: the server's own limits")
    case .serverWriteTimeout:
      SettingRow(
        .of(\.server.writeTimeout, .duration(0...day)), flag: .byPath,
        help: "for an answer to be read", details: "`0s`: the server's own limits")
    case .serverCertificate:
      SettingRow(
        .of(\.server.certificate, .text("FILE")), .liveIfTransportStays,
        help: "PEM, with the chain: https; else http",
        details: "to or from none needs a restart")
    case .serverPrivateKey:
      SettingRow(
        .of(\.server.privateKey, .text("FILE")), .liveIfTransportStays,
        help: "PEM: the certificate's key")
    case .serverKey:
      SettingRow(
        .of(\.server.key, .secret),
        help: "signs administrators' tokens; another one ends them all",
        details: "16 bytes or more; without it the signing key does, and with `signing.command`"
          + " nobody is let in ([administration.md](administration.md))")
    case .serverTrustedProxies:
      SettingRow(
        .of(\.server.trustedProxies, .networks),
        help: "proxies in front: their `X-Forwarded-For` says who calls",
        details: "addresses and networks (`127.0.0.1`, `10.0.0.0/8`, `2001:db8::/32`);"
          + " no network wider than /8, of IPv6 than /7")

    case .storageType:
      SettingRow(
        .of(\.storage.type, .text("TYPE")), .restart, flag: SettingFlag(short: "-s"),
        help: "`sqlite`, `memory`, `fs`, `redis` or `postgres`", details: "`filesystem` is `fs`")
    case .storageDSN:
      SettingRow(
        .of(\.storage.dsn, .dataSource), .restart, flag: .byPath, standard: "",
        help: "sqlite: a file; redis, postgres: a URL",
        details: "sqlite without it: `registry.db` in `$XDG_STATE_HOME/ssl-pinning` or"
          + " `~/.local/state/ssl-pinning`")
    case .storageDumpDirectory:
      SettingRow(
        .of(\.storage.directory, .text("DIR")), .restart, flag: .byPath,
        help: "fs: a directory, else `documents` where state is kept")
    case .storageDumpInterval:
      SettingRow(
        .of(\.tls.interval, .duration(1...day)), flag: .byPath,
        secondNameOf: .tlsInterval, standard: "",
        help: "second name of `tls.dump_interval`, which wins")
    case .storageMaximumOpen:
      SettingRow(
        .of(\.storage.maxOpen, .integer(0...10_000)), .restart, flag: .byPath,
        help: "redis, postgres: most connections; 0: no limit")
    case .storageMaximumIdle:
      SettingRow(
        .of(\.storage.maxIdle, .integer(0...10_000)), .restart, flag: .byPath,
        help: "redis, postgres: most idle connections")
    case .storageMaximumIdleTime:
      SettingRow(
        .of(\.storage.maxIdleTime, .duration(0...365 * day)), .restart, flag: .byPath,
        help: "redis, postgres: an idle connection's time", details: "`0s`: for ever")
    case .storageMaximumLifetime:
      SettingRow(
        .of(\.storage.maxLifetime, .duration(0...365 * day)), .restart, flag: .byPath,
        help: "redis, postgres: any connection's time", details: "`0s`: for ever")
    case .storageInsecure:
      SettingRow(
        .of(\.storage.isInsecure, .boolean), .restart,
        help: "redis, postgres: talk to another machine without verified TLS",
        details: "see [Databases](#databases)")

    case .tlsDirectory:
      SettingRow(
        .of(\.tls.directory, .directory), .restart,
        help: "where `prv.pem` and `pub.pem` are; else `tls` in `--config-path`")
    case .tlsInterval:
      // From one millisecond on: the reference server's configurations write 1s and less, and the pause between
      // probes has its own lower bound.
      SettingRow(
        .of(\.tls.interval, .duration(1...day)), flag: .byPath,
        help: "within which a changed key is published")
    case .tlsTimeout:
      SettingRow(.of(\.tls.timeout, .duration(100...300_000)), help: "for one probe an endpoint")
    case .tlsConfirmations:
      SettingRow(
        .of(\.tls.confirmations, .integer(1...100)), help: "that must agree on a changed key")
    case .tlsConfirmationInterval:
      SettingRow(.of(\.tls.confirmationInterval, .duration(10...600_000)), help: "between those")
    case .tlsAddresses:
      SettingRow(
        .of(\.tls.addresses, .choice("selection")),
        help:
          "of an endpoint's name: `all` (16 at most: `addresses_left_out` in the log tells if there are more) or `first`"
      )
    case .tlsKeyTypes:
      SettingRow(
        .of(\.tls.keyTypes, .keyTypes),
        help: "`ecdsa`, `rsa`, `eddsa`: asked for beside the key that an endpoint chooses",
        details: "see [Kinds of keys](#kinds-of-keys)")
    case .tlsVantagePoints:
      SettingRow(
        .of(\.tls.vantagePoints, .vantagePoints),
        help: "of `{name: NAME, proxy: \"https://host:port\", pins: [PIN]}`",
        details: "see [Vantage points](#vantage-points)")
    case .tlsAnchors:
      SettingRow(
        .of(\.tls.anchors, .text("FILE")), help: "PEM: trust only these, not the system's")
    case .tlsClientCertificate:
      SettingRow(
        .of(\.tls.clientCertificate, .text("FILE")),
        help: "PEM, with the chain: shown to endpoints that ask for one",
        details: "see [Client certificates](#client-certificates)")
    case .tlsClientKey:
      SettingRow(
        .of(\.tls.clientKey, .text("FILE")), help: "PEM: that certificate's key")
    case .tlsApproval:
      SettingRow(
        .of(\.tls.approval, .choice("approval")),
        help: "`manual`: a person decides about every new key")
    case .tlsGrace:
      SettingRow(
        .of(\.tls.grace, .duration(1000...365 * day)),
        help: "for which a key that is gone stays published")
    case .tlsQuorum:
      SettingRow(
        .of(\.tls.quorum, .integer(2...100)),
        help: "how many have to agree, vantage points and this server",
        details: "about a new CA this server counts only if there are fewer points than that; "
          + "by default half of the points, and at least 2. If there are fewer points than that, "
          + "[they alone can hold a key](vantage.md#how-many-hold-a-key), and `config check` warns")
    case .tlsIssuers:
      SettingRow(
        .of(\.tls.issuers, .issuers),
        help: "CAs under which a new key needs no person: pins, or PEM files")
    case .tlsMassChange:
      SettingRow(
        .of(\.tls.massChange, .choice("answer")),
        help: "`hold`: a person decides if most endpoints change at once")

    case .publishDirectory:
      SettingRow(
        .of(\.publishing.directory, .text("DIR")), .restart, flag: .byPath,
        help: "write every document here too",
        details: "its parts, too; of what is here only old payloads are deleted")
    case .publishStatements:
      SettingRow(
        .of(\.publishing.statements, .boolean), .restart, help: "format 2 beside format 1")
    case .publishOnlineKeys:
      SettingRow(
        .of(\.publishing.onlineKeys, .texts), .restart,
        help: "PEM files that sign statements; none: `prv.pem`",
        details: "or files that name commands ([keys-in-hardware.md](keys-in-hardware.md))")
    case .publishKeySets:
      SettingRow(
        .of(\.publishing.keySets, .text("DIR"), shown: \.keySetsDirectory), .restart,
        help: "in `tls.dir` by default",
        details: "a warning if it is set and no directory")
    case .publishMirrors:
      SettingRow(
        .of(\.publishing.mirrors, .texts),
        help: "`https://host/path/`: where each document is, too",
        details: "under its own name, as statements tell clients; 8 at most")

    case .signingCommand:
      SettingRow(
        .of(\.publishing.signing.command, .texts),
        help: "a program and its arguments that sign in place of `prv.pem`",
        details:
          "see [keys-in-hardware.md](keys-in-hardware.md); arguments can be seen by all of the machine:"
          + " no PIN among them")
    case .signingPublicKey:
      SettingRow(
        .of(\.publishing.signing.publicKey, .text("FILE")),
        help: "PEM: the public half of that key",
        details: "nothing counts that it does not verify")
    case .signingInput:
      SettingRow(
        .of(\.publishing.signing.input, .choice("input")),
        help: "`message` or `digest`: what the program gets")
    case .signingTimeout:
      SettingRow(
        .of(\.publishing.signing.timeout, .duration(100...60_000)),
        help: "for one signature; then the program is killed")

    case .uiEnabled:
      SettingRow(
        .of(\.administration.isEnabled, .boolean), .restart,
        help: "the web console and the administration")
    case .uiTokenTTL:
      SettingRow(
        .of(\.administration.tokenTTL, .duration(1000...3660 * day)),
        help: "how long an administrator's token is valid")
    case .uiInsecure:
      SettingRow(
        .of(\.administration.isInsecure, .boolean), .restart,
        help: "serve them in clear text to other machines too",
        details: "without it they are refused (403) where `server.listen` is not loopback and"
          + " there is no certificate; so is a configuration whose `ui.listen` is not")
    case .uiRevokedTokens:
      SettingRow(
        .of(\.administration.revokedTokens, .tokenIDs),
        help: "ids of tokens that count no more",
        details: "`ssl-pinning token --json` and `ssl-pinning admin tokens` have them;"
          + " with `ui.second_person`, leave each for a day after the token's end")

    case .uiListen:
      SettingRow(
        .of(\.administration.listen, .address), .restart,
        help: "console and administration here, and nowhere else",
        details: "under `server.certificate`, as `server.listen`; there, both are 404 then")
    case .uiSecondPerson:
      SettingRow(
        .of(\.administration.needsSecondPerson, .boolean),
        help: "what one person decides about keys, another one confirms",
        details: "see [administration.md](administration.md#a-second-person)")

    case .reportsEnabled:
      SettingRow(
        .of(\.reports.isEnabled, .boolean), .restart, help: "take apps' failure reports")
    case .reportsMaximumGroups:
      SettingRow(
        .of(\.reports.maximumGroups, .integer(1...1_000_000)), .restart,
        help: "how many groups of like reports are kept")

    case .historyKeep:
      SettingRow(
        .of(\.history.entries, .integer(0...1_000_000_000)),
        help: "how many changes of each document are remembered; 0: all")
    case .historyKeepFor:
      SettingRow(
        .of(\.history.age, .duration(0...3660 * day)),
        help: "and for how long", details: "`0s`: for ever; the newest one always")

    case .metricsListen:
      SettingRow(
        .of(\.metricsListen, .address), .restart, flag: .byPath,
        help: "metrics and probes here, and metrics nowhere else",
        details: "in clear text; the probes are at both, here with all names")

    case .notifyWebhook:
      SettingRow(
        .of(\.notify.webhook, .secret), .restart,
        help: "a URL that is told of what begins and what is over",
        details: "https, or http to this machine; see [notifications.md](notifications.md)")
    case .notifySecret:
      SettingRow(
        .of(\.notify.secret, .secret), .restart,
        help: "signs what the webhook gets", details: "16 bytes or more")
    case .notifyAnchors:
      SettingRow(
        .of(\.notify.anchors, .text("FILE")), .restart,
        help: "PEM: trust only these for the webhook, not the system's")
    case .notifyCommand:
      SettingRow(
        .of(\.notify.command, .texts), .restart,
        help: "a program and its arguments that get the same on standard input",
        details: "no shell; see [notifications.md](notifications.md#a-command)")
    }
  }
}

/// A day in milliseconds.
let day: Int64 = 86_400_000
