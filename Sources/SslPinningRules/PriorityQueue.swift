/// A priority queue that returns the smallest element first: a binary heap.
///
/// Elements that compare equal come in no particular order.
package struct PriorityQueue<Element: Comparable> {
  // why: otherwise elements of other modules are compared and copied through witness tables, which costs
  // more than everything else here.
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

  /// Removes and returns the smallest element.
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

  /// Keeps only the elements for which `isIncluded` is true.
  @inlinable package mutating func filter(_ isIncluded: (Element) -> Bool) {
    let kept = heap.filter(isIncluded)
    heap = []
    for element in kept { insert(element) }
  }
}

extension PriorityQueue: Sendable where Element: Sendable {}
