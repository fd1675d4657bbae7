/// The configuration of the server, as its commands explain it.
enum ConfigurationHelp {
  /// The keys.
  static let keys = """
    the configuration, in YAML; all but keys have the defaults shown:

      keys:                             # at least one
        - fqdn: www.example.com
          port: 443
          address: 192.0.2.1            # dialled instead of looking the name up
          domainName: "*.example.com"   # what it is published for; else fqdn and one label below it
          file: www.example.com.json    # the document it is in; else the fqdn's own
          interval: 60s                 # for this one, else tls.dump_interval
          approval: auto                # for this one, else tls.approval
          union: false                  # true: it shows each region a key of its own
          issuers: []                   # as in tls, for this one
      server:
        listen: 127.0.0.1:7500          # :7500 is every address
        read_timeout: 5s
        write_timeout: 5s
        certificate: FILE               # PEM, with the chain: https; else http
        private_key: FILE
        key: TEXT                       # signs administrators' tokens; another one ends them all
        trusted_proxies: []             # in front; their X-Forwarded-For says who calls
      storage:
        type: sqlite                    # or memory, fs, redis, postgres
        dsn: FILE                       # sqlite: else registry.db in $XDG_STATE_HOME/ssl-pinning,
                                        # or in ~/.local/state/ssl-pinning
                                        # redis://user:password@host:6379/0
                                        # postgres://user:password@host:5432/database
        dump_dir: DIR                   # fs: else documents in the same directory
        max_open_conns: 5               # redis and postgres; so are the next three
        max_idle_conns: 5
        conn_max_idle_time: 5m
        conn_max_lifetime: 30m
      tls:
        dir: DIR                        # where prv.pem is, and pub.pem; tls in --config-path
        dump_interval: 60s              # within which a changed key is published
        timeout: 5s                     # for one look
        looks: 3                        # that must agree on a changed key
        look_interval: 2s               # between those
        addresses: all                  # of an endpoint; or first
        vantage_points: []              # of {name: NAME, proxy: "https://host:port", pins: [PIN]}
        anchors: FILE                   # trust only the certificates in it, not the system's
        quorum: 2                       # of the vantage points and this server; else half of them
        issuers: []                     # CAs that need no person, by pin or PEM file
        approval: auto                  # or manual: a person decides about every new key
        mass_change: alert              # or hold: a person decides if most endpoints change at once
        grace: 7d                       # for which a key that is gone stays published
      publish:
        dir: DIR                        # write every document here too
        statements: true                # format 2 beside format 1
        online_keys: []                 # files that sign statements; else prv.pem
        key_sets: DIR                   # else keysets in tls.dir
      ui:
        enabled: true
        token_ttl: 24h
        insecure: false                 # or true: take tokens in clear text off loopback
      metrics: {listen: ADDR}           # metrics and probes here, and metrics nowhere else
      reports: {enabled: true, max_groups: 10000}
      log: {format: json, level: info, pretty: false}   # text; debug, warn, error

    A variable SSL_PINNING_ and a key, as in SSL_PINNING_TLS_DUMP_INTERVAL, wins over the file, and a
    flag over both. Lists are JSON: SSL_PINNING_KEYS='[{"fqdn": "www.example.com"}]'. With keys there,
    config.yaml need not exist. Paths are relative to the working directory.
    """
}
