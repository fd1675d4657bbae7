import HTTPServing
import SslPinningPlatform
import SslPinningRules

/// Serves the web console: files that never change while the server runs.
///
/// - The page may load scripts, styles and data from this server alone, is framed by nobody, sends no
///   referrer and runs nothing inline: a certificate's subject that found its way into the page as
///   markup would still do nothing.
/// - The files are nobody's secret; what they show is fetched with the administrator's token.
/// - Browsers ask each time whether their copy is still good, so that no two versions are mixed.
struct WebConsoleRoutes: Sendable {
  private struct Page {
    let entityTag: String
    let full: HTTPResponse
    let unchanged: HTTPResponse
  }

  private let pages: [String: Page]

  static let policy = [
    "default-src 'none'", "script-src 'self'", "style-src 'self'", "img-src 'self' data:",
    "connect-src 'self'", "base-uri 'none'", "form-action 'none'", "frame-ancestors 'none'",
  ].joined(separator: "; ")

  init(files: [(path: String, bytes: [UInt8])] = ConsoleFiles.all) {
    pages = Dictionary(
      files.map { ($0.path, Self.page($0.path, $0.bytes)) }, uniquingKeysWith: { first, _ in first }
    )
  }

  /// Answers a GET or HEAD; `nil` where the console has nothing at this path.
  func answer(path: String, ifNoneMatch: String?) -> HTTPResponse? {
    guard let page = pages[path] else { return nil }
    guard let condition = ifNoneMatch,
      EntityTag.matches(ifNoneMatch: condition, page.entityTag)
    else { return page.full }
    return page.unchanged
  }

  private static func page(_ path: String, _ bytes: [UInt8]) -> Page {
    let tag = "\"\(StrictBase64.encode(Digest.sha256(bytes)))\""
    let cached: [(name: String, value: String)] = [
      ("ETag", tag), ("Cache-Control", "no-cache"), ("Content-Security-Policy", policy),
      ("X-Content-Type-Options", "nosniff"), ("Referrer-Policy", "no-referrer"),
      ("Cross-Origin-Opener-Policy", "same-origin"),
      ("Cross-Origin-Resource-Policy", "same-origin"),
    ]
    return Page(
      entityTag: tag,
      full: HTTPResponse(
        status: 200, headers: cached + [("Content-Type", mediaType(of: path))], body: bytes),
      // With the body, which is not sent: the length told must be that of the file (RFC 9110 §8.6).
      unchanged: HTTPResponse(status: 304, headers: cached, body: bytes))
  }

  private static func mediaType(of path: String) -> String {
    if path.hasSuffix(".js") { return "text/javascript; charset=utf-8" }
    return path.hasSuffix(".css") ? "text/css; charset=utf-8" : "text/html; charset=utf-8"
  }
}

/// The console's files, as they are in `Files`, embedded at build time: the program needs nothing beside
/// itself.
enum ConsoleFiles {
  /// By path. What is not listed is not served.
  static let all: [(path: String, bytes: [UInt8])] = [
    ("/", PackageResources.index_html),
    ("/console.css", PackageResources.console_css),
    ("/console.js", PackageResources.console_js),
    ("/console/alerts.js", PackageResources.alerts_js),
    ("/console/api.js", PackageResources.api_js),
    ("/console/badges.js", PackageResources.badges_js),
    ("/console/bulk-dialogs.js", PackageResources.bulk_dialogs_js),
    ("/console/calendar-page.js", PackageResources.calendar_page_js),
    ("/console/chains.js", PackageResources.chains_js),
    ("/console/charts.js", PackageResources.charts_js),
    ("/console/clock-panel.js", PackageResources.clock_panel_js),
    ("/console/comparison.js", PackageResources.comparison_js),
    ("/console/denied-page.js", PackageResources.denied_page_js),
    ("/console/dialogs.js", PackageResources.dialogs_js),
    ("/console/document-page.js", PackageResources.document_page_js),
    ("/console/documents-page.js", PackageResources.documents_page_js),
    ("/console/documents-table.js", PackageResources.documents_table_js),
    ("/console/elements.js", PackageResources.elements_js),
    ("/console/endpoint-dialogs.js", PackageResources.endpoint_dialogs_js),
    ("/console/endpoint-keys.js", PackageResources.endpoint_keys_js),
    ("/console/endpoint-page.js", PackageResources.endpoint_page_js),
    ("/console/endpoint-probes.js", PackageResources.endpoint_probes_js),
    ("/console/endpoint-table.js", PackageResources.endpoint_table_js),
    ("/console/forced.js", PackageResources.forced_js),
    ("/console/history-page.js", PackageResources.history_page_js),
    ("/console/history-search.js", PackageResources.history_search_js),
    ("/console/history-table.js", PackageResources.history_table_js),
    ("/console/key-dialogs.js", PackageResources.key_dialogs_js),
    ("/console/key-sets-page.js", PackageResources.key_sets_page_js),
    ("/console/key-text.js", PackageResources.key_text_js),
    ("/console/key-timeline.js", PackageResources.key_timeline_js),
    ("/console/moments.js", PackageResources.moments_js),
    ("/console/next-actions.js", PackageResources.next_actions_js),
    ("/console/notices.js", PackageResources.notices_js),
    ("/console/overview-page.js", PackageResources.overview_page_js),
    ("/console/pages.js", PackageResources.pages_js),
    ("/console/patching.js", PackageResources.patching_js),
    ("/console/pending-page.js", PackageResources.pending_page_js),
    ("/console/proposals.js", PackageResources.proposals_js),
    ("/console/report-classes.js", PackageResources.report_classes_js),
    ("/console/reports-page.js", PackageResources.reports_page_js),
    ("/console/routes.js", PackageResources.routes_js),
    ("/console/session.js", PackageResources.session_js),
    ("/console/shell.js", PackageResources.shell_js),
    ("/console/sign-in.js", PackageResources.sign_in_js),
    ("/console/sorting.js", PackageResources.sorting_js),
    ("/console/staging.js", PackageResources.staging_js),
    ("/console/tables.js", PackageResources.tables_js),
    ("/console/terms-dialogs.js", PackageResources.terms_dialogs_js),
    ("/console/theme-switch.js", PackageResources.theme_switch_js),
    ("/console/theme.js", PackageResources.theme_js),
    ("/console/timeline.js", PackageResources.timeline_js),
    ("/console/times.js", PackageResources.times_js),
    ("/console/tombstones.js", PackageResources.tombstones_js),
  ]
}
