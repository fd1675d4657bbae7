/// Gives the smallest element first: a binary heap.
///
/// Elements that compare equal come in no particular order; who needs one compares by more.
package struct PriorityQueue<Element: Comparable> {
  private var heap: [Element] = []

  package init() {}

  package var isEmpty: Bool { heap.isEmpty }
  package var count: Int { heap.count }

  /// The smallest element.
  package var first: Element? { heap.first }

  package mutating func insert(_ element: Element) {
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
  package mutating func popFirst() -> Element? {
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
  package mutating func filter(_ isIncluded: (Element) -> Bool) {
    let kept = heap.filter(isIncluded)
    heap = []
    for element in kept { insert(element) }
  }
}

extension PriorityQueue: Sendable where Element: Sendable {}
