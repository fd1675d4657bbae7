import TLSTools

/// Keys and certificates of servers that change.
enum RotationRows {
  static let all: [Row] = [
    .change("renewal with the same key") { log in
      let stage = try Stage()
      let site = try stage.site()
      try stage.registry.publish { try $0.list(site.host, site.server.identity) }
      let app = try await stage.start()
      let body = site.body
      await log.get(try site.url(), app.dialers, expecting: body)
      let old = site.server.identity
      let renewed = try stage.issue(site.host, key: old.key, from: 0)
      try site.server.replaceIdentity(renewed, closingConnections: true)
      try show(renewed.leaf != old.leaf, "the certificate is the old one")
      log.changed()
      await log.get(try site.url(), app.dialers, expecting: body)
      await log.get(try site.url(), try await stage.start().dialers, expecting: body)
      return ChangeOutcome("another certificate, no document published", log)
    },
    .change("new key announced") { log in
      let stage = try Stage()
      let site = try stage.site()
      let old = site.server.identity
      try stage.registry.publish { try $0.list(site.host, old) }
      let app = try await stage.start()
      await log.get(try site.url(), app.dialers, expecting: site.body)
      let new = try stage.issue(site.host)
      try stage.registry.publish { try $0.list(site.host, old, new) }
      try await app.client.refresh()
      await log.get(try site.url(), app.dialers, expecting: site.body)
      try site.rotate(to: new)
      log.changed()
      await log.get(try site.url(), app.dialers, expecting: site.body)
      try stage.registry.publish { try $0.list(site.host, new) }
      try await app.client.refresh()
      await log.get(try site.url(), app.dialers, expecting: site.body)
      return ChangeOutcome("published, refreshed, switched, old key withdrawn", log)
    },
  ]
}
