import Foundation
import SslPinningPlatform

/// A metric whose series can be written, whatever their cells are.
protocol ExposedMetric: Sendable {
  /// Its name.
  var name: String { get }

  /// Writes help, type and all series, ordered by their labels.
  func write(to writer: inout ExpositionWriter)
}

/// One metric: a series for each combination of label values that occurred.
///
/// - Bounded: beyond ``limit`` series a new combination gets a cell that nobody reads, and is counted
///   in ``refused``. Names from configuration cannot exhaust the memory of who scrapes.
/// - The lock is held for a look-up, and once after series were added or removed for sorting them.
///   Cells are changed and read without it.
final class MetricFamily<Cell: MetricCell>: ExposedMetric {
  let name: String
  private let help: String
  private let labelNames: [String]
  private let limit: Int
  private let metric: [UInt8]
  private let make: @Sendable () -> Cell
  private let spare: Cell
  private let state = Locked(State())
  /// How often a combination found no room.
  let refused = Counter()

  private struct Series: Sendable {
    let name: SeriesName
    let cell: Cell
  }

  private struct State {
    /// By their labels as they are written.
    var cells: [[UInt8]: Cell] = [:]
    var ordered: [Series]?
  }

  /// A metric.
  ///
  /// - Parameters:
  ///   - labels: the names of its labels; without any there is one series, from the beginning.
  ///   - limit: the most series.
  init(
    _ name: String, help: String, labels: [String] = [], limit: Int = 1000,
    make: @escaping @Sendable () -> Cell
  ) {
    self.name = name
    self.help = help
    labelNames = labels
    self.limit = limit
    self.make = make
    metric = Array(name.utf8)
    spare = make()
    if labels.isEmpty { state.withLock { $0.cells[[]] = make() } }
  }

  /// The cell of the series with these label values, made where there is none yet.
  func cell(_ values: String...) -> Cell {
    let labels = ExpositionWriter.labels(labelNames, values)
    return state.withLock { state in
      if let cell = state.cells[labels] { return cell }
      guard state.cells.count < limit else {
        refused.increment()
        return spare
      }
      let cell = make()
      state.cells[labels] = cell
      state.ordered = nil
      return cell
    }
  }

  /// Whether a cell is one that somebody reads; not where it was given for want of room.
  func hasSeries(_ cell: Cell?) -> Bool { cell.map { $0 !== spare } ?? false }

  /// Ends a series.
  func remove(_ values: String...) {
    let labels = ExpositionWriter.labels(labelNames, values)
    state.withLock { state in
      if state.cells.removeValue(forKey: labels) != nil { state.ordered = nil }
    }
  }

  /// Ends all series but those with these label values.
  func keep(only values: [[String]]) {
    let kept = Set(values.map { ExpositionWriter.labels(labelNames, $0) })
    state.withLock { state in
      state.cells = state.cells.filter { kept.contains($0.key) }
      state.ordered = nil
    }
  }

  /// Changes the cells of all series.
  func all(_ change: (Cell) -> Void) { for series in ordered() { change(series.cell) } }

  func write(to writer: inout ExpositionWriter) {
    writer.begin(metric, help: help, type: Cell.type)
    for series in ordered() { series.cell.write(as: series.name, to: &writer) }
  }

  private func ordered() -> [Series] {
    state.withLock { state in
      if let ordered = state.ordered { return ordered }
      let ordered = SeriesOrder.sorted(Array(state.cells.keys)).compactMap { labels in
        state.cells[labels].map {
          Series(name: SeriesName(metric: metric, labels: labels), cell: $0)
        }
      }
      state.ordered = ordered
      return ordered
    }
  }
}

/// The order in which series are told: by the bytes of their labels.
///
/// Apart from the generic ``MetricFamily``, whose elements the compiler would move about with a call
/// each: that took ten times as long for the ten thousand series of a large page.
enum SeriesOrder {
  static func sorted(_ labels: [[UInt8]]) -> [[UInt8]] {
    labels.sorted { left, right in
      let order = left.withUnsafeBytes { one in
        right.withUnsafeBytes { other in
          guard let start = one.baseAddress, let otherStart = other.baseAddress else {
            return Int32(0)
          }
          return memcmp(start, otherStart, min(one.count, other.count))
        }
      }
      return order < 0 || order == 0 && left.count < right.count
    }
  }
}
