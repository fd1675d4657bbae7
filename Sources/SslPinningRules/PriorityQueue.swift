/// Gives the smallest element first: a binary heap.
///
/// Elements that compare equal come in no particular order; who needs one compares by more.
package struct PriorityQueue<Element: Comparable> {
  // why: other modules' elements would otherwise be compared and copied through witness tables, which
  // costs more than all else here.
  @usableFromInline var heap: [Element] = []

  @inlinable package init() {}

  @inlinable package var isEmpty: Bool { heap.isEmpty }
  @inlinable package var count: Int { heap.count }

  /// The smallest element.
  @inlinable package var first: Element? { heap.first }

  @inlinable package mutating func insert(_ element: Element) {
    heap.append(element)
    var index = heap.count - 1
    while index > 0 {
      let parent = (index - 1) / 2
      guard heap[index] < heap[parent] else { return }
      heap.swapAt(index, parent)
      index = parent
    }
  }

  /// Takes the smallest element out.
  @inlinable package mutating func popFirst() -> Element? {
    guard let first = heap.first, let last = heap.popLast() else { return nil }
    guard !heap.isEmpty else { return first }
    heap[0] = last
    var index = 0
    while true {
      let left = 2 * index + 1
      guard left < heap.count else { return first }
      let right = left + 1
      let child = right < heap.count && heap[right] < heap[left] ? right : left
      guard heap[child] < heap[index] else { return first }
      heap.swapAt(child, index)
      index = child
    }
  }

  /// Keeps the elements that `isIncluded` says; for thinning out those that no longer count.
  @inlinable package mutating func filter(_ isIncluded: (Element) -> Bool) {
    let kept = heap.filter(isIncluded)
    heap = []
    for element in kept { insert(element) }
  }
}

extension PriorityQueue: Sendable where Element: Sendable {}
