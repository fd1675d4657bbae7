import SwiftUI

/// One log entry: a line, and everything else once it is opened.
struct LogEntryView: View {
  let entry: LogEntry

  var body: some View {
    DisclosureGroup {
      ForEach(entry.details, id: \.self) { detail in
        VStack(alignment: .leading) {
          Text(detail.label).font(.caption).foregroundColor(.secondary)
          Text(detail.value)
            .font(.system(.caption, design: .monospaced))
            .textSelection(.enabled)
        }
      }
    } label: {
      VStack(alignment: .leading) {
        Text(entry.summary).foregroundColor(color)
        Text(entry.url.absoluteString).font(.caption).lineLimit(1)
        Text(entry.date, style: .time).font(.caption).foregroundColor(.secondary)
      }
    }
  }

  private var color: Color {
    switch entry.result {
    case .answered: .primary
    case .refused: .red
    case .failed: .orange
    }
  }
}
